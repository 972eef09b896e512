//! Which actors of some external events can take each other's places.

use demi_replay::script::Act;
use demi_replay::{ActorId, Model};
use demi_space::symmetry;

use super::root::started;
use crate::oracle::engine::Engine;

/// The actors of some external events that are interchangeable: those that the target does not name, where the model
/// says how to rename.
pub fn interchangeable<M: Model>(engine: &mut Engine<M>, acts: &[Act]) -> Vec<ActorId> {
    let (_, world) = started(engine, acts);
    let free = symmetry::free(&engine.sim, &world, &engine.problem.target);
    let view = engine.sim.view(&world);
    let state = free.first().and_then(|actor| view.state(*actor));
    match state.and_then(|state| engine.sim.renamed_state(state, &|actor| actor)) {
        Some(_) => free,
        None => Vec::new(),
    }
}
