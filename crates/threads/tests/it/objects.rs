//! Each object does what that of the standard library does, under every schedule within the bound.

use std::time::Duration;

use demi_threads::failure::FailureKind;
use demi_threads::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use demi_threads::sync::mpsc::{RecvTimeoutError, TryRecvError, TrySendError, channel, sync_channel};
use demi_threads::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, RwLockWriteGuard};
use demi_threads::{Check, future, thread};

#[track_caller]
fn holds(test: impl Fn() + Send + Sync + 'static) {
    let outcome = Check::named("holds").bound(2).budget(400_000).explore(test);
    if let Some(finding) = outcome.finding() {
        let schedule =
            finding.schedule().map_or_else(|| finding.failure().to_string(), |schedule| schedule.show());
        panic!("{schedule}");
    }
    assert_eq!(outcome.complete(), Some(2), "{}", outcome.promise());
}

#[test]
fn a_mutex_excludes() {
    holds(|| {
        let inside = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
        let enter = |shared: Arc<(Mutex<i32>, AtomicUsize)>| {
            move || {
                let mut value = shared.0.lock().unwrap();
                assert_eq!(shared.1.fetch_add(1, Ordering::SeqCst), 0);
                *value += 1;
                shared.1.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let task = thread::spawn(enter(Arc::clone(&inside)));
        enter(Arc::clone(&inside))();
        task.join().unwrap();
        assert_eq!(*inside.0.lock().unwrap(), 2);
        let held = inside.0.try_lock().unwrap();
        assert!(inside.0.try_lock().is_err());
        drop(held);
    });
}

#[test]
fn readers_share_and_a_writer_does_not() {
    holds(|| {
        let lock = Arc::new(RwLock::new((0, 0)));
        let other = Arc::clone(&lock);
        let writer = thread::spawn(move || {
            let mut value = other.write().unwrap();
            value.0 += 1;
            value.1 += 1;
        });
        let third = Arc::clone(&lock);
        let reader = thread::spawn(move || {
            let value = third.read().unwrap();
            assert_eq!(value.0, value.1);
        });
        let value = lock.read().unwrap();
        assert_eq!(value.0, value.1);
        assert!(lock.try_write().is_err());
        drop(value);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(*lock.try_read().unwrap(), (1, 1));
    });
}

#[test]
fn a_condition_variable_wakes_who_waits() {
    holds(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&pair);
        let task = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let ready = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap();
        assert!(*ready);
        drop(ready);
        task.join().unwrap();
    });
}

#[test]
fn a_wait_with_a_timeout_ends_either_way() {
    let ways = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let seen = Arc::clone(&ways);
    holds(move || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let other = Arc::clone(&pair);
        let task = thread::spawn(move || other.1.notify_one());
        let (guard, result) = pair.1.wait_timeout(pair.0.lock().unwrap(), Duration::from_secs(1)).unwrap();
        seen.lock().unwrap().insert(result.timed_out());
        drop(guard);
        task.join().unwrap();
    });
    assert_eq!(ways.lock().unwrap().len(), 2);
}

#[test]
fn a_lost_wake_up_is_a_deadlock_that_names_both() {
    let outcome = Check::named("lost").explore(|| {
        let pair = Arc::new((Mutex::named("lock", false), Condvar::named("ready"), AtomicBool::new(false)));
        let other = Arc::clone(&pair);
        let task = thread::spawn(move || {
            other.2.store(true, Ordering::SeqCst);
            other.1.notify_one();
        });
        if !pair.2.load(Ordering::SeqCst) {
            drop(pair.1.wait(pair.0.lock().unwrap()).unwrap());
        }
        task.join().unwrap();
    });
    let finding = outcome.finding().unwrap();
    assert_eq!(finding.least(), Some((1, true)));
    let text = finding.failure().to_string();
    assert!(text.contains("main waits in wake-up for ready at"), "{text}");
    assert!(text.contains("the last notification was step") && text.contains("by task 1 at"), "{text}");
    assert!(text.contains("nobody is left who could end these waits"), "{text}");
}

