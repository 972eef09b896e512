//! Each pass alone makes some witness smaller, and what it leaves still violates.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;

use demi_included::{Visitor, with_model};
use demi_minimize::Meter;
use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::oracle::matcher::Policy;
use demi_minimize::reduce::passes::{chunks, noop, probdd, subsets};
use demi_minimize::reduce::reducer::Reducer;
use demi_minimize::reduce::registry::{PASSES, Pass};
use demi_minimize::{Budget, Objective, Problem, StopFlag};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::Script;
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;
use demi_schemas::summary::Verdict;

/// Executions of each scenario.
const SEEDS: u64 = 3;

/// From where a pass starts.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    /// The execution as it was recorded.
    Recorded,
    /// What single removals with one policy leave.
    Swept,
}
use Begin::{Recorded, Swept};

/// The sweeps, which are not in the registry.
const SWEEPS: [&str; 4] = ["no-op removal", "external chunks", "probdd", "external subsets"];

fn sweep<M: Model>(name: &str, stage: &mut Reducer<'_, M>, policies: &[Policy]) {
    match name {
        "no-op removal" => noop::remove(stage),
        "external chunks" => chunks::sweep(stage, EXACT, chunks::external, 1),
        "probdd" => probdd::sweep(stage, policies[0], chunks::any),
        _ => subsets::keep_one(stage, &policies[..1]),
    }
}

/// What is run, and from where: passes whose gate has limits start with what is short.
fn passes() -> Vec<(&'static str, Option<Pass>, Begin)> {
    let registered = PASSES.iter().map(|entry| {
        let limited = entry.gate.to_string() != "any";
        (entry.name, Some(entry.pass), if limited { Swept } else { Recorded })
    });
    SWEEPS.into_iter().map(|name| (name, None, Recorded)).chain(registered).collect()
}

/// Runs every pass on fuzzed executions of a scenario; gives how often each gained.
struct Try<'a>(&'a Scenario);

impl Visitor for Try<'_> {
    type Output = BTreeMap<&'static str, u64>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let rule = self.0.network;
        let policies = Policy::portfolio(rule);
        let mut gains = BTreeMap::new();
        for seed in 1..=SEEDS {
            let limits = FuzzOptions::new(seed, 10_000, 400);
            let found = fuzz(&mut sim.clone(), self.0, &limits, &mut |_| true).unwrap().unwrap();
            let mut with = sim.clone();
            let (script, _) = Script::compile(&mut with, &found.schedule).unwrap();
            let target = found.schedule.header.violation.clone();
            let meter = || Meter::new(Budget::Replays(20_000), StopFlag::default());
            let problem = Problem::plain(with, script.clone(), rule, target.clone(), Objective::Externals);
            let mut engine = Engine::new(&problem, Budget::Replays(20_000));
            let witness = engine.first_witness(&script.acts, EXACT).unwrap();
            let mut stage = Reducer::new(engine, witness.clone(), &|_| ());
            stage.sweep(&policies[..1]);
            let Reducer { mut engine, best: swept, .. } = stage;
            for (name, pass, from) in passes() {
                engine.forget();
                engine.meter = meter();
                let witness = if from == Swept { swept.clone() } else { witness.clone() };
                let before = witness.size;
                let mut stage = Reducer::new(engine, witness, &|_| ());
                stage.phase(name, |s| match pass {
                    Some(pass) => pass.step(s, &policies),
                    None => sweep(name, s, &policies),
                });
                let after = stage.best.size;
                let smaller = Objective::Externals.smaller(after, before);
                assert!(smaller || after == before, "{name}, seed {seed}: {before:?} became {after:?}");
                *gains.entry(name).or_default() += u64::from(smaller);
                // By code that knows nothing of passes.
                let schedule = stage.engine.to_schedule(&stage.best.acts);
                let strict = ReplayOptions { rule, strict: true, interval: 1 };
                let run = replay(&mut sim.clone(), &schedule, &strict).unwrap();
                assert_eq!(run.verdict, Verdict::Violates, "{name}, seed {seed}");
                assert!(run.violation.iter().any(|v| target.contains(v)), "{name}, seed {seed}");
                engine = stage.engine;
            }
        }
        gains
    }
}

fn gains(scenario: &str) -> BTreeMap<&'static str, u64> {
    let scenario = Scenario::parse(scenario).unwrap();
    with_model(&scenario, Try(&scenario)).unwrap()
}

#[test]
fn each_pass_alone_gains_somewhere() {
    let four = include_str!("../../../replay/scenarios/raft-45.toml");
    // Of nine members not all are needed.
    let nine = four.replace("members = 4", "members = 9");
    // And what clients ask has nothing to do with the bug.
    let busy = four.replace("client_messages = 0", "client_messages = 100");
    assert!(nine != four && busy != four);
    let unordered = include_str!("../../../replay/scenarios/raft-66.toml");
    let spark = gains(include_str!("../../../replay/scenarios/spark-2294.toml"));
    assert!(spark["epochs"] > 0, "of jobs: {spark:?}");
    let mut all = spark;
    for scenario in [four, &nine, &busy, unordered] {
        gains(scenario).into_iter().for_each(|(name, won)| *all.entry(name).or_default() += won);
    }
    let idle: Vec<_> = all.iter().filter(|(_, won)| **won == 0).collect();
    assert!(idle.is_empty(), "{idle:?} of {all:?}");
}
