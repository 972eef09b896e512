//! The recorded executions of Spark, minimized.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

#[path = "../../../replay/tests/it/recorded.rs"]
mod recorded;

use self::recorded::{from_records, recorded, schedule};
use demi_included::{Visitor, with_model};
use demi_minimize::unschedulable;
use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario, Schedule, StepKind};

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

fn shrinks(case: &str, budget: u64, deliveries: u64, externals: u64) {
    let Some(folder) = recorded(case) else { return };
    let scenario = Scenario::parse(&std::fs::read_to_string(folder.join("scenario.toml")).unwrap()).unwrap();
    let schedule = schedule(&folder);
    let found = with_model(&scenario, Minimize(&schedule, options(budget, scenario.network))).unwrap();
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
    shrinks("spark-9256", 20_000, 8, 1);
}

/// The driver, and the master's end and new beginning: as few as the shortest made by hand.
#[test]
fn spark_3150_shrinks() {
    shrinks("spark-3150", 20_000, 7, 3);
}

#[test]
fn spark_2294_shrinks() {
    shrinks("spark-2294", 60_000, 24, 3);
}

struct Fuzz<'a>(&'a Scenario);

impl Visitor for Fuzz<'_> {
    type Output = Option<Found>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Option<Found> {
        let options = FuzzOptions::new(1, 50, 1500);
        fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap()
    }
}

fn options(budget: u64, rule: NetworkRule) -> Options {
    Options {
        rule,
        budget: Budget::Replays(budget),
        jobs: 2,
        phases: Phases::All,
        objective: Objective::Steps,
        stop: StopFlag::default(),
    }
}

/// A run found by fuzzing: the driver, and the master's end and new beginning, which go together.
#[test]
fn a_restarted_master_stays_restarted() {
    let scenario = Scenario::parse(include_str!("../../../replay/scenarios/spark-3150.toml")).unwrap();
    let found = with_model(&scenario, Fuzz(&scenario)).unwrap().unwrap();
    let schedule = from_records(found.records.into_iter().map(|(_, records)| records).collect());
    let found = with_model(&scenario, Minimize(&schedule, options(20_000, NetworkRule::Fifo))).unwrap();
    let size = (found.summary.deliveries, found.summary.externals);
    // As few as the shortest made by hand.
    assert!(size.0 <= 7 && size.1 <= 3, "{size:?}");
    let has = |kind| found.schedule.steps.iter().filter(|s| s.kind == kind).count();
    assert_eq!((has(StepKind::Stop), has(StepKind::Action)), (1, 1));
}

/// A run found by fuzzing where tasks ask and tell the location directory under temporary names, and two jobs look alike
/// in logs: no line of work loses them.
#[test]
fn cached_blocks_shrink() {
    let scenario = Scenario::parse(include_str!("../../../replay/scenarios/spark-2294-blocks.toml")).unwrap();
    let found = with_model(&scenario, Fuzz(&scenario)).unwrap().unwrap();
    let schedule = from_records(found.records.into_iter().map(|(_, records)| records).collect());
    let found = with_model(&scenario, Minimize(&schedule, options(20_000, NetworkRule::Fifo))).unwrap();
    let size = (found.summary.deliveries, found.summary.externals);
    assert!(size.0 <= 43 && size.1 <= 3, "{size:?}");
    // Nothing else that was found is better in both figures.
    for other in &found.summary.others {
        assert!(other.deliveries > size.0 || other.externals > size.1, "{size:?} {other:?}");
    }
    assert_eq!(with_model(&scenario, Unschedulable(&found.schedule)).unwrap(), None);
}

struct Unschedulable<'a>(&'a Schedule);

impl Visitor for Unschedulable<'_> {
    type Output = Option<String>;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Option<String> {
        unschedulable(&sim, self.0, NetworkRule::Fifo).unwrap()
    }
}

/// Without channel order a result may be one that no network makes, which is said.
#[test]
fn a_result_that_overtakes_is_told() {
    let Some(folder) = recorded("spark-2294") else { return };
    let scenario = Scenario::parse(&std::fs::read_to_string(folder.join("scenario.toml")).unwrap()).unwrap();
    let schedule = schedule(&folder);
    let found = with_model(&scenario, Minimize(&schedule, options(5_000, NetworkRule::Fifo))).unwrap();
    assert_eq!(with_model(&scenario, Unschedulable(&found.schedule)).unwrap(), None);
    // The violation needs an executor, and the master launches one after it has told the worker that it is registered.
    let mut overtaking = found.schedule.clone();
    let told = |s: &demi_schemas::Step| s.payload.as_deref() == Some("RegisteredWorker");
    let launched =
        |s: &demi_schemas::Step| s.payload.as_deref().is_some_and(|p| p.starts_with("LaunchExecutor("));
    let worker = overtaking.steps.iter().find(|step| launched(step)).unwrap().to.clone();
    let at = overtaking.steps.iter().position(|step| told(step) && step.to == worker).unwrap();
    overtaking.steps.remove(at);
    let why = with_model(&scenario, Unschedulable(&overtaking)).unwrap().unwrap();
    assert!(why.contains("LaunchExecutor") && why.contains("stands behind"), "{why}");
}
