//! What a test should not do: each is a clear error or a bound that is reached, and none hangs.

use std::process::Command;
use std::time::Duration;

use demi_threads::failure::FailureKind;
use demi_threads::sync::atomic::{AtomicUsize, Ordering};
use demi_threads::sync::{Arc, Mutex};
use demi_threads::{Check, thread};

#[test]
fn a_lock_of_the_standard_library_that_a_waiting_task_holds_is_named() {
    let outcome = Check::named("std").patience(Duration::from_secs(2)).explore(|| {
        let hidden = Arc::new(std::sync::Mutex::new(()));
        let turn = Arc::new(Mutex::new(()));
        let (other, other_turn) = (Arc::clone(&hidden), Arc::clone(&turn));
        let task = thread::spawn(move || {
            let _held = other.lock().unwrap();
            drop(other_turn.lock().unwrap());
        });
        drop(turn.lock().unwrap());
        let _held = hidden.lock().unwrap();
        drop(turn.lock().unwrap());
        drop(_held);
        task.join().unwrap();
    });
    let FailureKind::Blocked { at, .. } = outcome.finding().unwrap().failure().kind() else {
        panic!("{}", outcome.finding().unwrap().failure())
    };
    assert!(at.0.contains("bad_use.rs"), "{at}");
    assert!(outcome.finding().unwrap().failure().to_string().contains("blocks for real after"));
}

#[test]
fn a_test_that_sleeps_for_real_for_ever_is_named() {
    let outcome = Check::named("sleep").patience(Duration::from_secs(1)).explore(|| {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let _ = receiver.recv();
        drop(sender);
    });
    assert!(matches!(outcome.finding().unwrap().failure().kind(), FailureKind::Blocked { .. }));
}

#[test]
fn a_test_that_is_not_the_same_each_time_is_refused() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let outcome = Check::named("nondeterministic").explore(|| {
        let value = AtomicUsize::new(0);
        if RUNS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            value.store(1, Ordering::SeqCst);
        } else {
            value.load(Ordering::SeqCst);
        }
    });
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.starts_with("the test is not deterministic: after the same 0 steps"), "{text}");
    assert!(text.contains("does store ") && text.contains("does load "), "{text}");
}

#[test]
fn what_differs_only_later_takes_the_promise_away() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let outcome = Check::named("late").bound(1).explore(|| {
        let value = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&value);
        let task = thread::spawn(move || other.fetch_add(1, Ordering::SeqCst));
        if RUNS.fetch_add(1, Ordering::Relaxed) > 400 {
            value.load(Ordering::SeqCst);
        }
        value.fetch_add(1, Ordering::SeqCst);
        value.fetch_add(1, Ordering::SeqCst);
        task.join().unwrap();
    });
    // The change comes while random executions run, or between two bounded ones; it is never a hang or a false failure.
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
}

#[test]
fn a_destructor_that_locks_while_a_panic_is_on_its_way_up_does_not_hang() {
    struct Locks(Arc<Mutex<u32>>);
    impl Drop for Locks {
        fn drop(&mut self) {
            *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
        }
    }
    let outcome = Check::named("destructor").explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let task = thread::spawn(move || {
            let _locks = Locks(Arc::clone(&other));
            panic!("on purpose");
        });
        let held = lock.lock().unwrap();
        thread::yield_now();
        drop(held);
        let _ = task.join();
    });
    let finding = outcome.finding().unwrap();
    let FailureKind::Panic { message, at, .. } = finding.failure().kind() else {
        panic!("{}", finding.failure())
    };
    assert!(message.starts_with("on purpose (a destructor waits"), "{message}");
    assert!(at.0.contains("bad_use.rs"), "{at}");
    assert_eq!(finding.least(), Some((0, true)));
}

/// Runs in a process of its own, which the standard library aborts.
#[test]
fn a_panic_in_a_destructor_during_a_panic_says_so_before_the_process_ends() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the second");
        }
    }
    if std::env::var_os("DEMI_TEST_ABORTS").is_some() {
        let _ = Check::named("aborts").explore(|| {
            let _panics = Panics;
            panic!("the first");
        });
        return;
    }
    let name = "bad_use::a_panic_in_a_destructor_during_a_panic_says_so_before_the_process_ends";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output =
        command.args([name, "--exact", "--nocapture"]).env("DEMI_TEST_ABORTS", "1").output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("the first") && text.contains("the second"), "{text}");
    assert!(text.contains("Let no destructor panic"), "{text}");
}

#[test]
fn a_thousand_tasks_run() {
    let outcome = Check::named("thousand").delays(0).budget(4).explore(|| {
        let sum = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..1000)
            .map(|_| {
                let sum = Arc::clone(&sum);
                thread::spawn(move || sum.fetch_add(1, Ordering::SeqCst))
            })
            .collect();
        for task in tasks {
            task.join().unwrap();
        }
        assert_eq!(sum.load(Ordering::SeqCst), 1000);
    });
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
    assert_eq!(outcome.complete(), Some(0));
}

#[test]
fn ten_million_steps_reach_the_limit() {
    let outcome = Check::named("long").explore(|| {
        let value = AtomicUsize::new(0);
        for _ in 0..10_000_000 {
            value.fetch_add(1, Ordering::SeqCst);
        }
    });
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.contains("20000 steps"), "{text}");
}

