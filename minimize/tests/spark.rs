//! The recorded executions of Spark, minimized.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

#[path = "../../replay/tests/recorded/mod.rs"]
mod recorded;

use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::models::{Visitor, with_model};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario, Schedule, StepKind};
use recorded::{recorded, schedule};

struct Minimize<'a>(&'a Schedule, Options);

impl Visitor for Minimize<'_> {
    type Output = Outcome;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Outcome {
        minimize(&sim, self.0, None, &self.1, &|_| {}).unwrap()
    }
}

struct Strictly<'a>(&'a Schedule);

impl Visitor for Strictly<'_> {
    type Output = ReplaySummary;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        let options = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };
        replay(&mut sim, self.0, &options).unwrap()
    }
}

fn shrinks(case: &str, budget: Budget, deliveries: u64, externals: u64) {
    let Some(folder) = recorded(case) else { return };
    let scenario = Scenario::parse(&std::fs::read_to_string(folder.join("scenario.toml")).unwrap()).unwrap();
    let options = Options {
        rule: scenario.network,
        budget,
        jobs: 2,
        phases: Phases::All,
        objective: Objective::Externals,
        stop: StopFlag::default(),
    };
    let schedule = schedule(&folder);
    let found = with_model(&scenario, Minimize(&schedule, options)).unwrap();
    let size = (found.summary.deliveries, found.summary.externals);
    assert!(size.0 <= deliveries && size.1 <= externals, "{case}: {size:?}");
    // The start-up is there, whatever the recorded window was, and stands first.
    let done = found.schedule.steps.iter().position(|s| s.type_.as_deref() == Some("Props")).unwrap();
    assert!(found.schedule.steps[..=done].iter().any(|s| s.type_.as_deref() == Some("RegisterBlockManager")));
    assert!(!found.schedule.steps[..done].iter().any(|s| s.kind == StepKind::Action));
    // Without the bug the schedule breaks nothing.
    let mended = Scenario { switches: std::collections::BTreeMap::default(), ..scenario.clone() };
    for (scenario, violates) in [(&scenario, true), (&mended, false)] {
        let summary = with_model(scenario, Strictly(&found.schedule)).unwrap();
        assert_eq!(summary.verdict == Verdict::Violates, violates, "{case}");
        assert_eq!(summary.divergences, 0, "{case}");
    }
}

#[test]
fn spark_9256_shrinks() {
    shrinks("spark-9256", Budget::Replays(20_000), 8, 1);
}

#[test]
fn spark_2294_shrinks() {
    shrinks("spark-2294", Budget::Replays(60_000), 24, 3);
}
