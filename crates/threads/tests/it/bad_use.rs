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
    assert!(text.contains("store at ") && text.contains("load at "), "{text}");
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
    assert_eq!(message, "on purpose");
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
