//! Random runs as `fuzz` makes them, over the recorded external events: other ways into the violation.
//!
//! Of a program a new configuration costs a process, so searches come not far from where they begin, and what local passes make of one recording may be
//! far from the shortest. Another recording leads to another minimum. A run that violates costs no more than it did when the first was found.

use std::time::Instant;

use demi_replay::fuzz::RandomOrder;
use demi_replay::script::Act;
use demi_replay::{Model, World};
use demi_schemas::summary::PhaseSummary;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xxhash_rust::xxh3::xxh3_128;

use super::Strategy;
use crate::archive::Archive;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::{EXACT, Policy};
use crate::oracle::witness::Shared;
use crate::plan::{RUN_BATCHES, RUN_JOBS, RUN_PART, RUN_SEARCHED};
use crate::problem::budget::Budget;
use crate::reduce::reducer::{Reducer, phase_line};
use crate::reduce::stats::Cost;
use crate::scheduler::{Job, Share, Site};
use crate::solution::Solution;

/// Batches of random runs.
#[derive(Default)]
pub struct RandomRuns {
    batch: usize,
}

impl<M: Model> Strategy<M> for RandomRuns {
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>> {
        let Some(best) = archive.incumbent() else { return Vec::new() };
        if self.batch == RUN_BATCHES {
            return Vec::new();
        }
        let batch = self.batch;
        self.batch += 1;
        let jobs = (0..RUN_JOBS).map(|index| {
            let (seed, base) = ((batch * RUN_JOBS + index) as u64, best.clone());
            let from = xxh3_128(base.schedule.to_text().as_bytes());
            Job {
                key: format!("random runs {seed} {from:032x}"),
                share: Share { part: RUN_PART, of: RUN_JOBS },
                work: Box::new(move |site, share| runs(site, &base, seed, share)),
            }
        });
        jobs.collect()
    }
}

/// Makes runs until one violates, and reduces it.
fn runs<M: Model>(site: &Site<'_, M>, base: &Solution, seed: u64, share: Budget) -> Option<Solution> {
    let policies = Policy::portfolio(site.problem.rule());
    let pool = site.problem.pool();
    let mut engine = Engine::new(&site.problem, share);
    let base = engine.restore(&base.schedule)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let began = Instant::now();
    let limits = engine.meter.narrow(RUN_SEARCHED);
    let most = 2 * base.size.deliveries + 20;
    let (mut found, mut number) = (None, 0);
    let mut goes_on = true;
    while found.is_none() && goes_on && engine.meter.ended().is_none() {
        let before = engine.meter.executed;
        found = run(&mut engine, &pool, most, number, &mut rng);
        number += 1;
        // Where nothing can be delivered, no budget of states ever ends.
        goes_on = engine.meter.executed > before;
    }
    engine.meter.widen(limits);
    let cost = Cost {
        replays: engine.meter.replays,
        executed: engine.meter.executed,
        seconds: began.elapsed().as_secs_f64(),
    };
    let (given, nothing) = (base.size, found.is_none());
    let witness = found.unwrap_or(base);
    let phase = PhaseSummary {
        replays: cost.replays,
        executed: cost.executed,
        seconds: cost.seconds,
        ..phase_line("random runs", &witness.acts)
    };
    let mut reducer = Reducer::new(engine, witness, site.tell);
    reducer.phases.push(phase);
    if !nothing {
        reducer.reduce(&policies);
    }
    let won = if reducer.best.size.steps < given.steps { reducer.best.size } else { given };
    reducer.account.note("random runs", cost, given, won);
    Some(Solution::of(reducer))
}

/// Makes one run; gives the witness if it breaks the invariant.
fn run<M: Model>(
    engine: &mut Engine<M>,
    pool: &[Act],
    deliveries: usize,
    number: u64,
    rng: &mut ChaCha8Rng,
) -> Option<Shared<M>> {
    engine.meter.replays += 1;
    let (mut world, mut done) = (engine.sim.empty_world(), Vec::new());
    let mut order = RandomOrder::new(&engine.sim, number, deliveries as u64, rng);
    // Starts come first; of the others the last is taken first.
    let (starts, mut others): (Vec<Act>, Vec<Act>) =
        pool.iter().partition(|act| matches!(act, Act::Start(_)));
    for act in &starts {
        begin(engine, &mut world, act, &mut done);
    }
    if rng.random() {
        others.shuffle(rng);
    }
    others.reverse();
    let rate = (2.0 * others.len() as f64 / deliveries as f64).min(0.5);
    while (world.deliveries() as usize) < deliveries && !engine.halted() {
        if rng.random_bool(rate)
            && let Some(act) = others.pop()
        {
            begin(engine, &mut world, &act, &mut done);
        }
        let Some(index) = order.next(&engine.sim, &world, engine.rule, rng) else {
            let act = others.pop()?;
            begin(engine, &mut world, &act, &mut done);
            continue;
        };
        let entry = world.pending()[index];
        if engine.deliver(&mut world, index, &mut done) {
            return engine.first_witness(&done, EXACT);
        }
        order.delivered(&entry);
    }
    None
}

/// Has an external event be there: a message may be taken from then on, and everything else happens at once.
fn begin<M: Model>(engine: &mut Engine<M>, world: &mut World<M>, act: &Act, done: &mut Vec<Act>) {
    match act {
        Act::Deliver(want) => {
            if let Some(msg) = want.external {
                engine.sim.inject(world, want.to, msg);
            }
        }
        _ => done.extend(engine.follow(world, act).then_some(*act)),
    }
}