/// All steps of one execution are as many as that takes, where somebody asks for them.
#[test]
fn ten_million_steps_are_run_where_the_limit_allows_them() {
    let check = Check::named("longer").steps(20_000_000).bound(0).random(false).budget(2);
    let outcome = check.explore(|| {
        let value = AtomicUsize::new(0);
        for _ in 0..10_000_000 {
            value.fetch_add(1, Ordering::SeqCst);
        }
    });
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
    assert_eq!((outcome.complete(), outcome.levels()[0].steps()), (Some(0), 10_000_000));
}

#[test]
fn a_thousand_tasks_within_a_bound_of_preemptions_reach_the_budget() {
    let outcome = Check::named("wide").bound(2).budget(12).explore(|| {
        let sum = Arc::new(AtomicUsize::new(0));
        let add = |sum: Arc<AtomicUsize>| move || sum.fetch_add(1, Ordering::SeqCst);
        let tasks: Vec<_> = (0..1000).map(|_| thread::spawn(add(Arc::clone(&sum)))).collect();
        for task in tasks {
            task.join().unwrap();
        }
        assert_eq!(sum.load(Ordering::SeqCst), 1000);
    });
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
    assert_eq!(outcome.complete(), None);
    assert!(outcome.promise().contains("no bound is complete"), "{}", outcome.promise());
}

/// A test that is not the same each time is refused, or nothing is promised of it; it is never said to fail otherwise.
#[track_caller]
fn is_told(outcome: &demi_threads::Outcome) {
    match outcome.finding() {
        Some(finding) => assert!(
            matches!(finding.failure().kind(), FailureKind::Nondeterministic { .. }),
            "{}",
            finding.failure()
        ),
        None => {
            assert_eq!(outcome.complete(), None);
            assert!(outcome.promise().contains("coverage is incomplete"), "{}", outcome.promise());
        }
    }
}

/// Two tasks, of which one does something else by the value of a number.
fn differs(number: u64) {
    let value = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&value);
    let task = thread::spawn(move || {
        (0..3).for_each(|_| {
            other.fetch_add(1, Ordering::SeqCst);
        })
    });
    // Whatever bits of the number change from time to time.
    if number.wrapping_mul(0x9E37_79B9_7F4A_7C15).count_ones().is_multiple_of(2) {
        value.store(1, Ordering::SeqCst);
    } else {
        value.load(Ordering::SeqCst);
    }
    (0..3).for_each(|_| {
        value.fetch_add(1, Ordering::SeqCst);
    });
    task.join().unwrap();
}

#[test]
fn a_test_that_goes_by_the_time_is_told() {
    let explore = || {
        Check::named("time").budget(4_000).explore(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            differs(now.as_nanos() as u64);
        })
    };
    // One bit of the time says what is done: by chance it is the same in all executions that are compared, once in forty times.
    let outcome = (0..4).map(|_| explore()).find(|one| one.finding().is_some() || one.complete().is_none());
    is_told(&outcome.expect("one of four is told"));
}

#[test]
fn a_test_that_goes_by_addresses_is_told() {
    is_told(&Check::named("addresses").budget(4_000).explore(|| {
        // What is never given back is somewhere else each time.
        let somewhere: &'static [u8; 64] = Box::leak(Box::new([0; 64]));
        differs(somewhere.as_ptr() as u64);
    }));
}

#[test]
fn a_test_that_goes_by_the_order_of_hashes_is_told() {
    let outcome = Check::named("hashes").budget(4_000).explore(|| {
        let values: Arc<Vec<AtomicUsize>> = Arc::new((0..16).map(|_| AtomicUsize::new(0)).collect());
        values.iter().for_each(|value| value.store(1, Ordering::SeqCst));
        let other = Arc::clone(&values);
        let task = thread::spawn(move || {
            let order: std::collections::HashSet<usize> = (0..16).collect();
            order.into_iter().for_each(|at| {
                other[at].fetch_add(1, Ordering::SeqCst);
            });
        });
        task.join().unwrap();
    });
    is_told(&outcome);
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.contains("update atomic of bad_use.rs") && text.contains("#"), "{text}");
}

/// What is outside of the promise and does not block is one step with what comes before it.
#[test]
fn a_lock_of_the_standard_library_that_nobody_waits_for_is_no_point() {
    let outcome = Check::named("sections").bound(2).explore(|| {
        let hidden = Arc::new(std::sync::Mutex::new(0));
        let other = Arc::clone(&hidden);
        let task = thread::spawn(move || *other.lock().unwrap() += 1);
        *hidden.lock().unwrap() += 1;
        task.join().unwrap();
        assert_eq!(*hidden.lock().unwrap(), 2);
    });
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
    assert_eq!(outcome.complete(), Some(2));
}

#[test]
fn a_panic_in_a_destructor_is_a_panic() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in the destructor");
        }
    }
    let outcome = Check::named("drop").explore(|| drop(thread::spawn(|| drop(Panics)).join()));
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.contains("task 1 panicked at") && text.contains("in the destructor"), "{text}");
}

#[test]
fn a_thread_of_the_operating_system_does_not_wait_for_a_task() {
    let outcome = Check::named("foreign").explore(|| {
        let lock = Arc::new(Mutex::new(0));
        let other = Arc::clone(&lock);
        let held = lock.lock().unwrap();
        let result = std::thread::spawn(move || drop(other.lock().unwrap())).join();
        drop(held);
        let payload = result.unwrap_err();
        std::panic::resume_unwind(payload);
    });
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.contains("held by something that is no task of this execution"), "{text}");
}

#[test]
fn to_spawn_outside_of_a_test_is_refused() {
    let payload = std::panic::catch_unwind(|| thread::spawn(|| ())).unwrap_err();
    assert!(payload.downcast_ref::<&str>().unwrap().contains("outside of a test"));
}
