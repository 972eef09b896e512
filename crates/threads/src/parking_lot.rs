//! Locks with the names and signatures of the crate `parking_lot`: without poisoning, and with a condition variable that borrows its guard.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{PoisonError, TryLockError};

use crate::op::Kind;
pub use crate::sync::{Once, OnceState};
use crate::time::{Duration, Instant};
use crate::{sync, thread};

/// A lock that protects a value.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

/// The right to use the value until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
pub struct MutexGuard<'a, T: ?Sized>(Option<sync::MutexGuard<'a, T>>);

/// A lock that many readers share, or one writer has.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

/// The right to look at the value until it is dropped.
pub type RwLockReadGuard<'a, T> = sync::RwLockReadGuard<'a, T>;

/// The right to change the value until it is dropped.
pub type RwLockWriteGuard<'a, T> = sync::RwLockWriteGuard<'a, T>;

/// The right to look at the value, and to become the one that changes it, until it is dropped.
pub type RwLockUpgradableReadGuard<'a, T> = sync::RwLockUpgradableReadGuard<'a, T>;

/// Tasks wait at it until another one notifies them.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

/// Whether a wait ended because its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it did.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

fn unpoisoned<G>(guard: Result<G, TryLockError<G>>) -> Option<G> {
    match guard {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What can be had now, or once others went first.
#[track_caller]
fn now_or_later<G>(time: Duration, take: impl Fn() -> Option<G>) -> Option<G> {
    take().or_else(|| {
        thread::sleep(time);
        take()
    })
}

/// A lock that is free, in a constant.
#[track_caller]
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::new(value)
}

/// A lock for readers and writers that is free, in a constant.
#[track_caller]
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::new(value)
}

impl<T> Mutex<T> {
    /// A lock that is free.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock and takes it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock_again(Location::caller()).unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the lock if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        unpoisoned(self.0.try_lock()).map(|guard| MutexGuard(Some(guard)))
    }

    /// Takes the lock if it is free, or is once others went first: how long they take, nobody knows.
    #[track_caller]
    pub fn try_lock_for(&self, time: Duration) -> Option<MutexGuard<'_, T>> {
        now_or_later(time, || self.try_lock())
    }

    /// The same until a time.
    #[track_caller]
    pub fn try_lock_until(&self, time: Instant) -> Option<MutexGuard<'_, T>> {
        self.try_lock_for(time.saturating_duration_since(Instant::now()))
    }

    /// Whether somebody holds it.
    #[track_caller]
    pub fn is_locked(&self) -> bool {
        self.0.is_held(Location::caller())
    }

    /// The value, which nobody else can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> MutexGuard<'_, T> {
    /// Gives the lock back while a closure runs, and takes it again.
    #[track_caller]
    pub fn unlocked<F, U>(guard: &mut Self, f: F) -> U
    where
        F: FnOnce() -> U,
    {
        let at = Location::caller();
        let mutex = guard.0.as_ref().map(sync::MutexGuard::mutex);
        guard.0 = None;
        let result = f();
        guard.0 = mutex.map(|mutex| mutex.lock_again(at).unwrap_or_else(PoisonError::into_inner));
        result
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only a wait takes it, and puts it back")]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("a guard that lives has the lock")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[allow(clippy::expect_used, reason = "only a wait takes it, and puts it back")]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("a guard that lives has the lock")
    }
}

impl<T> RwLock<T> {
    /// A lock that is free.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes, also if a writer waits for those that read.
    #[track_caller]
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        self.0.reads(Kind::ReadRecursive, Location::caller()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the value if nobody writes, also if a writer waits for those that read.
    #[track_caller]
    pub fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, T>> {
        unpoisoned(self.0.try_reads(false, Location::caller()))
    }

    /// Waits until nobody writes or may come to write before this one.
    #[track_caller]
    pub fn upgradable_read(&self) -> RwLockUpgradableReadGuard<'_, T> {
        self.0.upgradable_read(Location::caller())
    }

    /// Looks at the value if nobody writes or may come to write before this one.
    #[track_caller]
    pub fn try_upgradable_read(&self) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        self.0.try_upgradable_read(Location::caller())
    }

    /// Whether somebody reads or writes.
    #[track_caller]
    pub fn is_locked(&self) -> bool {
        let (writes, reads) = self.0.is_held(Location::caller());
        writes || reads
    }

    /// Whether somebody writes.
    #[track_caller]
    pub fn is_locked_exclusive(&self) -> bool {
        self.0.is_held(Location::caller()).0
    }

    /// Waits until nobody writes, and no writer waits for those that read.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody reads or writes.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the value if nobody writes, and no writer waits for those that read.
    #[track_caller]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        unpoisoned(self.0.try_read())
    }

    /// Takes the lock to change the value if nobody reads or writes.
    #[track_caller]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        unpoisoned(self.0.try_write())
    }

    /// Looks at the value if nobody writes, or once others went first.
    #[track_caller]
    pub fn try_read_for(&self, time: Duration) -> Option<RwLockReadGuard<'_, T>> {
        now_or_later(time, || self.try_read())
    }

    /// Takes the lock to change the value if nobody reads or writes, or once others went first.
    #[track_caller]
    pub fn try_write_for(&self, time: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        now_or_later(time, || self.try_write())
    }

    /// Looks at the value until a time if nobody writes, or once others went first.
    #[track_caller]
    pub fn try_read_until(&self, time: Instant) -> Option<RwLockReadGuard<'_, T>> {
        self.try_read_for(time.saturating_duration_since(Instant::now()))
    }

    /// Takes the lock to change the value until a time if nobody reads or writes, or once others went first.
    #[track_caller]
    pub fn try_write_until(&self, time: Instant) -> Option<RwLockWriteGuard<'_, T>> {
        self.try_write_for(time.saturating_duration_since(Instant::now()))
    }

    /// The value, which nobody else can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condvar {
    /// A condition variable at which nobody waits.
    #[track_caller]
    #[must_use]
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Gives the lock back, waits for a notification, and takes the lock again.
    #[track_caller]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.0.take() {
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Waits while a condition holds.
    #[track_caller]
    pub fn wait_while<T, F>(&self, guard: &mut MutexGuard<'_, T>, mut condition: F)
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// Waits for a notification or the end of a time, whichever the schedule says: there is no clock.
    #[track_caller]
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> WaitTimeoutResult {
        let Some(held) = guard.0.take() else { return WaitTimeoutResult(true) };
        let (held, result) = self.0.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
        WaitTimeoutResult(result.timed_out())
    }

    /// The same until a time.
    #[track_caller]
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, time: Instant) -> WaitTimeoutResult {
        self.wait_for(guard, time.saturating_duration_since(Instant::now()))
    }

    /// Waits while a condition holds, at most for a time.
    #[track_caller]
    pub fn wait_while_for<T, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: F,
        time: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut **guard) {
            if self.wait_for(guard, time).timed_out() {
                return WaitTimeoutResult(condition(&mut **guard));
            }
        }
        WaitTimeoutResult(false)
    }

    /// Wakes one of those that wait, any one; whether there was one.
    #[track_caller]
    pub fn notify_one(&self) -> bool {
        self.0.notify(Kind::NotifyOne, Location::caller()) > 0
    }

    /// Wakes all that wait, and says how many.
    #[track_caller]
    pub fn notify_all(&self) -> usize {
        self.0.notify(Kind::NotifyAll, Location::caller())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
