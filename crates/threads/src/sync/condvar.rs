//! A condition variable, as [`std::sync::Condvar`].

use std::fmt;
use std::panic::Location;
use std::sync::{LockResult, PoisonError};
use std::time::Duration;

use crate::op::{Kind, Place, ResourceKind, Tag};
use crate::step::{came_to, step};
use crate::sync::mutex::{MutexGuard, gives_back};
use crate::time::pass;

/// Tasks wait at it until another one notifies them. `notify_one` wakes any one of those that wait. Nobody wakes up without a reason.
pub struct Condvar {
    tag: Tag,
}

/// Whether a wait ended because its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it did.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition variable at which nobody waits.
    #[track_caller]
    #[must_use]
    pub const fn new() -> Self {
        Self { tag: Tag::new(Location::caller(), None) }
    }

    /// The same with a name for reports.
    #[track_caller]
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self { tag: Tag::new(Location::caller(), Some(name)) }
    }

    #[allow(clippy::panic, reason = "there is nobody who could notify")]
    fn wait_at<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        at: Place,
        wake: Kind,
    ) -> (LockResult<MutexGuard<'a, T>>, bool) {
        let mutex = guard.mutex();
        let object = Some((&self.tag, ResourceKind::Condvar));
        let waits = step(Kind::Wait, object, at, |world, on| {
            world.waits_at(on);
            world.writes(on);
            let lock = world.resource(guard.tag(), ResourceKind::Mutex);
            gives_back(world, lock);
        });
        if waits.is_none() {
            panic!("a Condvar of demi_threads is waited at outside of a test, where nobody can notify it");
        }
        guard.surrender();
        let notified = step(wake, object, at, |world, on| {
            let notified = world.wakes_at(on);
            world.writes(on);
            notified
        });
        if wake == Kind::WakeOrTimeOut {
            came_to(if notified == Some(false) { "timed out" } else { "woken" });
        }
        (mutex.lock_again(at), !notified.unwrap_or(true))
    }

    /// Gives the lock back, waits for a notification, and takes the lock again.
    ///
    /// # Errors
    /// When a task panicked that held the lock.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_at(guard, Location::caller(), Kind::Wake).0
    }

    /// Waits while a condition holds.
    ///
    /// # Errors
    /// When a task panicked that held the lock.
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            guard = self.wait_at(guard, Location::caller(), Kind::Wake).0?;
        }
        Ok(guard)
    }

    /// Waits for a notification or the end of a time, whichever the schedule says: there is no clock.
    ///
    /// # Errors
    /// When a task panicked that held the lock.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (guard, timed_out) = self.wait_at(guard, Location::caller(), Kind::WakeOrTimeOut);
        if timed_out {
            pass(time);
        }
        match guard {
            Ok(guard) => Ok((guard, WaitTimeoutResult(timed_out))),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), WaitTimeoutResult(timed_out)))),
        }
    }

    /// Waits while a condition holds, at most for a time.
    ///
    /// # Errors
    /// When a task panicked that held the lock.
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            let (next, timed_out) = self.wait_at(guard, Location::caller(), Kind::WakeOrTimeOut);
            guard = match next {
                Ok(guard) => guard,
                Err(poisoned) => {
                    return Err(PoisonError::new((poisoned.into_inner(), WaitTimeoutResult(timed_out))));
                }
            };
            if timed_out {
                pass(time);
                let still = condition(&mut *guard);
                return Ok((guard, WaitTimeoutResult(still)));
            }
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// Wakes one of those that wait, any one.
    #[track_caller]
    pub fn notify_one(&self) {
        self.notify(Kind::NotifyOne, Location::caller());
    }

    /// Wakes all that wait.
    #[track_caller]
    pub fn notify_all(&self) {
        self.notify(Kind::NotifyAll, Location::caller());
    }

    pub(crate) fn notify(&self, kind: Kind, at: Place) -> usize {
        let woken = step(kind, Some((&self.tag, ResourceKind::Condvar)), at, |world, on| {
            let woken = world.notify(on, kind == Kind::NotifyAll, at);
            world.writes(on);
            woken
        });
        woken.unwrap_or(0)
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}
