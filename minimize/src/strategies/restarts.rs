//! What is left of the budget, once nothing near the results gains any more: other beginnings.
//!
//! A local minimum is left by starting elsewhere. Random walks begin with fewer messages from outside than the result has.
//! Descents begin with a random part of the recording, so that they end in another minimum. Searches near the results go on with
//! other random numbers. Batches follow each other until the budget ends.

use demi_replay::Model;
use demi_schemas::Schedule;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use super::rounds::{Lead, Walked, neighbourhood, walks};
use crate::archive::{Archive, pareto};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::{EXACT, Policy};
use crate::oracle::witness::Shared;
use crate::plan::{
    ENDING, FEW_POLICIES, RESTART_DOUBLED, RESTART_JOBS, RESTART_LEADS, RESTART_MASKS, RESTART_PART,
    RESTART_WALKED, WINDOW,
};
use crate::problem::budget::Budget;
use crate::problem::size::Objective;
use crate::reduce::passes::{endings, window};
use crate::reduce::reducer::Reducer;
use crate::scheduler::{Job, Share, Site};
use crate::solution::Solution;

/// Batches of restarts.
pub struct Restarts {
    until: f64,
    batch: u64,
    spent: Option<(u64, u64)>,
}

impl Restarts {
    /// Restarts up to this part of what strategies may use.
    pub fn new(until: f64) -> Self {
        Restarts { until, batch: 0, spent: None }
    }
}

/// What a job begins with.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    /// Random walks over fewer messages.
    Fewer,
    /// A random part of the recording.
    Part,
    /// What was found, and random changes.
    Near,
    /// What was found, and searches from each place on it that go farther each time.
    Farther,
}

/// What each job of a batch does.
const TURNS: [Beginning; RESTART_JOBS] = [
    Beginning::Fewer,
    Beginning::Fewer,
    Beginning::Part,
    Beginning::Near,
    Beginning::Fewer,
    Beginning::Part,
    Beginning::Near,
    Beginning::Farther,
];

impl<M: Model> Strategy<M> for Restarts {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        // Each job has limits of its own, so that the last batches are as thorough as the first.
        let share = Share { part: RESTART_PART, of: RESTART_JOBS };
        let spent = (archive.purse().replays, archive.purse().executed);
        if !archive.left(self.until) || self.spent.replace(spent) == Some(spent) {
            return Vec::new();
        }
        let leads = pareto(archive.results.clone());
        let Some(best) = archive.incumbent() else { return Vec::new() };
        // The incumbent every other time, then what else is on the front.
        let lead = |nth: u64| match nth % 2 {
            0 => best.clone(),
            _ => leads[nth as usize / 2 % leads.len().clamp(1, RESTART_LEADS)].clone(),
        };
        let batch = self.batch;
        self.batch += 1;
        let jobs = TURNS.iter().enumerate().map(|(index, beginning)| {
            let seed = batch * RESTART_JOBS as u64 + index as u64;
            let lead = match beginning {
                Beginning::Farther => best.clone(),
                _ if leads.is_empty() => best.clone(),
                _ => lead(seed / 3),
            };
            let from = xxh3_128(lead.schedule.to_text().as_bytes());
            let (beginning, objective) = (*beginning, archive.objective());
            Job {
                key: format!("restart {seed} {beginning:?} {from:032x}"),
                share,
                work: Box::new(move |site, share| match beginning {
                    Beginning::Fewer => {
                        let walked = Walked { seed, walked: RESTART_WALKED, fewer: true };
                        walks(site, &lead.schedule, walked, share)
                    }
                    Beginning::Farther => farther(site, &lead.schedule, batch, share),
                    Beginning::Part => part(site, &lead.schedule, seed, share),
                    Beginning::Near => {
                        let lead = Lead { size: lead.size, schedule: lead.schedule.clone(), objective };
                        neighbourhood(site, &lead, (!seed, RESTART_WALKED), share)
                    }
                }),
            }
        });
        jobs.collect()
    }
}

/// Searches for other endings and in windows, wider ones in later batches.
fn farther<M: Model>(site: &Site<'_, M>, lead: &Schedule, batch: u64, share: Budget) -> Option<Solution> {
    let policies = Policy::portfolio(site.problem.rule());
    let mut engine = Engine::new(&site.problem, share);
    let given = engine.restore(lead)?;
    let mut reducer = Reducer::new(engine, given, site.tell);
    reducer.engine.meter.at_most(2 * RESTART_WALKED);
    let doubled = u32::try_from(batch).unwrap_or(u32::MAX).min(RESTART_DOUBLED);
    reducer.phase("windows", |s| {
        window::search(s, WINDOW + doubled as usize / 2 + 1, &policies[..policies.len().min(FEW_POLICIES)]);
    });
    reducer.phase("endings", |s| endings::search(s, ENDING << (doubled + 1), 1));
    reducer.reduce(&policies);
    Some(Solution::of(reducer))
}

/// Reduces a random part of the recording in which the violation is still there.
fn part<M: Model>(site: &Site<'_, M>, lead: &Schedule, seed: u64, share: Budget) -> Option<Solution> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut policies = Policy::portfolio(site.problem.rule());
    policies.shuffle(&mut rng);
    let mut engine = Engine::new(&site.problem, share);
    engine.objective = Objective::Externals;
    let given = engine.first_witness(&site.problem.thinned, EXACT).or_else(|| engine.restore(lead))?;
    let mut reducer = Reducer::new(engine, given, site.tell);
    reducer.engine.meter.at_most(RESTART_WALKED);
    reducer.phase("random parts", |s| thin_out(s, &policies, &mut rng));
    reducer.subsets(&policies);
    reducer.reduce(&policies);
    Some(Solution::of(reducer))
}

/// Leaves out random messages from outside, as many at once as go, in a random order.
fn thin_out<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy], rng: &mut ChaCha8Rng) {
    let mut ratio = 2;
    for _ in 0..RESTART_MASKS {
        if reducer.ended() {
            return;
        }
        let best: &Shared<M> = &reducer.best;
        let removed: Vec<bool> = best
            .acts
            .iter()
            .map(|act| act.is_delivery() && act.is_external() && rng.random_ratio(1, ratio))
            .collect();
        let policy = policies[rng.random_range(0..policies.len())];
        if !reducer.without(&removed, policy) {
            ratio = (ratio + 1).min(12);
        }
    }
}
