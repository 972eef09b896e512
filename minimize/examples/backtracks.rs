//! What the two passes that reorder steps are worth: backtracks among pending messages of one type, and prioritized
//! DPOR. Each gets the same witnesses, fuzzed ones swept with one policy, and the same number of schedules for each
//! removed step.
//!
//!     cargo run --release -p demi-minimize --example backtracks -- SCENARIO...

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a measurement")]

#[path = "../tests/it/recorded/mod.rs"]
mod recorded;

use std::time::Instant;

use demi_included::{Visitor, with_model};
use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::oracle::matcher::{Blocker, Matcher, Policy};
use demi_minimize::reduce::passes::{backtrack, orders};
use demi_minimize::reduce::reducer::Reducer;
use demi_minimize::{Budget, Objective, Problem};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::script::Script;
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Scenario};

struct Compare<'a>(&'a Scenario, u64);

impl Visitor for Compare<'_> {
    type Output = Option<String>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Option<String> {
        let limits = FuzzOptions::new(self.1, 2_000, 400);
        let found = fuzz(&mut sim.clone(), self.0, &limits, &mut |_| true).unwrap()?;
        let schedule = recorded::schedule(&found);
        let (script, _) = Script::compile(&mut sim, &schedule).unwrap();
        let mut line = String::new();
        for pass in ["backtracks", "orders"] {
            let target = found.violation.clone();
            let problem =
                Problem::plain(sim.clone(), script.clone(), self.0.network, target, Objective::Externals);
            let mut engine = Engine::new(&problem, Budget::Seconds(60.0));
            let witness = engine.first_witness(&script.acts, EXACT)?;
            let mut stage = Reducer::new(engine, witness, &|_| {});
            stage.sweep(&[Policy::new(Matcher::TypeNewest, Blocker::Skip)]);
            let before = stage.best.size;
            let (replays, executed) = (stage.engine.meter.replays, stage.engine.meter.executed);
            let began = Instant::now();
            if pass == "orders" {
                orders::remove(&mut stage, 24);
            } else {
                backtrack::remove(&mut stage, 24);
            }
            line += &format!(
                "  {pass}: {} ({}) -> {} ({}), {} schedules, {} deliveries, {:.3} s",
                before.deliveries,
                before.externals,
                stage.best.size.deliveries,
                stage.best.size.externals,
                stage.engine.meter.replays - replays,
                stage.engine.meter.executed - executed,
                began.elapsed().as_secs_f64(),
            );
        }
        Some(line)
    }
}

fn main() {
    for path in std::env::args().skip(1) {
        let scenario = Scenario::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if scenario.network != NetworkRule::Fifo {
            println!("{path}: left out, recorded logs are put in order by their channels");
            continue;
        }
        for seed in 1..=5 {
            if let Some(line) = with_model(&scenario, Compare(&scenario, seed)).unwrap() {
                println!("{path} {seed}:{line}");
            }
        }
    }
}
