//! A barrier, as [`std::sync::Barrier`].

use std::fmt;
use std::panic::Location;

use crate::op::{Kind, ResourceKind, Tag};
use crate::step::{step, step_with};

/// A point at which tasks wait for each other.
pub struct Barrier {
    tag: Tag,
    tasks: usize,
}

/// Whether a task was the last one to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether it was.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// A barrier for so many tasks.
    #[track_caller]
    #[must_use]
    pub const fn new(tasks: usize) -> Self {
        Self { tag: Tag::new(Location::caller(), None), tasks }
    }

    /// Waits until as many tasks are here as the barrier is for.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let at = Location::caller();
        let object = Some((&self.tag, ResourceKind::Barrier));
        let mut before = 0;
        let last = step(Kind::Arrive, object, at, |world, on| {
            let barrier = world.of(on);
            before = barrier.generation;
            barrier.count += 1;
            let last = barrier.count as usize >= self.tasks;
            if last {
                barrier.count = 0;
                barrier.generation += 1;
            }
            world.writes(on);
            last
        });
        if last == Some(false) {
            step_with(Kind::Pass, object, at, |_, _| before, |world, on| world.reads(on));
        }
        BarrierWaitResult(last.unwrap_or(true))
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
