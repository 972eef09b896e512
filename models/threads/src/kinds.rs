//! Kinds of bugs with objects that only some libraries have: what the regression tests of runtimes for such tests are about.

use demi_threads::sync::atomic::{AtomicBool, Ordering::SeqCst};
use demi_threads::sync::mpsc::sync_channel;
use demi_threads::sync::{Arc, Barrier, Mutex, Once, RwLock};
use demi_threads::{future, thread};

/// A reader wants to write, and does not stop reading.
pub fn upgrade() {
    let lock = Arc::new(RwLock::new(0));
    let add = |lock: &RwLock<u32>| {
        let seen = lock.read().unwrap();
        let value = *seen + 1;
        // What was read must not be held here.
        *lock.write().unwrap() = value;
        drop(seen);
    };
    let other = Arc::clone(&lock);
    let task = thread::spawn(move || add(&other));
    add(&lock);
    task.join().unwrap();
}

/// Two tasks hand something to each other over channels without room, and both send first.
pub fn rendezvous() {
    let (to_right, from_left) = sync_channel(0);
    let (to_left, from_right) = sync_channel(0);
    let right = thread::spawn(move || {
        to_left.send(1).unwrap();
        from_left.recv().unwrap()
    });
    to_right.send(2).unwrap();
    assert_eq!((from_right.recv().unwrap(), right.join().unwrap()), (1, 2));
}

/// A task is told twice to go on before it waits once: the second time is lost.
pub fn park_twice() {
    let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
    let other = Arc::clone(&flags);
    let task = thread::spawn(move || {
        thread::park();
        assert!(other.0.load(SeqCst));
        thread::park();
        assert!(other.1.load(SeqCst));
    });
    flags.0.store(true, SeqCst);
    task.thread().unpark();
    flags.1.store(true, SeqCst);
    task.thread().unpark();
    task.join().unwrap();
}

/// One of those that meet at a barrier leaves early.
pub fn barrier() {
    let shared = Arc::new((Barrier::new(2), AtomicBool::new(false)));
    let other = Arc::clone(&shared);
    let task = thread::spawn(move || {
        if !other.1.load(SeqCst) {
            other.0.wait();
        }
    });
    shared.1.store(true, SeqCst);
    shared.0.wait();
    task.join().unwrap();
}

/// What happens once needs a lock that somebody holds who waits for it to have happened.
pub fn once_under_lock() {
    let shared = Arc::new((Once::new(), Mutex::new(0)));
    let other = Arc::clone(&shared);
    let task = thread::spawn(move || other.0.call_once(|| *other.1.lock().unwrap() += 1));
    let held = shared.1.lock().unwrap();
    shared.0.call_once(|| ());
    drop(held);
    task.join().unwrap();
}

/// A future looks whether it is done before it says whom to wake. After affinitypool, mended in its pull request 7.
pub fn late_waker() {
    use std::task::{Poll, Waker};
    let shared = Arc::new((AtomicBool::new(false), Mutex::new(None::<Waker>)));
    let other = Arc::clone(&shared);
    let task = thread::spawn(move || {
        other.0.store(true, SeqCst);
        let waker = other.1.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    future::block_on(std::future::poll_fn(|context| {
        if shared.0.load(SeqCst) {
            return Poll::Ready(());
        }
        *shared.1.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    }));
    task.join().unwrap();
}

/// Locks of parking_lot in opposite orders.
pub fn parking_lot() {
    use demi_threads::parking_lot::Mutex;
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let other = Arc::clone(&locks);
    let task = thread::spawn(move || {
        let first = other.1.lock();
        *other.0.lock() += *first;
    });
    let first = locks.0.lock();
    *locks.1.lock() += *first;
    drop(first);
    task.join().unwrap();
}
