//! A solution that was loaded into an oracle: verified steps, and worlds along them to start tests from.

use std::rc::Rc;
use std::time::Duration;

use demi_replay::script::Act;
use demi_replay::{Model, World};

use super::trace_keys::Numbered;
use crate::problem::size::Size;

/// How many acts lie between two kept worlds of a witness, at least.
const CHECKPOINT_EVERY: usize = 16;
/// How many worlds of a witness are kept, at most.
const CHECKPOINTS: usize = 1_024;

/// A schedule that was verified to break the invariant, with worlds along it to start tests from.
#[derive(Debug)]
pub struct Witness<M: Model> {
    /// The steps, each exactly as it happened.
    pub acts: Vec<Act>,
    /// Its size.
    pub size: Size,
    /// How long its strict verification took.
    pub took: Duration,
    /// How many of the first acts happened while the system started up by itself; none of them may be left out.
    pub pinned: usize,
    /// The world before act `i * checkpoint_every(acts)`.
    pub(crate) worlds: Vec<World<M>>,
    /// The acts by number.
    pub(crate) numbered: Vec<Numbered>,
    /// What tells the sequence from others.
    pub(crate) key: u128,
}

/// A witness shared between passes.
pub type Shared<M> = Rc<Witness<M>>;

/// How many acts lie between two kept worlds of a witness with so many. A world of a long execution may hold thousands of
/// pending messages, and tests of it run so many steps that a few more do not count.
pub(crate) fn checkpoint_every(acts: usize) -> usize {
    acts.div_ceil(CHECKPOINTS).max(CHECKPOINT_EVERY)
}
