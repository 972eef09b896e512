//! Searches around a result in which actors start at any time.
//!
//! All other searches start everybody first. Under fifo a message to somebody who has not started is lost, and with it goes what
//! would have to be delivered before what comes behind it; so an execution with a late start can be shorter than all without.

use std::sync::Arc;

use demi_replay::Model;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use super::event_sets::{self, Set};
use crate::archive::Archive;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::plan::{LATE_JOBS, LATE_OWN, LATE_OWN_PART, LATE_PART, LATE_SETS, LATE_STATES};
use crate::problem::Problem;
use crate::problem::budget::Budget;
use crate::reduce::reducer::Reducer;
use crate::scheduler::{Job, Share, Site};
use crate::search::{Query, Root};
use crate::solution::Solution;

/// Searches over the external events of a result and over neighbouring sets of them; goes on from what is better.
pub struct Late {
    best: Solution,
    around: Vec<Set>,
    next: usize,
}

impl Late {
    /// Searches around a solution.
    pub fn new<M: Model>(problem: &Arc<Problem<M>>, best: &Solution) -> Self {
        let mut around = event_sets::around(problem, best, &problem.pool());
        around.retain(|set| set.choice.is_none());
        around.truncate(LATE_SETS);
        Late { best: best.clone(), around, next: 0 }
    }
}

impl<M: Model> Strategy<M> for Late {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        if self.next > 0
            && let found = archive.last()
            && let sizes = std::iter::once(self.best.size).chain(found.iter().map(|s| s.size))
            && let Some(better) = archive.objective().least(sizes).filter(|at| *at > 0)
        {
            *self = Late::new(&archive.site.problem, &found[better - 1]);
        }
        let from = xxh3_128(self.best.schedule.to_text().as_bytes());
        let mut jobs = Vec::new();
        // The result's own external events are worth most: they have a batch of their own, and all threads.
        let (batch, most, part) = match self.next {
            0 => (1, LATE_OWN, LATE_OWN_PART),
            _ => (LATE_JOBS, LATE_STATES, LATE_PART),
        };
        while let Some(set) = self.around.get(self.next).filter(|_| jobs.len() < batch) {
            self.next += 1;
            let others = set.externals.iter().filter(|act| !act.is_delivery()).count();
            let steps = self.best.size.steps.saturating_sub(1);
            let Some(limit) = steps.checked_sub(others).filter(|limit| *limit > 0) else { continue };
            let key = format!("late {limit} {from:032x} {}", set.told);
            jobs.push((key, (self.best.clone(), set.clone()), (limit, most)));
        }
        let share = Share { part, of: jobs.len() };
        let job = |(key, (best, set), limits): (String, (Solution, Set), (usize, u64))| Job {
            key,
            share,
            work: Box::new(move |site: &Site<'_, M>, share| one(site, &best, (&set, limits), share)),
        };
        jobs.into_iter().map(job).collect()
    }
}

/// One search, and the reduction of what it finds; the result as it was if it finds nothing.
fn one<M: Model>(
    site: &Site<'_, M>,
    best: &Solution,
    (set, limits): (&Set, (usize, u64)),
    share: Budget,
) -> Option<Solution> {
    let engine = Engine::new(&site.problem, share);
    if engine.meter.ended().is_some() {
        return None;
    }
    let mut engine = engine;
    let given = engine.restore(&best.schedule)?;
    let mut reducer = Reducer::new(engine, given, site.tell);
    let found = reducer.phase("starts at any time", |s| {
        let (deliveries, states) = limits;
        let query = Query::from(Root::Nobody).over(&set.externals).deliveries(deliveries).states(states);
        let searched = query.threads(site.threads).run(&mut s.engine);
        if let Some(searched) = s.searched(searched) {
            // So that a budget of replays ends where all of them find nothing.
            s.engine.meter.replays += 1;
            s.keep(searched.found);
        }
    });
    if found {
        reducer.reduce(&Policy::portfolio(site.problem.rule()));
    }
    Some(Solution::of(reducer))
}
