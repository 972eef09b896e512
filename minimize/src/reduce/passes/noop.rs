//! Removal of deliveries that do nothing: they leave every state as it was and send nothing.

use demi_replay::{Did, Model};

use crate::oracle::engine::Engine;
use crate::oracle::matcher::{Blocker, Matcher, Policy};
use crate::oracle::witness::Shared;
use crate::reduce::reducer::Reducer;

/// Finds the deliveries without effect and removes them all at once. In order on a channel such a delivery may
/// still be needed to make way, which flushing puts back.
pub fn remove<M: Model>(reducer: &mut Reducer<'_, M>) {
    for policy in [Policy::new(Matcher::Exact, Blocker::Flush), Policy::new(Matcher::Exact, Blocker::Skip)] {
        for _ in 0..8 {
            if reducer.ended() {
                return;
            }
            let idle = idle(&mut reducer.engine, &reducer.best);
            if !idle.contains(&true) || !reducer.without(&idle, policy) {
                break;
            }
        }
    }
}

/// Which acts of a witness are deliveries without effect.
fn idle<M: Model>(engine: &mut Engine<M>, witness: &Shared<M>) -> Vec<bool> {
    let mut world = engine.sim.empty_world();
    witness
        .acts
        .iter()
        .map(|act| {
            let before = world.clone();
            engine.follow(&mut world, act);
            let quiet = engine.sim.did().iter().all(|d| matches!(d, Did::TimerCancelled(_)))
                && engine.sim.did().len() <= 1;
            act.is_delivery() && quiet && world.same_states(&before)
        })
        .collect()
}
