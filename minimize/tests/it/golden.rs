//! What people read of a result, kept as files: the trace and the ShiViz log of two minimized runs.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;

use demi_included::{Visitor, with_model};
use demi_minimize::report::{shiviz, tell, trace_md};
use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;
use demi_schemas::summary::Verdict;

/// Fuzzes, minimizes and renders.
struct Golden<'a> {
    scenario: &'a Scenario,
    seed: u64,
    replays: u64,
}

impl Visitor for Golden<'_> {
    type Output = (Outcome, String, String);

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let rule = self.scenario.network;
        let limits = FuzzOptions::new(self.seed, 5_000, 300);
        let found = fuzz(&mut sim.clone(), self.scenario, &limits, &mut |_| true).unwrap().unwrap();
        let input = crate::recorded::schedule(&found);
        assert_eq!(
            (input.deliveries() as u64, input.externals() as u64),
            (found.deliveries, found.externals)
        );
        let strict = ReplayOptions { rule, strict: true, interval: 1 };
        let replayed = replay(&mut sim.clone(), &input, &strict).unwrap();
        assert_eq!(replayed.verdict, Verdict::Violates, "{replayed:?}");
        let options = Options {
            rule,
            budget: Budget::Replays(self.replays),
            jobs: 1,
            phases: Phases::All,
            objective: Objective::Steps,
            stop: StopFlag::default(),
        };
        let outcome = minimize(&sim, &input, None, &options, &|_| {}).unwrap();
        let told = tell(&sim, &outcome.schedule, rule).unwrap();
        assert_eq!(told.len(), outcome.schedule.steps.len(), "every step is told");
        let (trace, log) = (trace_md(&told, &outcome.summary, &outcome.certificate), shiviz(&told));
        (outcome, trace, log)
    }
}

fn golden(scenario: &str, seed: u64, replays: u64) -> (Outcome, String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../replay/scenarios").join(scenario);
    let scenario = Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    with_model(&scenario, Golden { scenario: &scenario, seed, replays }).unwrap()
}

#[test]
fn two_phase() {
    let (_, trace, log) = golden("two-phase.toml", 1, 3_000);
    insta::assert_snapshot!("two_phase_trace", trace);
    insta::assert_snapshot!("two_phase_shiviz", log);
}

#[test]
fn raft_45() {
    let (_, trace, log) = golden("raft-45.toml", 1, 60_000);
    insta::assert_snapshot!("raft_45_trace", trace);
    insta::assert_snapshot!("raft_45_shiviz", log);
}
