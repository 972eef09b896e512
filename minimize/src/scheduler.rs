//! Runs batches of jobs side by side. Jobs are independent, each has its share of the budget, and what they come to is taken in
//! the order of the jobs, so that the number of threads changes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use demi_replay::Model;
use xxhash_rust::xxh3::xxh3_128;

use crate::plan::SEARCHED;
use crate::problem::Problem;
use crate::problem::budget::{Budget, Deadline};
use crate::problem::options::Progress;
use crate::solution::Solution;

/// What one job has to do with its share of the budget; it depends on nothing but the problem and its own arguments.
pub type Work<M> = dyn Fn(&Site<'_, M>, Budget) -> Option<Solution> + Sync;

/// A piece of work.
pub struct Job<M: Model> {
    /// What tells it from all other jobs on the same problem; its seed is a part of it.
    pub key: String,
    /// Its share of the budget.
    pub share: Share,
    /// The work.
    pub work: Box<Work<M>>,
}

/// One of `of` equal shares of a part of what strategies may still use.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The part, at most 1.
    pub part: f64,
    /// How many share it.
    pub of: usize,
}

/// Where jobs are done: the problem, and whoever watches.
pub struct Site<'a, M: Model> {
    /// The problem.
    pub problem: Arc<Problem<M>>,
    /// Whoever watches.
    pub tell: &'a (dyn Fn(&Progress<'_>) + Sync),
    /// On how many threads one job may search, which changes nothing in what it comes to.
    pub threads: usize,
}

/// The budget of the whole minimization, and what of it was spent.
#[derive(Clone, Copy, Debug)]
pub struct Purse {
    /// The whole.
    pub budget: Budget,
    /// Since when.
    pub began: Instant,
    /// Schedules tested so far.
    pub replays: u64,
    /// Deliveries executed so far.
    pub executed: u64,
    /// What a replay may cost in deliveries, where processes answer.
    pub replay: Option<u64>,
}

impl Purse {
    /// The purse with a part of the budget only, so that something is left for what comes after.
    #[must_use]
    pub fn within(self, part: f64) -> Purse {
        let of = |n: u64| (n as f64 * part) as u64;
        let budget = match self.budget {
            Budget::Seconds(s) => Budget::Seconds(s * part),
            Budget::Replays(n) => Budget::Replays(of(n)),
            Budget::States(n) => Budget::States(of(n)),
        };
        Purse { budget, ..self }
    }

    /// The part of what strategies may use that is left, from 0 to 1.
    #[must_use]
    pub fn part_left(self, deadline: &Deadline) -> f64 {
        let amount = |budget: Budget| match budget {
            Budget::Seconds(seconds) => seconds,
            Budget::Replays(n) | Budget::States(n) => n as f64,
        };
        let left = amount(self.share(Share { part: 1.0, of: 1 }, 1, deadline));
        left / (amount(self.budget) * SEARCHED).max(1e-9)
    }

    /// A share of what is left. A second is one of each of `threads`, a replay or a state is one for all.
    #[must_use]
    pub fn share(self, share: Share, threads: usize, deadline: &Deadline) -> Budget {
        let Share { part, of } = share;
        let part_of = |whole: u64, spent: u64| {
            let left = (whole as f64 * SEARCHED - spent as f64).max(0.0);
            (left * part / of as f64) as u64
        };
        match self.budget {
            Budget::Seconds(s) => {
                let left = (s * SEARCHED - self.began.elapsed().as_secs_f64()).max(0.0);
                let left = deadline.left().map_or(left, |most| left.min(most.as_secs_f64()));
                Budget::Seconds(left * part * threads.clamp(1, of) as f64 / of as f64)
            }
            Budget::Replays(n) => {
                let cost = self.replay.map_or(0, |replay| self.executed.div_ceil(replay.max(1)));
                Budget::Replays(part_of(n, self.replays.max(cost)))
            }
            Budget::States(n) => Budget::States(part_of(n, self.executed)),
        }
    }
}

/// Does a batch of jobs on the threads there are; gives what they come to in the order of the jobs.
pub fn run<M: Model>(site: &Site<'_, M>, purse: Purse, jobs: &[Job<M>]) -> Vec<Solution> {
    let options = &site.problem.options;
    // Where there are fewer jobs than threads, each has several.
    let threads = (options.jobs / jobs.len().max(1)).max(1);
    let site = &Site { problem: site.problem.clone(), tell: site.tell, threads };
    let shares: Vec<Budget> =
        jobs.iter().map(|job| purse.share(job.share, options.jobs, &site.problem.deadline)).collect();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Solution>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let digest = site.problem.criteria.ledger.is_some().then(|| site.problem.digest());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= jobs.len() || options.stop.is_set() {
                        return;
                    }
                    let result = remembered(site, &jobs[index], shares[index], digest);
                    if let Ok(mut results) = results.lock() {
                        results[index] = result;
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

/// Does a job, or takes what it came to from the ledger, where it was finished before.
fn remembered<M: Model>(
    site: &Site<'_, M>,
    job: &Job<M>,
    share: Budget,
    digest: Option<u128>,
) -> Option<Solution> {
    let (Some(ledger), Some(digest)) = (&site.problem.criteria.ledger, digest) else {
        return (job.work)(site, share);
    };
    // A share of seconds is another one each time, so only work that came to its own end is kept.
    let amount = match share {
        Budget::Replays(n) | Budget::States(n) => n,
        Budget::Seconds(_) => 0,
    };
    let key = xxh3_128(format!("{digest:032x} {amount} {}", job.key).as_bytes());
    if let Some(solution) = ledger.start(key).as_deref().and_then(Solution::from_json) {
        return Some(solution);
    }
    let solution = (job.work)(site, share)?;
    if !site.problem.options.stop.is_set() && (amount > 0 || !solution.cut) {
        ledger.note_start(key, &solution.to_json());
    }
    Some(solution)
}