#[test]
fn a_deadlock_names_locks_holders_and_places() {
    let outcome = Check::named("deadlock").explore(|| {
        let locks = Arc::new((Mutex::named("left", ()), Mutex::named("right", ())));
        let other = Arc::clone(&locks);
        let task = thread::Builder::new().name("other".into()).spawn(move || {
            let _right = other.1.lock().unwrap();
            let _left = other.0.lock().unwrap();
        });
        {
            let _left = locks.0.lock().unwrap();
            let _right = locks.1.lock().unwrap();
        }
        task.unwrap().join().unwrap();
    });
    let finding = outcome.finding().unwrap();
    assert_eq!(finding.least(), Some((1, true)));
    let FailureKind::Deadlock { waits } = finding.failure().kind() else { panic!("{}", finding.failure()) };
    let main = waits.iter().find(|waits| waits.task == "main").unwrap();
    let other = waits.iter().find(|waits| waits.task == "other").unwrap();
    assert_eq!((main.what.as_str(), main.by.as_deref()), ("right", Some("other")));
    assert_eq!((other.what.as_str(), other.by.as_deref()), ("left", Some("main")));
    assert_eq!(main.holds[0].what, "left");
    assert!(main.at.0.contains("objects.rs") && main.by_at.is_some());
    assert!(finding.failure().to_string().contains("in a circle: "));
}

#[test]
fn a_lock_taken_twice_is_a_deadlock_with_itself() {
    let outcome = Check::named("twice").explore(|| {
        let lock = Mutex::new(());
        let _held = lock.lock().unwrap();
        let _again = lock.lock().unwrap();
    });
    assert!(outcome.finding().unwrap().failure().to_string().contains("which it holds itself since"));
}

#[cfg(feature = "parking_lot")]
#[test]
fn locks_of_parking_lot_do_the_same_without_poison() {
    use demi_threads::parking_lot;

    holds(|| {
        let pair = Arc::new((parking_lot::Mutex::new(false), parking_lot::Condvar::new()));
        let other = Arc::clone(&pair);
        let task = thread::spawn(move || {
            *other.0.lock() = true;
            other.1.notify_one();
        });
        let mut ready = pair.0.lock();
        pair.1.wait_while(&mut ready, |ready| !*ready);
        assert!(*ready && pair.0.try_lock().is_none());
        drop(ready);
        task.join().unwrap();
        let lock = parking_lot::RwLock::new(1);
        let first = lock.read();
        assert_eq!(*lock.try_read().unwrap(), *first);
        assert!(lock.try_write().is_none());
        drop(first);
        *lock.write() += 1;
        assert_eq!(lock.into_inner(), 2);
    });
    let outcome = Check::named("twice").explore(|| {
        let lock = parking_lot::Mutex::new(());
        let _held = lock.lock();
        let _again = lock.lock();
    });
    assert!(outcome.finding().unwrap().failure().to_string().contains("which it holds itself since"));
}

/// A task that reads twice while another comes to write in between: each waits for the other, as with the lock of the standard library.
#[test]
fn who_reads_twice_can_deadlock_with_a_writer() {
    let body = || {
        let lock = Arc::new(RwLock::named("table", 0));
        let other = Arc::clone(&lock);
        let writer = thread::spawn(move || *other.write().unwrap() += 1);
        let first = lock.read().unwrap();
        let second = lock.read().unwrap();
        assert_eq!(*first, *second);
        drop((first, second));
        writer.join().unwrap();
    };
    let outcome = Check::named("twice").explore(body);
    let finding = outcome.finding().unwrap();
    assert_eq!(finding.least(), Some((1, true)));
    let text = finding.failure().to_string();
    assert!(text.contains("main waits in read for table"), "{text}");
    assert!(text.contains("for which task 1 waits already, to write"), "{text}");
    assert!(text.contains("in a circle: main waits for table -> task 1 waits for table -> main"), "{text}");
}

/// Readers that come again and again and overlap do not keep a writer from its turn.
#[test]
fn readers_that_poll_let_a_writer_in() {
    holds(|| {
        let lock = Arc::new(RwLock::new(false));
        let poll = |lock: Arc<RwLock<bool>>| {
            move || {
                while !*lock.read().unwrap() {
                    thread::yield_now();
                }
            }
        };
        let pollers = [thread::spawn(poll(Arc::clone(&lock))), thread::spawn(poll(Arc::clone(&lock)))];
        *lock.write().unwrap() = true;
        pollers.into_iter().for_each(|poller| poller.join().unwrap());
    });
}

#[test]
fn who_wrote_can_read_on_with_no_writer_in_between() {
    holds(|| {
        let lock = Arc::new(RwLock::new(0));
        let other = Arc::clone(&lock);
        let writer = thread::spawn(move || *other.write().unwrap() = 7);
        let mut value = lock.write().unwrap();
        *value = 1;
        let value = RwLockWriteGuard::downgrade(value);
        assert_eq!(*value, 1);
        assert_eq!(lock.try_read().map_or(1, |guard| *guard), 1);
        drop(value);
        writer.join().unwrap();
    });
}

