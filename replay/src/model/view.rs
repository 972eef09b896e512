//! What invariants and estimates look at.

use crate::names::{ActorId, Names};

/// Whether an actor takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It has not started.
    Absent,
    /// It runs.
    Running,
    /// It runs, but nothing it sends from now on, and nothing sent to it, becomes pending.
    Isolated,
    /// It failed.
    Crashed,
    /// It is gone, with everything pending for it, unless it is started anew.
    Stopped,
}

/// A configuration, however it is held: the states of cells and which actors run.
pub trait Configuration<S> {
    /// Whether an actor takes messages.
    fn status(&self, actor: ActorId) -> Status;

    /// The state of a cell; `None` if nobody who works on it has started.
    fn cell(&self, cell: ActorId) -> Option<&S>;

    /// How many actors there is room for, the outside included.
    fn actors(&self) -> usize;
}

/// Which cell an actor works on. Every model is one, by [`Runtime::cell`](super::Runtime::cell).
pub trait Memory {
    /// The cell of an actor.
    fn cell_of(&self, actor: ActorId) -> ActorId;
}

/// What the invariants may look at: the states of the actors that answer, and which have failed.
pub struct View<'a, S> {
    world: &'a dyn Configuration<S>,
    memory: &'a dyn Memory,
    /// Names of the actors.
    pub names: &'a Names,
}

impl<'a, S> View<'a, S> {
    /// A view of a configuration.
    #[must_use]
    pub fn new(world: &'a dyn Configuration<S>, memory: &'a dyn Memory, names: &'a Names) -> Self {
        View { world, memory, names }
    }

    /// The state of an actor that runs; `None` if it has not started, failed or is gone.
    #[must_use]
    pub fn state(&self, actor: ActorId) -> Option<&'a S> {
        match self.world.status(actor) {
            Status::Running | Status::Isolated => self.world.cell(self.memory.cell_of(actor)),
            Status::Absent | Status::Crashed | Status::Stopped => None,
        }
    }

    /// Whether the actor has failed.
    #[must_use]
    pub fn crashed(&self, actor: ActorId) -> bool {
        self.world.status(actor) == Status::Crashed
    }

    /// Every actor known to the world, in the order of their ids.
    pub fn actors(&self) -> impl Iterator<Item = ActorId> + use<S> {
        (1..self.world.actors()).map(|i| ActorId(i as u16))
    }
}
