//! A lock for many readers or one writer, as [`std::sync::RwLock`].

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::op::{Kind, Place, ResourceId, ResourceKind, Tag};
use crate::step::{came_to, step};
use crate::sync::mutex::{gives_back, held_elsewhere, takes};
use crate::world::World;

/// A lock that many readers share, or one writer has. While somebody reads and a writer waits, further readers have to wait too: one task that
/// reads twice can deadlock, as it can with the lock of the standard library.
pub struct RwLock<T: ?Sized> {
    tag: Tag,
    inner: std::sync::RwLock<T>,
}

/// The right to look at the value until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<std::sync::RwLockReadGuard<'a, T>>,
    at: Place,
}

/// The right to change the value until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<std::sync::RwLockWriteGuard<'a, T>>,
    at: Place,
}

/// The right to look at the value, and to become the one that changes it, until it is dropped.
#[must_use = "if unused, the lock is given back at once"]
#[cfg(feature = "parking_lot")]
pub struct RwLockUpgradableReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    inner: Option<std::sync::RwLockReadGuard<'a, T>>,
    at: Place,
}

/// Somebody comes in while writers waited for readers that have left: they have to come again, as one does that is woken and finds the lock taken.
fn overtakes(world: &mut World, on: ResourceId) -> bool {
    let lock = world.of(on);
    let any = !lock.queued.is_empty();
    lock.queued.clear();
    any
}

/// What an attempt to write comes to while others read.
const WAITS: &str = "others read";

fn would_block<G>() -> TryLockResult<G> {
    came_to("it is held");
    Err(TryLockError::WouldBlock)
}

fn shares(world: &mut World, on: ResourceId, at: Place) {
    let current = world.current;
    let overtook = world.of(on).readers.is_empty() && overtakes(world, on);
    world.of(on).readers.push(current);
    world.hold(on, at);
    if overtook {
        world.writes(on);
    } else {
        world.reads(on);
    }
}

/// A task comes to write: it has the lock, or waits until those that read have left. Says which.
fn comes_to_write(world: &mut World, on: ResourceId, at: Place) -> bool {
    let current = world.current;
    let lock = world.of(on);
    let free = lock.readers.is_empty();
    if free {
        lock.queued.remove(current);
        takes(world, on, at);
    } else {
        lock.queued.insert(current);
        world.writes(on);
    }
    free
}

