//! Reductions of the recorded schedule, with another policy first each time: half of the jobs begin with what preparation
//! left, half with the raw schedule and coarse cuts. They come in two waves, the second only where nothing is proven after
//! the first.

use demi_replay::Model;

use super::Strategy;
use crate::archive::Archive;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::{EXACT, Policy};
use crate::plan::POLICIES;
use crate::problem::budget::Budget;
use crate::problem::size::Objective;
use crate::reduce::reducer::Reducer;
use crate::scheduler::{Job, Share, Site};
use crate::solution::Solution;

/// One wave: of the policies those in a range.
pub struct Recorded {
    /// The first policy of the wave, and the one after its last.
    pub wave: (usize, usize),
    /// The part of the budget for all policies.
    pub part: f64,
}

impl<M: Model> Strategy<M> for Recorded {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        let count = Policy::portfolio(archive.site.problem.rule()).len().min(POLICIES);
        let (from, to) = (self.wave.0.min(count), self.wave.1.min(count));
        // One batch is all.
        self.wave = (to, to);
        let share = Share { part: self.part, of: 2 * count };
        let starts = [false, true].into_iter().flat_map(|cuts| (from..to).map(move |first| (first, cuts)));
        let job = |(first, cuts): (usize, bool)| Job {
            key: format!("recorded {first} {cuts}"),
            share,
            work: Box::new(move |site, share| descend(site, share, first, cuts)),
        };
        starts.map(job).collect()
    }
}

/// Reduces the recording, one policy first.
fn descend<M: Model>(site: &Site<'_, M>, share: Budget, first: usize, cuts: bool) -> Option<Solution> {
    let problem = &site.problem;
    let policies = Policy::portfolio(problem.rule());
    let mut order = policies.clone();
    order.rotate_left(first);
    let mut engine = Engine::new(problem, share);
    // Without an external event all goes that it brought about: what has few of them is short soon.
    engine.objective = Objective::Externals;
    let witness = engine.first_witness(if cuts { &problem.thinned } else { &problem.reduced }, EXACT)?;
    let mut reducer = Reducer::new(engine, witness, site.tell);
    if cuts {
        reducer.subsets(&policies);
    }
    reducer.reduce(&order);
    Some(Solution::of(reducer))
}
