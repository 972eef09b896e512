//! A lock for many readers or one writer, as [`std::sync::RwLock`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::op::{Kind, Place, ResourceId, ResourceKind, Tag};
use crate::step::step;
use crate::sync::mutex::{gives_back, held_elsewhere, takes};
use crate::world::World;

/// A lock that many readers share, or one writer has.
pub struct RwLock<T: ?Sized> {
    tag: Tag,
    inner: std::sync::RwLock<T>,
}

/// The right to look at the value until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: std::sync::RwLockReadGuard<'a, T>,
    at: Place,
}

/// The right to change the value until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: std::sync::RwLockWriteGuard<'a, T>,
    at: Place,
}

fn shares(world: &mut World, on: ResourceId, at: Place) {
    let current = world.current;
    world.of(on).readers.push(current);
    world.hold(on, at);
    world.reads(on);
}

fn unshares(world: &mut World, on: ResourceId) {
    let current = world.current;
    let readers = &mut world.of(on).readers;
    let at = readers.iter().position(|task| *task == current).unwrap_or(0);
    if at < readers.len() {
        let reader = readers.remove(at);
        world.release(on, reader);
    }
    world.reads(on);
}

impl<T> RwLock<T> {
    /// A lock that is free.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self { tag: Tag::new(Location::caller(), None), inner: std::sync::RwLock::new(value) }
    }

    /// A lock with a name for reports.
    #[track_caller]
    pub const fn named(name: &'static str, value: T) -> Self {
        Self { tag: Tag::new(Location::caller(), Some(name)), inner: std::sync::RwLock::new(value) }
    }

    /// The value.
    ///
    /// # Errors
    /// When a task panicked that held the lock to write.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    fn look(&self, at: Place) -> TryLockResult<RwLockReadGuard<'_, T>> {
        match self.inner.try_read() {
            Ok(inner) => Ok(RwLockReadGuard { lock: self, inner, at }),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = RwLockReadGuard { lock: self, inner: poisoned.into_inner(), at };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    fn change(&self, at: Place) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        match self.inner.try_write() {
            Ok(inner) => Ok(RwLockWriteGuard { lock: self, inner, at }),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = RwLockWriteGuard { lock: self, inner: poisoned.into_inner(), at };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// Waits until nobody writes.
    ///
    /// # Errors
    /// When a task panicked that held it to write; the lock is taken all the same.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        step(Kind::Read, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| shares(world, on, at));
        match self.look(at) {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => held_elsewhere("RwLock"),
        }
    }

    /// Waits until nobody reads or writes.
    ///
    /// # Errors
    /// When a task panicked that held it to write; the lock is taken all the same.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        step(Kind::Write, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| takes(world, on, at));
        match self.change(at) {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => held_elsewhere("RwLock"),
        }
    }

    /// Looks at the value if nobody writes.
    ///
    /// # Errors
    /// When somebody does, or when a task panicked that did.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let at = Location::caller();
        let free = step(Kind::TryRead, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| {
            let free = world.of(on).holder.is_none();
            if free {
                shares(world, on, at);
            } else {
                world.reads(on);
            }
            free
        });
        if free == Some(false) { Err(TryLockError::WouldBlock) } else { self.look(at) }
    }

    /// Takes the lock to change the value if nobody reads or writes.
    ///
    /// # Errors
    /// When somebody does, or when a task panicked that wrote.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        let free = step(Kind::TryWrite, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| {
            let free = world.of(on).holder.is_none() && world.of(on).readers.is_empty();
            if free {
                takes(world, on, at);
            } else {
                // Readers that came and went commute with each other, but not with one that looks whether they are there.
                world.writes(on);
            }
            free
        });
        if free == Some(false) { Err(TryLockError::WouldBlock) } else { self.change(at) }
    }

    /// Whether a task panicked that held the lock to write.
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
    /// When a task panicked that held the lock to write.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        step(Kind::Unread, Some((&self.lock.tag, ResourceKind::RwLock)), self.at, unshares);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        step(Kind::Unwrite, Some((&self.lock.tag, ResourceKind::RwLock)), self.at, gives_back);
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
