//! A lock, as [`std::sync::Mutex`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::op::{Kind, Place, ResourceId, ResourceKind, Tag};
use crate::step::{came_to, step};
use crate::world::World;

/// A lock that protects a value.
pub struct Mutex<T: ?Sized> {
    tag: Tag,
    inner: std::sync::Mutex<T>,
}

/// The right to use the value until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
    inner: Option<std::sync::MutexGuard<'a, T>>,
    at: Place,
}

/// The lock belongs to the task that runs.
pub(crate) fn takes(world: &mut World, on: ResourceId, at: Place) {
    let current = world.current;
    world.of(on).holder = Some(current);
    world.hold(on, at);
    world.writes(on);
}

/// The lock belongs to nobody.
pub(crate) fn gives_back(world: &mut World, on: ResourceId) {
    if let Some(holder) = world.of(on).holder.take() {
        world.release(on, holder);
    }
    world.writes(on);
}

/// Somebody outside of the execution has the lock: one that was left in a static, or a thread of the operating system.
#[track_caller]
#[allow(clippy::panic, reason = "the test cannot go on, and waiting would be for ever")]
pub(crate) fn held_elsewhere(what: &str) -> ! {
    panic!(
        "a {what} of demi_threads is held by something that is no task of this execution: a thread that std started, or an earlier execution that \
         was stopped while it held a static; start threads with demi_threads::thread and make what is shared inside of the test"
    )
}

impl<T> Mutex<T> {
    /// A lock that is free.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self { tag: Tag::new(Location::caller(), None), inner: std::sync::Mutex::new(value) }
    }

    /// A lock with a name for reports.
    #[track_caller]
    pub const fn named(name: &'static str, value: T) -> Self {
        Self { tag: Tag::new(Location::caller(), Some(name)), inner: std::sync::Mutex::new(value) }
    }

    /// The value.
    ///
    /// # Errors
    /// When a task panicked that held the lock.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    fn take(&self, at: Place) -> LockResult<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(MutexGuard { lock: self, inner: Some(inner), at }),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(PoisonError::new(MutexGuard { lock: self, inner: Some(poisoned.into_inner()), at }))
            }
            Err(TryLockError::WouldBlock) => held_elsewhere("Mutex"),
        }
    }

    /// Waits for the lock and takes it.
    ///
    /// # Errors
    /// When a task panicked that held it; the lock is taken all the same.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let at = Location::caller();
        step(Kind::Lock, Some((&self.tag, ResourceKind::Mutex)), at, |world, on| takes(world, on, at));
        self.take(at)
    }

    pub(crate) fn lock_again(&self, at: Place) -> LockResult<MutexGuard<'_, T>> {
        step(Kind::Lock, Some((&self.tag, ResourceKind::Mutex)), at, |world, on| takes(world, on, at));
        self.take(at)
    }

    /// Whether somebody holds it: a look, which keeps nobody else from it.
    #[cfg(feature = "parking_lot")]
    pub(crate) fn is_held(&self, at: Place) -> bool {
        let held = step(Kind::TryLock, Some((&self.tag, ResourceKind::Mutex)), at, |world, on| {
            world.reads(on);
            world.of(on).holder.is_some()
        });
        held.unwrap_or_else(|| matches!(self.inner.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// When it is not, or when a task panicked that held it.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let at = Location::caller();
        let free = step(Kind::TryLock, Some((&self.tag, ResourceKind::Mutex)), at, |world, on| {
            let free = world.of(on).holder.is_none();
            if free {
                takes(world, on, at);
            } else {
                world.reads(on);
            }
            free
        });
        if free == Some(false) {
            came_to("it is held");
            return Err(TryLockError::WouldBlock);
        }
        if free.is_none() {
            return match self.inner.try_lock() {
                Ok(inner) => Ok(MutexGuard { lock: self, inner: Some(inner), at }),
                Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
                Err(TryLockError::Poisoned(poisoned)) => {
                    let guard = MutexGuard { lock: self, inner: Some(poisoned.into_inner()), at };
                    Err(TryLockError::Poisoned(PoisonError::new(guard)))
                }
            };
        }
        self.take(at).map_err(TryLockError::Poisoned)
    }

    /// Whether a task panicked that held the lock.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a task panicked.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// The value, which nobody else can have.
    ///
    /// # Errors
    /// When a task panicked that held the lock.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub(crate) fn mutex(&self) -> &'a Mutex<T> {
        self.lock
    }

    pub(crate) fn tag(&self) -> &'a Tag {
        &self.lock.tag
    }

    /// The guard ends without a step; the caller has made one.
    pub(crate) fn surrender(mut self) {
        drop(self.inner.take());
        std::mem::forget(self);
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        step(Kind::Unlock, Some((&self.lock.tag, ResourceKind::Mutex)), self.at, gives_back);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only `surrender` and `drop` take it")]
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard that lives has the lock")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[allow(clippy::expect_used, reason = "only `surrender` and `drop` take it")]
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard that lives has the lock")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
