//! Narrow beams over sets of few messages from outside, whatever the result has.
//!
//! Passes leave messages out of what a result has, and neighbours of its set differ from it in one or two. A result that came from a long recording often needs
//! none of its messages: what breaks the property with two or three others is not near it. There are few sets of so few, and so few deliveries have few executions.

use std::sync::Arc;

use demi_replay::Model;
use demi_replay::script::Act;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use super::beam::{self, Beam};
use super::event_sets::{self, Set};
use crate::archive::Archive;
use crate::plan::{BEAM_JOBS, SMALL_DELIVERIES, SMALL_PART};
use crate::problem::Problem;
use crate::scheduler::{Job, Share};
use crate::search::Lead;
use crate::solution::Solution;

/// Searches over all small sets, wider each time.
pub struct SmallSets {
    best: Solution,
    pool: Vec<Act>,
    sets: Vec<Set>,
    /// Which of them were searched to the end.
    whole: Vec<bool>,
    widths: &'static [u64],
    /// Which width has its turn, and the first of the sets to be searched.
    width: usize,
    next: usize,
    /// The sets of the batch that is under way.
    under_way: Vec<usize>,
}

impl SmallSets {
    /// Searches for what is shorter than a solution.
    pub fn new<M: Model>(problem: &Arc<Problem<M>>, best: &Solution, widths: &'static [u64]) -> Self {
        let pool = problem.pool();
        let sets = event_sets::small(problem, best, &pool);
        let whole = vec![false; sets.len()];
        SmallSets { best: best.clone(), pool, sets, whole, widths, width: 0, next: 0, under_way: Vec::new() }
    }

    /// Takes in what the last batch came to: what is better is where the next searches begin.
    fn learn<M: Model>(&mut self, archive: &Archive<'_, M>) {
        let found = archive.last();
        if found.len() == self.under_way.len() {
            for (set, found) in self.under_way.iter().zip(found) {
                self.whole[*set] |= found.whole;
            }
        }
        let sizes = std::iter::once(self.best.size).chain(found.iter().map(|s| s.size));
        if let Some(better) = archive.objective().least(sizes).filter(|at| *at > 0) {
            self.best = found[better - 1].clone();
            self.sets = event_sets::small(&archive.site.problem, &self.best, &self.pool);
            self.whole = vec![false; self.sets.len()];
            (self.width, self.next) = (0, 0);
        }
    }
}

impl<M: Model> Strategy<M> for SmallSets {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        if !self.under_way.is_empty() {
            self.learn(archive);
        }
        self.under_way.clear();
        while let Some(width) = self.widths.get(self.width).copied() {
            let shorter = |set: &Set| {
                let others = set.externals.iter().filter(|act| !act.is_delivery()).count();
                let limit = self.best.size.steps.checked_sub(others + 1)?;
                Some(limit.min(SMALL_DELIVERIES)).filter(|limit| *limit > 0)
            };
            let open = |at: &usize| !self.whole[*at] && shorter(&self.sets[*at]).is_some();
            let batch: Vec<usize> = (self.next..self.sets.len()).filter(open).take(BEAM_JOBS).collect();
            let Some(last) = batch.last() else {
                (self.width, self.next) = (self.width + 1, 0);
                continue;
            };
            self.next = last + 1;
            let from = xxh3_128(self.best.schedule.to_text().as_bytes());
            let share = Share { part: SMALL_PART, of: batch.len() };
            let job = |at: &usize| {
                let set = self.sets[*at].clone();
                let deliveries = shorter(&set).unwrap_or_default();
                let beam = Beam { deliveries, width, lead: Lead::Rare, outside: None };
                let best = self.best.clone();
                Job {
                    key: format!("small sets {width} {deliveries} {from:032x} {}", set.told),
                    share,
                    work: Box::new(move |site, share| beam::one(site, &best, (&set, None), beam, share)),
                }
            };
            let jobs = batch.iter().map(job).collect();
            self.under_way = batch;
            return jobs;
        }
        Vec::new()
    }
}
