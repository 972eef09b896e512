//! Removal of deliveries that do nothing: they leave every state as it was and send nothing.

use demi_replay::{Did, Model};

use crate::engine::{Engine, Shared};
use crate::matcher::{Blocker, Matcher, Policy};
use crate::stage::Stage;

/// Finds the deliveries without effect and removes them all at once. In order on a channel such a delivery may
/// still be needed to make way, which flushing puts back.
pub fn remove<M: Model>(stage: &mut Stage<'_, M>) {
    for policy in [Policy::new(Matcher::Exact, Blocker::Flush), Policy::new(Matcher::Exact, Blocker::Skip)] {
        for _ in 0..8 {
            if stage.ended() {
                return;
            }
            let idle = idle(&mut stage.engine, &stage.best);
            if !idle.contains(&true) || !stage.without(&idle, policy) {
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
