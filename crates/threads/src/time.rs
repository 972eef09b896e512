//! Time, which a schedule does not have: a sleep lets others go first, and how long it takes is not known.
//!
//! [`Instant`] counts what a task has done: it goes on with each question, faster and faster, and by the whole of each sleep and each wait that ended because
//! its time was up. So a loop that waits until a time has passed comes to its end, and what a task is told hangs on nothing but its own steps.

use std::cell::Cell;
use std::ops::{Add, AddAssign, Sub, SubAssign};

pub use std::time::Duration;

pub use crate::thread::sleep;
use crate::world::WORLD;

/// How far a task's clock goes on with a question, at least and at most: an eighth of the time in between.
const LEAST: Duration = Duration::from_micros(1);
const MOST: Duration = Duration::from_millis(10);

thread_local! {
    static OUTSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Lets the clock of the task that runs go on; gives what it shows then.
pub(crate) fn pass(time: Duration) -> Duration {
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        let current = usize::from(world.current);
        match world.tasks.get_mut(current).filter(|_| world.active) {
            Some(task) => {
                task.clock = task.clock.saturating_add(time);
                task.clock
            }
            None => OUTSIDE.with(|clock| {
                clock.set(clock.get().saturating_add(time));
                clock.get()
            }),
        }
    })
}

/// A time by the clock of a task, with the methods of [`std::time::Instant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// The time now, which is later than at the last question.
    #[must_use]
    pub fn now() -> Instant {
        let further = (pass(Duration::ZERO) / 8).clamp(LEAST, MOST);
        Instant(pass(further))
    }

    /// The time since then, by the clock of the task that asks.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// The time from an earlier one to this; none where that is later, as one of another task's clock may be.
    #[must_use]
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// The same.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from an earlier one to this; nothing where that is later.
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_sub(earlier.0)
    }

    /// A later time.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_add(duration).map(Instant)
    }

    /// An earlier time, no earlier than the beginning.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.0.checked_sub(duration).map(Instant)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0 - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}