#[cfg(feature = "parking_lot")]
#[test]
fn parking_lots_readers_may_read_again_and_become_writers() {
    use demi_threads::parking_lot::{RwLock, RwLockUpgradableReadGuard};
    holds(|| {
        let lock = Arc::new(RwLock::new(0));
        let other = Arc::clone(&lock);
        let writer = thread::spawn(move || *other.write() += 1);
        let first = lock.read();
        assert_eq!(*first, *lock.read_recursive());
        assert!(lock.is_locked() && !lock.is_locked_exclusive());
        drop(first);
        writer.join().unwrap();
    });
    holds(|| {
        let lock = Arc::new(RwLock::new(0));
        let add = |lock: &RwLock<i32>| {
            let seen = lock.upgradable_read();
            let before = *seen;
            let mut value = RwLockUpgradableReadGuard::upgrade(seen);
            assert_eq!(*value, before, "nobody wrote in between");
            *value += 1;
        };
        let other = Arc::clone(&lock);
        let task = thread::spawn(move || add(&other));
        let third = Arc::clone(&lock);
        let reader = thread::spawn(move || assert!((0..=2).contains(&*third.read())));
        add(&lock);
        task.join().unwrap();
        reader.join().unwrap();
        assert_eq!(*lock.read(), 2);
        let seen = lock.upgradable_read();
        assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
        let reader = lock.read();
        let Err(seen) = RwLockUpgradableReadGuard::try_upgrade(seen) else { panic!("a reader is in") };
        drop(reader);
        let value = RwLockUpgradableReadGuard::try_upgrade(seen).map_err(|_| "nobody is in").unwrap();
        let reader = RwLockUpgradableReadGuard::downgrade(RwLockWriteGuard::downgrade_to_upgradable(value));
        assert_eq!(*lock.try_read().unwrap(), *reader);
    });
    // Two readers that both want to become the writer cannot both be upgradable; two plain ones that write while they read deadlock.
    let outcome = Check::named("upgrade").explore(|| {
        let lock = Arc::new(RwLock::new(0));
        let both = |lock: &RwLock<i32>| {
            let seen = lock.read();
            *lock.write() += *seen;
        };
        both(&lock);
    });
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.contains("which it holds itself since"), "{text}");
}

#[cfg(feature = "parking_lot")]
#[test]
fn a_guard_can_be_given_back_for_a_while() {
    holds(|| {
        let lock = Arc::new(demi_threads::parking_lot::Mutex::new(0));
        let other = Arc::clone(&lock);
        let mut value = lock.lock();
        let task = thread::spawn(move || *other.lock() += 1);
        demi_threads::parking_lot::MutexGuard::unlocked(&mut value, || task.join().unwrap());
        assert_eq!(*value, 1);
    });
}

#[test]
fn who_waits_for_what_happens_once_goes_on_when_it_has() {
    holds(|| {
        let shared = Arc::new((Once::new(), OnceLock::new()));
        let other = Arc::clone(&shared);
        let task = thread::spawn(move || {
            other.1.set(3).unwrap();
            other.0.call_once(|| ());
        });
        shared.0.wait();
        assert!(shared.0.is_completed());
        assert_eq!((*shared.1.wait(), *OnceLock::from(4).wait()), (3, 4));
        task.join().unwrap();
    });
    let alone = Check::named("alone").explore(|| Once::new().wait());
    let text = alone.finding().unwrap().failure().to_string();
    assert!(text.contains("waits in wait for Once of objects.rs"), "{text}");
    let poisoned = Check::named("poisoned").explore(|| {
        let once = Arc::new(Once::new());
        let other = Arc::clone(&once);
        let task = thread::spawn(move || {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                other.call_once(|| panic!("first"))
            }));
        });
        once.wait();
        task.join().unwrap();
    });
    let text = poisoned.finding().unwrap().failure().to_string();
    assert!(text.contains("previously been poisoned"), "{text}");
}

