//! Removal of two steps at once, for witnesses that no single removal shortens.

use demi_replay::Model;

use super::{Watch, chunks};
use crate::engine::{Engine, Shared};
use crate::matcher::Policy;

/// Longest witness, in steps, whose pairs are all tried.
pub const MAX_STEPS: usize = 64;

/// Tries every pair of steps with each policy; after a success starts again.
pub fn remove<M: Model>(
    engine: &mut Engine<M>,
    start: &Shared<M>,
    policies: &[Policy],
    watch: &mut dyn Watch<M>,
) -> Option<Shared<M>> {
    let mut best = start.clone();
    'again: while best.acts.len() <= MAX_STEPS {
        let n = best.acts.len();
        for policy in policies {
            for first in 0..n {
                for second in first + 1..n {
                    if !chunks::any(&best.acts[first]) || !chunks::any(&best.acts[second]) {
                        continue;
                    }
                    if engine.meter.ended().is_some() {
                        break 'again;
                    }
                    let mut removed = vec![false; n];
                    removed[first] = true;
                    removed[second] = true;
                    let limit = best.size.deliveries + 4;
                    if let Some(found) = engine.test(&best, &removed, *policy, Some(limit)) {
                        best = found;
                        watch.smaller(engine, &best);
                        continue 'again;
                    }
                }
            }
        }
        break;
    }
    (best.size < start.size).then_some(best)
}
