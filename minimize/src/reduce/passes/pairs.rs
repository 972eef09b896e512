//! Removal of two steps at once, for witnesses that no single removal shortens.

use demi_replay::Model;

use crate::oracle::matcher::Policy;
use crate::reduce::reducer::Reducer;

/// Tries every pair of steps with each policy; after a success starts again.
pub fn remove<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    while one(reducer, policies) {}
}

/// Leaves out the first two steps without which the witness still violates. Says whether there are such.
fn one<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) -> bool {
    let n = reducer.best.acts.len();
    for policy in policies {
        for first in 0..n {
            for second in first + 1..n {
                if reducer.ended() {
                    return false;
                }
                let mut removed = vec![false; n];
                (removed[first], removed[second]) = (true, true);
                if reducer.without(&removed, *policy) {
                    return true;
                }
            }
        }
    }
    false
}
