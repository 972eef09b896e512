//! A point of an execution, as it is before a space knows it.

use demi_replay::{Model, World};

/// A point of an execution.
#[derive(Debug)]
pub struct Moment<M: Model> {
    /// States, and what is pending.
    pub world: World<M>,
    /// How many steps of the test driver's program are done.
    pub done: usize,
    /// How many messages from outside were sent.
    pub sent: usize,
    /// How much of the recorded execution is done or passed over.
    pub at: usize,
    /// Whether messages from outside may come.
    pub open: bool,
}

impl<M: Model> Clone for Moment<M> {
    fn clone(&self) -> Self {
        Moment { world: self.world.clone(), ..*self }
    }
}

impl<M: Model> Moment<M> {
    /// A beginning.
    #[must_use]
    pub fn first(world: World<M>) -> Self {
        Moment { world, done: 0, sent: 0, at: 0, open: false }
    }
}