/// Who wrote reads now; nobody else came in between.
fn downgrades(world: &mut World, on: ResourceId) {
    if let Some(holder) = world.of(on).holder.take() {
        world.of(on).readers.push(holder);
    }
    world.writes(on);
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
            Ok(inner) => Ok(RwLockReadGuard { lock: self, inner: Some(inner), at }),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = RwLockReadGuard { lock: self, inner: Some(poisoned.into_inner()), at };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    fn change(&self, at: Place) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        match self.inner.try_write() {
            Ok(inner) => Ok(RwLockWriteGuard { lock: self, inner: Some(inner), at }),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = RwLockWriteGuard { lock: self, inner: Some(poisoned.into_inner()), at };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// Waits until nobody writes, and no writer waits for those that read.
    ///
    /// # Errors
    /// When a task panicked that held it to write; the lock is taken all the same.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.reads(Kind::Read, Location::caller())
    }

    pub(crate) fn reads(&self, kind: Kind, at: Place) -> LockResult<RwLockReadGuard<'_, T>> {
        step(kind, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| shares(world, on, at));
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
        self.writes(Kind::Write, at);
        match self.change(at) {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => held_elsewhere("RwLock"),
        }
    }

    /// Comes to write, and once more where others read.
    fn writes(&self, kind: Kind, at: Place) {
        let comes = || {
            step(kind, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| comes_to_write(world, on, at))
        };
        while comes() == Some(false) {
            came_to(WAITS);
        }
    }

    /// Looks at the value if nobody writes, and no writer waits for those that read.
    ///
    /// # Errors
    /// When somebody does, or when a task panicked that wrote.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.try_reads(true, Location::caller())
    }

    pub(crate) fn try_reads(
        &self,
        lets_writers_first: bool,
        at: Place,
    ) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let free = step(Kind::TryRead, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| {
            let lock = world.of(on);
            let free = if lets_writers_first { lock.lets_readers_in() } else { lock.holder.is_none() };
            if free {
                shares(world, on, at);
            } else {
                world.reads(on);
            }
            free
        });
        if free == Some(false) { would_block() } else { self.look(at) }
    }

    /// Takes the lock to change the value if nobody reads or writes.
    ///
    /// # Errors
    /// When somebody does, or when a task panicked that wrote.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let at = Location::caller();
        let free = step(Kind::TryWrite, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| {
            let lock = world.of(on);
            let free = lock.holder.is_none() && lock.upgrader.is_none() && lock.readers.is_empty();
            if free {
                takes(world, on, at);
            } else {
                // Readers that came and went commute with each other, but not with one that looks whether they are there.
                world.writes(on);
            }
            free
        });
        if free == Some(false) { would_block() } else { self.change(at) }
    }

    /// Whether somebody writes, and whether somebody reads: a look, which keeps nobody from it.
    #[cfg(feature = "parking_lot")]
    pub(crate) fn is_held(&self, at: Place) -> (bool, bool) {
        let held = step(Kind::TryWrite, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| {
            world.writes(on);
            let lock = world.of(on);
            (lock.holder.is_some(), !lock.readers.is_empty() || lock.upgrader.is_some())
        });
        held.unwrap_or_else(|| {
            let writes = matches!(self.inner.try_read(), Err(TryLockError::WouldBlock));
            (writes, !writes && matches!(self.inner.try_write(), Err(TryLockError::WouldBlock)))
        })
    }

    /// Waits until nobody writes or may come to write before this one.
    #[cfg(feature = "parking_lot")]
    pub(crate) fn upgradable_read(&self, at: Place) -> RwLockUpgradableReadGuard<'_, T> {
        let kind = Kind::UpgradableRead;
        step(kind, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| may_upgrade(world, on, at));
        self.looks_upgradably(at).unwrap_or_else(|| held_elsewhere("RwLock"))
    }

    /// The same without waiting.
    #[cfg(feature = "parking_lot")]
    pub(crate) fn try_upgradable_read(&self, at: Place) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        let kind = Kind::TryUpgradableRead;
        let free = step(kind, Some((&self.tag, ResourceKind::RwLock)), at, |world, on| {
            let lock = world.of(on);
            let free = lock.upgrader.is_none() && lock.lets_readers_in();
            if free {
                may_upgrade(world, on, at);
            } else {
                world.reads(on);
            }
            free
        });
        if free == Some(false) {
            came_to("it is held");
            return None;
        }
        self.looks_upgradably(at)
    }

    #[cfg(feature = "parking_lot")]
    fn looks_upgradably(&self, at: Place) -> Option<RwLockUpgradableReadGuard<'_, T>> {
        let inner = match self.inner.try_read() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(RwLockUpgradableReadGuard { lock: self, inner: Some(inner), at })
    }

    /// The right to change the value, which the world has given already.
    #[cfg(feature = "parking_lot")]
    fn changes(&self, at: Place) -> RwLockWriteGuard<'_, T> {
        match self.change(at) {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => held_elsewhere("RwLock"),
        }
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

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Reads on, without anybody writing in between.
    pub fn downgrade(mut guard: Self) -> RwLockReadGuard<'a, T> {
        let (lock, at) = (guard.lock, guard.at);
        step(Kind::Downgrade, Some((&lock.tag, ResourceKind::RwLock)), at, downgrades);
        drop(guard.inner.take());
        match lock.look(at) {
            Ok(reads) => reads,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => held_elsewhere("RwLock"),
        }
    }

    /// Reads on, and may write again without giving the lock back.
    #[cfg(feature = "parking_lot")]
    pub fn downgrade_to_upgradable(mut guard: Self) -> RwLockUpgradableReadGuard<'a, T> {
        let (lock, at) = (guard.lock, guard.at);
        step(Kind::Downgrade, Some((&lock.tag, ResourceKind::RwLock)), at, |world, on| {
            let holder = world.of(on).holder.take();
            world.of(on).upgrader = holder;
            world.writes(on);
        });
        drop(guard.inner.take());
        lock.looks_upgradably(at).unwrap_or_else(|| held_elsewhere("RwLock"))
    }
}

