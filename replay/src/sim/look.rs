//! Looking at a world: for invariants, bounds and matching.

use super::Simulator;
use crate::model::{DistanceOf, Model, View, Violation, Waiting};
use crate::names::{ActorId, OUTSIDE};
use crate::world::{Pending, World};

impl<M: Model> Simulator<M> {
    /// What invariants and conditions may look at.
    #[must_use]
    pub fn view<'a>(&'a self, world: &'a World<M>) -> View<'a, M::State> {
        View::new(world, &self.model, &self.names)
    }

    /// The cell of memory that an actor works on.
    #[must_use]
    pub fn cell_of(&self, actor: ActorId) -> ActorId {
        self.model.runtime().cell(actor)
    }

    /// What is pending, as [estimates](crate::model::Estimate) see it.
    #[must_use]
    pub fn waiting<'a>(&'a self, world: &'a World<M>) -> Vec<Waiting<'a, M::Msg>> {
        let entry = |p: &'a Pending| Waiting { from: p.from, to: p.to, msg: &self.info(p.msg).msg };
        world.pending().iter().map(entry).collect()
    }

    /// How many deliveries are missing at least from a world to a violation.
    #[must_use]
    pub fn lower_bound(&self, world: &World<M>, distance: &DistanceOf<M>) -> usize {
        (distance.lower_bound)(&self.view(world), &self.waiting(world))
    }

    /// Whether the system is still starting up by itself.
    #[must_use]
    pub fn starting_up(&self, world: &World<M>) -> bool {
        let cell = self.cell_of(OUTSIDE).index();
        world
            .cells
            .get(cell)
            .and_then(Option::as_ref)
            .is_some_and(|state| self.model.runtime().starting_up(state))
    }

    /// The actors that can never go on by themselves, in the order of their ids: each takes nothing that is pending, and
    /// waits for another one of them ([`Runtime::waits_for`](crate::Runtime::waits_for)).
    #[must_use]
    pub fn deadlocked(&self, world: &World<M>) -> Vec<ActorId> {
        let view = self.view(world);
        let takes = |actor| world.pending().iter().any(|p| p.to == actor && self.takes(world, p));
        let mut waiting: Vec<(ActorId, Vec<ActorId>)> = view
            .actors()
            .filter_map(|actor| Some((actor, self.model.runtime().waits_for(view.state(actor)?, actor))))
            .filter(|(actor, others)| !others.is_empty() && !takes(*actor))
            .collect();
        loop {
            let stuck: Vec<ActorId> = waiting.iter().map(|(actor, _)| *actor).collect();
            waiting.retain(|(_, others)| others.iter().any(|other| stuck.contains(other)));
            if waiting.len() == stuck.len() {
                return stuck;
            }
        }
    }

    /// Checks the invariants on one configuration, with what earlier checks remembered.
    pub fn check(&self, world: &World<M>, history: &mut M::History, found: &mut Vec<Violation>) {
        self.model.check(&self.view(world), history, found);
    }

    /// The number that changes when anything changes that an invariant reads of the cell that `actor` works on;
    /// `None` where the model does not say.
    #[must_use]
    pub fn watch(&self, world: &World<M>, actor: ActorId) -> Option<u64> {
        world.cells[self.cell_of(actor).index()].as_ref().and_then(|state| self.model.guidance().watch(state))
    }

    /// How an actor's clock stands to a message's when it would be delivered now: −1 the message is older, 0 the
    /// same, 1 newer; `None` where either has no clock.
    #[must_use]
    pub fn relative_clock(&self, world: &World<M>, entry: &Pending) -> Option<i8> {
        let message = self.infos[entry.msg.0 as usize].clock?;
        let cell = world.cells[self.cell_of(entry.to).index()].as_ref()?;
        let actor = self.model.guidance().actor_clock(cell)?;
        Some(message.cmp(&actor) as i8)
    }
}
