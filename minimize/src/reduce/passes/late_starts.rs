//! Later starts: what is sent to an actor that has not started is lost, and need not be delivered.
//!
//! Searches start all actors first, and a removal moves nothing, so what a late start saves is found here.

use demi_replay::Model;
use demi_replay::script::Act;

use crate::oracle::matcher::Policy;
use crate::reduce::reducer::Reducer;

/// Tries each start at each later place, with each policy; after a success goes on with what is smaller.
pub fn starts<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    while one(reducer, policies) {}
}

/// Moves the first start that makes the witness smaller somewhere. Says whether there is one.
fn one<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) -> bool {
    let acts = reducer.best.acts.clone();
    let is_start = |at: &usize| matches!(acts[*at], Act::Start(_));
    for from in (reducer.best.pinned..acts.len()).filter(is_start) {
        let mut moved = acts.clone();
        for at in from + 1..acts.len() {
            moved.swap(at - 1, at);
            // Behind another start nothing is lost that was not before.
            if is_start(&at) {
                continue;
            }
            for policy in policies {
                if reducer.ended() {
                    return false;
                }
                let found = reducer.engine.first_witness(&moved, *policy);
                if reducer.keep(found) {
                    return true;
                }
            }
        }
    }
    false
}
