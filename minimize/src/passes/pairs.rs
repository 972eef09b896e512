//! Removal of two steps at once, for witnesses that no single removal shortens.

use demi_replay::Model;

use crate::matcher::Policy;
use crate::stage::Stage;

/// Longest witness, in steps, whose pairs are all tried.
pub const MAX_STEPS: usize = 64;

/// Tries every pair of steps with each policy; after a success starts again.
pub fn remove<M: Model>(stage: &mut Stage<'_, M>, policies: &[Policy]) {
    while stage.best.acts.len() <= MAX_STEPS && one(stage, policies) {}
}

fn one<M: Model>(stage: &mut Stage<'_, M>, policies: &[Policy]) -> bool {
    let n = stage.best.acts.len();
    for policy in policies {
        for first in 0..n {
            for second in first + 1..n {
                if stage.ended() {
                    return false;
                }
                let mut removed = vec![false; n];
                removed[first] = true;
                removed[second] = true;
                if stage.without(&removed, *policy) {
                    return true;
                }
            }
        }
    }
    false
}