#[test]
fn atomics_are_updated_by_closures() {
    holds(|| {
        let shared = Arc::new((AtomicUsize::new(1), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let task =
            thread::spawn(move || other.0.update(Ordering::SeqCst, Ordering::SeqCst, |value| value * 2));
        let order = Ordering::SeqCst;
        assert!(shared.0.try_update(order, order, |value| value.checked_add(1)).is_ok());
        assert!([1, 2].contains(&task.join().unwrap()));
        assert!([3, 4].contains(&shared.0.load(order)));
        assert!(!shared.1.fetch_not(order) && shared.1.load(order));
    });
}

#[test]
fn a_barrier_has_one_leader() {
    holds(|| {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0), AtomicUsize::new(0)));
        let meet = |shared: &(Barrier, AtomicUsize, AtomicUsize)| {
            shared.1.fetch_add(1, Ordering::SeqCst);
            let leads = shared.0.wait().is_leader();
            assert_eq!(shared.1.load(Ordering::SeqCst), 2);
            shared.2.fetch_add(usize::from(leads), Ordering::SeqCst);
        };
        let other = Arc::clone(&shared);
        let task = thread::spawn(move || meet(&other));
        meet(&shared);
        task.join().unwrap();
        assert_eq!(shared.2.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn what_happens_once_happens_once() {
    holds(|| {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0), OnceLock::new()));
        let init = |shared: &(Once, AtomicUsize, OnceLock<usize>), value: usize| {
            shared.0.call_once(|| {
                shared.1.fetch_add(1, Ordering::SeqCst);
            });
            assert!(shared.0.is_completed());
            *shared.2.get_or_init(|| value)
        };
        let other = Arc::clone(&shared);
        let task = thread::spawn(move || init(&other, 1));
        let mine = init(&shared, 2);
        assert_eq!(mine, task.join().unwrap());
        assert_eq!(shared.1.load(Ordering::SeqCst), 1);
        assert_eq!(shared.2.set(9), Err(9));
        let lazy = LazyLock::new(|| 7);
        assert_eq!(*lazy, 7);
    });
}

#[test]
fn a_channel_keeps_order_and_knows_its_ends() {
    holds(|| {
        let (sender, receiver) = channel();
        let other = sender.clone();
        let task = thread::spawn(move || {
            other.send(1).unwrap();
            other.send(2).unwrap();
        });
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [1, 2]);
        task.join().unwrap();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Disconnected));
    });
    holds(|| {
        let (sender, receiver) = sync_channel(1);
        let task = thread::spawn(move || {
            sender.send(1).unwrap();
            assert!(matches!(
                sender.try_send(2),
                Ok(()) | Err(TrySendError::Full(2) | TrySendError::Disconnected(2))
            ));
        });
        assert_eq!(receiver.recv(), Ok(1));
        drop(receiver);
        task.join().unwrap();
    });
    holds(|| {
        let (sender, receiver) = sync_channel(0);
        let handed = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&handed);
        let task = thread::spawn(move || {
            sender.send(1).unwrap();
            assert!(other.load(Ordering::SeqCst), "the send ends after its receive began");
        });
        handed.store(true, Ordering::SeqCst);
        assert_eq!(receiver.recv(), Ok(1));
        task.join().unwrap();
    });
}

#[test]
fn a_park_ends_after_an_unpark_in_either_order() {
    holds(|| {
        let main = thread::current();
        let task = thread::spawn(move || main.unpark());
        thread::park();
        task.join().unwrap();
    });
}

#[cfg(feature = "parking_lot")]
#[test]
fn who_notifies_learns_how_many_it_woke() {
    use demi_threads::parking_lot::{Condvar, Mutex, const_mutex};

    holds(|| {
        let pair = Arc::new((const_mutex(0), Condvar::new()));
        assert!(!pair.1.notify_one() && pair.1.notify_all() == 0, "nobody waits");
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let pair: Arc<(Mutex<u32>, Condvar)> = Arc::clone(&pair);
                thread::spawn(move || {
                    let mut count = pair.0.lock();
                    *count += 1;
                    pair.1.wait_while(&mut count, |count| *count < 3);
                })
            })
            .collect();
        while *pair.0.lock() < 2 {
            thread::yield_now();
        }
        *pair.0.lock() = 3;
        assert_eq!(pair.1.notify_all(), 2);
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert!(!pair.0.is_locked());
    });
}

#[test]
fn cells_are_copied_and_compared() {
    holds(|| {
        let (one, two) = (OnceLock::from(1), OnceLock::<u32>::new());
        assert!(one == one.clone() && one != two && two == two.clone());
        let lazy: LazyLock<Vec<u32>> = LazyLock::default();
        assert!(lazy.is_empty());
    });
}

#[test]
fn each_task_has_its_own_values_in_each_execution() {
    use std::cell::Cell;

    demi_threads::thread_local! {
        static OWN: Cell<u32> = Cell::new(1);
    }
    holds(|| {
        let task = thread::spawn(|| {
            OWN.with(|own| own.set(own.get() + 1));
            thread::yield_now();
            OWN.with(Cell::get)
        });
        OWN.with(|own| own.set(own.get() + 10));
        thread::yield_now();
        assert_eq!((OWN.with(Cell::get), task.join().unwrap()), (11, 2));
    });
}

