//! Rounds of jobs near what was found: random walks over its external events, and iterated local search.
//!
//! Searches take turns between two leads, the ends of the Pareto front: what has the fewest steps, and what has the fewest
//! external events.

use std::time::Instant;

use demi_replay::Model;
use demi_schemas::Schedule;
use demi_schemas::summary::PhaseSummary;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::xxh3_128;

use super::random_walk::Walker;
use super::{Strategy, local_search};
use crate::archive::{Archive, best};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::plan::{Effort, FINDS, TURNS};
use crate::problem::budget::Budget;
use crate::problem::size::{Objective, Size};
use crate::reduce::reducer::{Reducer, phase_line};
use crate::reduce::stats::Cost;
use crate::scheduler::{Job, Share, Site};
use crate::solution::Solution;

/// What a search starts from, and what counts as smaller there.
#[derive(Clone, Debug)]
pub(super) struct Lead {
    pub size: Size,
    pub schedule: Schedule,
    pub objective: Objective,
}

/// Which walks a job makes, and how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    /// Where chance begins.
    pub seed: u64,
    /// Deliveries after which it ends.
    pub walked: u64,
    /// Whether some walks take fewer messages from outside than the witness.
    pub fewer: bool,
}

impl Lead {
    /// Goes on from the smallest of what was found, the first of equals, if it is smaller. Says whether it is.
    fn follow(&mut self, found: &[Solution]) -> bool {
        let best = best(self.objective, found).filter(|s| self.objective.smaller(s.size, self.size));
        let Some(best) = best else { return false };
        (self.size, self.schedule) = (best.size, best.schedule.clone());
        true
    }
}

/// Rounds of random walks and of searches near what was found, until they gain nothing.
pub struct Rounds {
    effort: Effort,
    leads: Vec<Lead>,
    round: usize,
    idle: usize,
}

impl Rounds {
    /// Rounds of an effort, around a solution.
    pub fn new(effort: Effort, best: &Solution) -> Self {
        let lead = |objective| Lead { size: best.size, schedule: best.schedule.clone(), objective };
        let leads = vec![lead(Objective::Steps), lead(Objective::Externals)];
        Rounds { effort, leads, round: 0, idle: 0 }
    }
}

impl<M: Model> Strategy<M> for Rounds {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        let Effort { patience, walked, rounds, part } = self.effort;
        if self.round > 0 {
            self.idle += 1;
            for lead in &mut self.leads {
                if lead.follow(archive.last()) {
                    self.idle = 0;
                }
            }
            if archive.last().is_empty() || self.idle >= patience || self.round == rounds {
                return Vec::new();
            }
        }
        let round = self.round;
        self.round += 1;
        TURNS
            .iter()
            .enumerate()
            .map(|(index, &(lead, walk))| {
                let seed = (round * TURNS.len() + index) as u64;
                let lead = self.leads[lead].clone();
                let from = xxh3_128(lead.schedule.to_text().as_bytes());
                Job {
                    key: format!("round {round} {index} {walked} {from:032x}"),
                    share: Share { part, of: TURNS.len() },
                    work: Box::new(move |site, share| match walk {
                        true => walks(site, &lead.schedule, Walked { seed, walked, fewer: false }, share),
                        false => neighbourhood(site, &lead, (seed, walked), share),
                    }),
                }
            })
            .collect()
    }
}

/// One job near what was found: a search by disturbances, and the passes that cost more on what it comes to.
pub(super) fn neighbourhood<M: Model>(
    site: &Site<'_, M>,
    lead: &Lead,
    (seed, walked): (u64, u64),
    share: Budget,
) -> Option<Solution> {
    let policies = Policy::portfolio(site.problem.rule());
    let pool = site.problem.pool();
    let mut engine = Engine::new(&site.problem, share);
    engine.objective = lead.objective;
    let base = engine.restore(&lead.schedule)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut reducer = Reducer::new(engine, base, site.tell);
    reducer.phase("nearby", |s| local_search::search(s, &pool, &policies, walked, &mut rng));
    reducer.reduce(&policies);
    Some(Solution::of(reducer))
}

/// One job of walks: each violating walk is swept, the best of them reduced.
pub(super) fn walks<M: Model>(
    site: &Site<'_, M>,
    base: &Schedule,
    Walked { seed, walked, fewer }: Walked,
    share: Budget,
) -> Option<Solution> {
    let policies = Policy::portfolio(site.problem.rule());
    let pool = site.problem.pool();
    let mut engine = Engine::new(&site.problem, share);
    // A walk that violates is long: what has few external events is short soon.
    let objective = Objective::Externals;
    engine.objective = objective;
    let base = engine.restore(base)?;
    let given = base.size;
    let mut walker = Walker::new(&pool, &base, seed, fewer);
    let unchanged = fewer.then(|| base.clone());
    let began = Instant::now();
    let (mut best, mut finds): (Option<Shared<M>>, usize) = (None, 0);
    while finds < FINDS && engine.meter.executed < walked && engine.meter.ended().is_none() {
        let Some(witness) = walker.walk(&mut engine) else { continue };
        finds += 1;
        let mut reducer = Reducer::new(engine, witness, site.tell);
        reducer.sweep(&policies);
        engine = reducer.engine;
        if best.as_ref().is_none_or(|b| objective.smaller(reducer.best.size, b.size)) {
            best = Some(reducer.best);
        }
    }
    let walked = PhaseSummary {
        replays: engine.meter.replays,
        executed: engine.meter.executed,
        seconds: began.elapsed().as_secs_f64(),
        ..phase_line("walks", &best.as_ref().or(unchanged.as_ref())?.acts)
    };
    // What was spent in vain counts too.
    let Some(best) = best else {
        let mut reducer = Reducer::new(engine, unchanged?, site.tell);
        reducer.phases.push(walked);
        return Some(Solution::of(reducer));
    };
    let mut reducer = Reducer::new(engine, best, site.tell);
    let cost = Cost { replays: walked.replays, executed: walked.executed, seconds: walked.seconds };
    let size = reducer.best.size;
    let won = if objective.smaller(size, given) { size } else { given };
    reducer.account.note("walks", cost, given, won);
    reducer.phases.push(walked);
    reducer.reduce(&policies);
    Some(Solution::of(reducer))
}
