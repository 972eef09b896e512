//! Looking at a world: for invariants, bounds and matching.

use super::Simulator;
use crate::model::{Bound, Model, View, Violation, Waiting};
use crate::names::{ActorId, OUTSIDE};
use crate::world::{Pending, World};

impl<M: Model> Simulator<M> {
    /// What invariants and conditions may look at.
    #[must_use]
    pub fn view<'a>(&'a self, world: &'a World<M>) -> View<'a, M> {
        View::new(world, &self.model, &self.names)
    }

    /// What is pending, as a [`Bound`](crate::model::Bound) sees it.
    #[must_use]
    pub fn waiting<'a>(&'a self, world: &'a World<M>) -> Vec<Waiting<'a, M::Msg>> {
        let entry = |p: &'a Pending| Waiting { from: p.from, to: p.to, msg: &self.info(p.msg).msg };
        world.pending().iter().map(entry).collect()
    }

    /// What is missing at least from a world to a violation, as a bound says.
    #[must_use]
    pub fn least(&self, world: &World<M>, bound: &Bound<M>) -> usize {
        (bound.least)(&self.view(world), &self.waiting(world))
    }

    /// Whether the system is still starting up by itself.
    #[must_use]
    pub fn starting_up(&self, world: &World<M>) -> bool {
        let cell = self.model.cell(OUTSIDE).index();
        world.cells.get(cell).and_then(Option::as_ref).is_some_and(|state| self.model.starting_up(state))
    }

    /// Checks the invariants on one configuration, with what earlier checks remembered.
    pub fn check(&self, world: &World<M>, history: &mut M::History, found: &mut Vec<Violation>) {
        self.model.check(&self.view(world), history, found);
    }

    /// The number that changes when anything changes that an invariant reads of the cell that `actor` works on;
    /// `None` where the model does not say.
    #[must_use]
    pub fn watch(&self, world: &World<M>, actor: ActorId) -> Option<u64> {
        world.cells[self.model.cell(actor).index()].as_ref().and_then(|state| self.model.watch(state))
    }

    /// How an actor's clock stands to a message's when it would be delivered now: −1 the message is older, 0 the
    /// same, 1 newer; `None` where either has no clock.
    #[must_use]
    pub fn relative_clock(&self, world: &World<M>, entry: &Pending) -> Option<i8> {
        let message = self.infos[entry.msg.0 as usize].clock?;
        let cell = world.cells[self.model.cell(entry.to).index()].as_ref()?;
        let actor = self.model.actor_clock(cell)?;
        Some(message.cmp(&actor) as i8)
    }
}
