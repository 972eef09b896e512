//! Going on with jobs on long recordings that their shares of the budget cut short.
//!
//! A step of a long recording costs as much as a whole run of a short one, so that a share that is enough for twelve
//! jobs on a short one ends before any of them has got far. Which policy gets farthest is known by then: the rest of
//! the descent is left to the two best, until what is left is short or the next searches must begin.

use demi_replay::Model;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use crate::archive::Archive;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::plan::{LONGER_JOBS, LONGER_PART, LONGER_ROUNDS, SHORT};
use crate::problem::size::{Objective, Size};
use crate::reduce::reducer::Reducer;
use crate::scheduler::{Job, Share};
use crate::solution::Solution;

/// Reduces the best results further while they are long and were cut short.
#[derive(Default)]
pub struct Longer {
    round: usize,
    before: Option<Size>,
}

impl<M: Model> Strategy<M> for Longer {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        let objective = archive.objective();
        let mut known: Vec<&Solution> = archive.results.iter().collect();
        known.sort_by_key(|solution| objective.key(solution.size));
        known.dedup_by_key(|solution| solution.size);
        let Some(&first) = known.first().filter(|best| best.cut && best.size.deliveries > SHORT) else {
            return Vec::new();
        };
        let gained = |before| archive.last().iter().any(|s| objective.smaller(s.size, before));
        if self.round == LONGER_ROUNDS || self.before.is_some_and(|before| !gained(before)) {
            return Vec::new();
        }
        self.before = Some(first.size);
        self.round += 1;
        (0..LONGER_JOBS)
            .map(|index| {
                let lead = known[index % known.len().min(2)].schedule.clone();
                let turn = (self.round - 1) * LONGER_JOBS + index;
                Job {
                    key: format!("longer {turn} {:032x}", xxh3_128(lead.to_text().as_bytes())),
                    share: Share { part: LONGER_PART, of: LONGER_JOBS },
                    work: Box::new(move |site, share| {
                        let mut order = Policy::portfolio(site.problem.rule());
                        let first = turn % order.len();
                        order.rotate_left(first);
                        let mut engine = Engine::new(&site.problem, share);
                        engine.objective = Objective::Externals;
                        let witness = engine.restore(&lead)?;
                        let mut reducer = Reducer::new(engine, witness, site.tell);
                        reducer.reduce(&order);
                        Some(Solution::of(reducer))
                    }),
                }
            })
            .collect()
    }
}