/// The task that runs may read, and come to write before any other.
#[cfg(feature = "parking_lot")]
fn may_upgrade(world: &mut World, on: ResourceId, at: Place) {
    let current = world.current;
    if world.of(on).readers.is_empty() {
        overtakes(world, on);
    }
    world.of(on).upgrader = Some(current);
    world.hold(on, at);
    world.writes(on);
}

#[cfg(feature = "parking_lot")]
impl<'a, T: ?Sized> RwLockUpgradableReadGuard<'a, T> {
    /// Waits until nobody else reads, and writes.
    #[track_caller]
    pub fn upgrade(mut guard: Self) -> RwLockWriteGuard<'a, T> {
        let (lock, at) = (guard.lock, Location::caller());
        let comes = || {
            step(Kind::Upgrade, Some((&lock.tag, ResourceKind::RwLock)), at, |world, on| {
                let free = world.of(on).readers.is_empty();
                if free {
                    upgrades(world, on, at);
                } else {
                    comes_to_write(world, on, at);
                }
                free
            })
        };
        while comes() == Some(false) {
            came_to(WAITS);
        }
        drop(guard.inner.take());
        lock.changes(at)
    }

    /// Writes if nobody else reads.
    ///
    /// # Errors
    /// With the guard, when somebody does.
    #[track_caller]
    pub fn try_upgrade(mut guard: Self) -> Result<RwLockWriteGuard<'a, T>, Self> {
        let (lock, at) = (guard.lock, Location::caller());
        let free = step(Kind::TryUpgrade, Some((&lock.tag, ResourceKind::RwLock)), at, |world, on| {
            let free = world.of(on).readers.is_empty();
            if free {
                upgrades(world, on, at);
            } else {
                world.writes(on);
            }
            free
        });
        if free == Some(false) {
            came_to("others read");
            return Err(guard);
        }
        drop(guard.inner.take());
        Ok(lock.changes(at))
    }

    /// Reads on as any reader.
    pub fn downgrade(mut guard: Self) -> RwLockReadGuard<'a, T> {
        let (lock, at) = (guard.lock, guard.at);
        step(Kind::Downgrade, Some((&lock.tag, ResourceKind::RwLock)), at, |world, on| {
            if let Some(upgrader) = world.of(on).upgrader.take() {
                world.of(on).readers.push(upgrader);
            }
            world.writes(on);
        });
        let inner = guard.inner.take();
        RwLockReadGuard { lock, inner, at }
    }
}

/// Who could come to write before any other does.
#[cfg(feature = "parking_lot")]
fn upgrades(world: &mut World, on: ResourceId, at: Place) {
    let current = world.current;
    let lock = world.of(on);
    lock.queued.remove(current);
    if let Some(upgrader) = lock.upgrader.take() {
        world.release(on, upgrader);
    }
    takes(world, on, at);
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            step(Kind::Unread, Some((&self.lock.tag, ResourceKind::RwLock)), self.at, unshares);
        }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            step(Kind::Unwrite, Some((&self.lock.tag, ResourceKind::RwLock)), self.at, gives_back);
        }
    }
}

#[cfg(feature = "parking_lot")]
impl<T: ?Sized> Drop for RwLockUpgradableReadGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            let kind = Kind::EndUpgradable;
            step(kind, Some((&self.lock.tag, ResourceKind::RwLock)), self.at, |world, on| {
                if let Some(upgrader) = world.of(on).upgrader.take() {
                    world.release(on, upgrader);
                }
                world.writes(on);
            });
        }
    }
}

#[cfg(feature = "parking_lot")]
impl<T: ?Sized> Deref for RwLockUpgradableReadGuard<'_, T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only what ends the guard takes it")]
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard that lives has the lock")
    }
}

#[cfg(feature = "parking_lot")]
impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockUpgradableReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only what ends the guard takes it")]
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard that lives has the lock")
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only what ends the guard takes it")]
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard that lives has the lock")
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[allow(clippy::expect_used, reason = "only what ends the guard takes it")]
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard that lives has the lock")
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
