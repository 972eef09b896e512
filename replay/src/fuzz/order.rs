//! The order of deliveries of random runs, for others who make runs.

use demi_schemas::NetworkRule;
use demi_schemas::scenario::{FuzzSettings, Strategy};
use rand_chacha::ChaCha8Rng;

use super::candidates::{Candidates, Holds};
use super::strategy::{Order, skip};
use crate::model::Model;
use crate::names::ActorId;
use crate::pending::Pending;
use crate::sim::Simulator;
use crate::world::World;

/// The actors between which messages may be late, where that is known: those that may fail, of a system that takes one client message after the other.
pub(super) fn nodes<M: Model>(sim: &Simulator<M>) -> Vec<ActorId> {
    let model = sim.model();
    let mut nodes = if model.workload().paced() { model.actors().to_vec() } else { Vec::new() };
    nodes.retain(|&actor| model.runtime().fails(actor));
    nodes
}

/// Draws one of the candidates, of which there is at least one.
pub(super) fn draw<M: Model>(
    order: &mut Order,
    candidates: &Candidates,
    (sim, world): (&Simulator<M>, &World<M>),
    rng: &mut ChaCha8Rng,
) -> usize {
    let (view, runtime) = (sim.view(world), sim.model().runtime());
    let clock = |actor| view.state(actor).and_then(|state| runtime.clock(state));
    order.draw(candidates, world.pending(), (world.deliveries(), &clock), sim.model().actors(), rng)
}

/// The order in which a random run makes its deliveries: one of those that take turns in `fuzz` ([`Strategy::Mixed`]).
pub struct RandomOrder {
    order: Order,
    candidates: Candidates,
    holds: Holds,
}

impl RandomOrder {
    /// The order of the run with this number, of so many deliveries. Runs that follow each other take turns.
    pub fn new<M: Model>(sim: &Simulator<M>, run: u64, deliveries: u64, rng: &mut ChaCha8Rng) -> RandomOrder {
        let taking_turns = (Strategy::Mixed, nodes(sim));
        let order = Order::new(&FuzzSettings::default(), taking_turns, run, deliveries, rng);
        RandomOrder { order, candidates: Candidates::default(), holds: Holds::default() }
    }

    /// Which of the pending entries is delivered next; nothing where none can be.
    pub fn next<M: Model>(
        &mut self,
        sim: &Simulator<M>,
        world: &World<M>,
        rule: NetworkRule,
        rng: &mut ChaCha8Rng,
    ) -> Option<usize> {
        self.candidates.find(sim, world, rule, &mut self.holds);
        if self.candidates.is_empty() {
            return None;
        }
        let index = draw(&mut self.order, &self.candidates, (sim, world), rng);
        Some(skip(rule, world.pending(), index, rng))
    }

    /// Takes note of a delivery.
    pub fn delivered(&mut self, entry: &Pending) {
        self.holds.delivered(entry);
    }
}
