//! What invariants and bounds look at.

use crate::model::Model;
use crate::names::{ActorId, Names};
use crate::world::Status;

/// A configuration, however it is held: the states of cells and which actors run.
pub trait Configuration<M: Model> {
    /// Whether an actor takes messages.
    fn status(&self, actor: ActorId) -> Status;

    /// The state of a cell; `None` if nobody who works on it has started.
    fn cell(&self, cell: ActorId) -> Option<&M::State>;

    /// How many actors there is room for, the outside included.
    fn actors(&self) -> usize;
}

/// What the invariants may look at: the states of the actors that answer, and which have failed.
pub struct View<'a, M: Model> {
    world: &'a dyn Configuration<M>,
    model: &'a M,
    /// Names of the actors.
    pub names: &'a Names,
}

impl<'a, M: Model> View<'a, M> {
    /// A view of a configuration.
    #[must_use]
    pub fn new(world: &'a dyn Configuration<M>, model: &'a M, names: &'a Names) -> Self {
        View { world, model, names }
    }

    /// The state of an actor that runs; `None` if it has not started, failed or is gone.
    #[must_use]
    pub fn state(&self, actor: ActorId) -> Option<&'a M::State> {
        match self.world.status(actor) {
            Status::Running | Status::Isolated => self.world.cell(self.model.cell(actor)),
            Status::Absent | Status::Crashed | Status::Stopped => None,
        }
    }

    /// Whether the actor has failed.
    #[must_use]
    pub fn crashed(&self, actor: ActorId) -> bool {
        self.world.status(actor) == Status::Crashed
    }

    /// Every actor known to the world, in the order of their ids.
    pub fn actors(&self) -> impl Iterator<Item = ActorId> + use<M> {
        (1..self.world.actors()).map(|i| ActorId(i as u16))
    }
}

/// A pending message or timer, as a bound sees it.
#[derive(Debug)]
pub struct Waiting<'a, Msg> {
    /// The sender it names.
    pub from: ActorId,
    /// The receiver.
    pub to: ActorId,
    /// The message.
    pub msg: &'a Msg,
}

/// A lower bound on the number of deliveries until a violation: of what every violating continuation must still
/// deliver, at most that much. 0 is always right. Continuations start no actors but those that handlers start.
pub struct Bound<M: Model> {
    /// Whether the bound looks at pending messages like this one. Those it does not look at may be kept from it.
    pub sees: Sees<M>,
    /// The bound, of a configuration and what is pending.
    pub least: Least<M>,
    /// How far the violation seems to be, where the bound says little: it may say more than is needed, and searches that
    /// prove nothing go by it. It looks at the same messages.
    pub toward: Option<Least<M>>,
}

/// Which messages a [`Bound`] looks at.
pub type Sees<M> = Box<dyn Fn(&<M as Model>::Msg) -> bool + Send + Sync>;

/// The function of a [`Bound`].
pub type Least<M> = Box<dyn Fn(&View<'_, M>, &[Waiting<'_, <M as Model>::Msg>]) -> usize + Send + Sync>;