#[test]
fn a_scope_waits_for_its_tasks() {
    holds(|| {
        let mut values = [0, 0];
        let (one, two) = values.split_at_mut(1);
        let sum = thread::scope(|scope| {
            let first = scope.spawn(|| one[0] = 1);
            scope.spawn(|| two[0] = 2);
            first.join().unwrap();
            7
        });
        assert_eq!((sum, values), (7, [1, 2]));
    });
}

#[test]
fn a_panic_in_a_scope_is_a_failure_and_no_hang() {
    let outcome = Check::named("scope").explore(|| {
        let value = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| value.fetch_add(1, Ordering::SeqCst));
            panic!("in the scope");
        });
    });
    assert!(outcome.finding().unwrap().failure().to_string().contains("in the scope"));
}

#[test]
fn futures_are_polled_when_they_are_woken() {
    holds(|| {
        let one = future::spawn(async {
            future::yield_now().await;
            1
        });
        let two = future::spawn(async { 2 });
        assert_eq!(future::block_on(async { (one.await.unwrap(), two.await.unwrap()) }), (1, 2));
        let never = future::spawn(std::future::pending::<()>());
        never.abort();
        assert!(future::block_on(never).is_err());
    });
}

#[test]
fn a_future_that_nobody_wakes_is_a_deadlock() {
    let outcome = Check::named("pending").explore(|| future::block_on(std::future::pending::<()>()));
    assert!(outcome.finding().unwrap().failure().to_string().starts_with("deadlock: "));
}

#[test]
fn outside_of_a_test_the_objects_are_those_of_the_standard_library() {
    let lock = Mutex::new(1);
    *lock.lock().unwrap() += 1;
    assert_eq!(lock.into_inner().unwrap(), 2);
    let (sender, receiver) = channel();
    sender.send(3).unwrap();
    assert_eq!(receiver.recv(), Ok(3));
    let value = AtomicUsize::new(4);
    assert_eq!(value.fetch_add(1, Ordering::SeqCst), 4);
    assert_eq!(value.compare_exchange(9, 1, Ordering::SeqCst, Ordering::SeqCst), Err(5));
    let once = OnceLock::new();
    assert_eq!(once.get_or_init(|| 6), &6);
}

#[demi_threads::test(bound = 1)]
fn the_attribute_makes_a_test() {
    let value = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&value);
    let task = thread::spawn(move || other.fetch_add(1, Ordering::SeqCst));
    value.fetch_add(1, Ordering::SeqCst);
    task.join().unwrap();
    assert_eq!(value.load(Ordering::SeqCst), 2);
}

#[demi_threads::test(delays = 2, budget = 10_000)]
#[should_panic(expected = "demi-lineage threads report")]
fn the_attribute_makes_a_test_that_fails() {
    let value = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&value);
    let add = |value: &AtomicUsize| value.store(value.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
    let task = thread::spawn(move || add(&other));
    add(&value);
    task.join().unwrap();
    assert_eq!(value.load(Ordering::SeqCst), 2);
}

#[test]
fn two_locks_that_are_made_in_one_line_have_two_names() {
    let outcome = Check::named("line").explore(|| {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let task = thread::spawn(move || {
            let _first = other.1.lock().unwrap();
            let _second = other.0.lock().unwrap();
        });
        let first = locks.0.lock().unwrap();
        drop(locks.1.lock().unwrap());
        drop(first);
        task.join().unwrap();
    });
    let text = outcome.finding().unwrap().failure().to_string();
    assert!(text.contains("#1") && text.contains("#2"), "{text}");
}

/// A task's clock goes on with what it does, so that who waits for a time comes to its end; and a deadline may pass or not.
#[test]
fn a_deadline_comes_to_its_end() {
    use demi_threads::time::Instant;

    holds(|| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(50) {
            thread::yield_now();
        }
        let before = Instant::now();
        thread::sleep(Duration::from_secs(3));
        assert!(before.elapsed() >= Duration::from_secs(3) && before.elapsed() < Duration::from_secs(4));
        assert!(before + Duration::from_secs(1) < Instant::now());
        assert_eq!(before - Instant::now(), Duration::ZERO);
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&shared);
        let task = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut ready = shared.0.lock().unwrap();
        while !*ready {
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            let (guard, timed_out) = shared.1.wait_timeout(ready, deadline - now).unwrap();
            ready = guard;
            assert!(!timed_out.timed_out() || Instant::now() >= deadline);
        }
        drop(ready);
        task.join().unwrap();
    });
}
