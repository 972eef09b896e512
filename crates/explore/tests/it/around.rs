//! Exploration around a recorded execution: its own order costs nothing, and so leads to its violation again.

use demi_explore::{Bounds, Cost, Ended, ExploreOptions, Scene, SceneError, Spent, explore};
use demi_included::with_model;
use demi_replay::fuzz::{FuzzOptions, Made, fuzz, written};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::schedule::StepKind;
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;

use crate::machine::{simulator, table};

struct Recorded<'a>(&'a Scenario, u64);

impl Visitor for Recorded<'_> {
    type Output = ();

    fn visit<M: Model>(self, mut sim: Simulator<M>) {
        let options = FuzzOptions { at_least: 20, ..FuzzOptions::new(self.1, 50_000, 400) };
        let found = fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().unwrap();
        for before in [1, 2, 4, 8, 16] {
            let from = found.deliveries - before;
            let (scene, first) = Scene::around(&mut sim, self.0, &found.schedule, from).unwrap();
            let most = Spent { cost: 0, faults: 0, steps: 100 };
            let bounds = Bounds { cost: Cost::Deviation, most };
            let explored =
                explore(&mut sim, (&scene, first), bounds, ExploreOptions::default(), &mut |_| true).unwrap();
            let finding = explored.findings.first().unwrap();
            assert_eq!(finding.spent.cost, 0);
            let names: Vec<String> = finding.violations.iter().map(|v| v.fingerprint.clone()).collect();
            assert_eq!(names, found.violation, "{before} before the violation");
            // The whole of it is an execution of its own.
            let parts = (self.0, &scene.program);
            let run = written(&mut sim, parts, &finding.choices, &finding.violations, Made::default());
            let options = ReplayOptions { rule: self.0.network, strict: true, interval: 1 };
            let summary = replay(&mut sim, &run.schedule, &options).unwrap();
            assert_eq!((summary.verdict, &summary.violation), (Verdict::Violates, &names));
            assert_eq!(run.deliveries, found.deliveries);
        }
    }
}

/// Explores from the beginning, and replays what is found from nothing on.
struct Driven<'a>(&'a Scenario);

impl Visitor for Driven<'_> {
    type Output = usize;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> usize {
        let (scene, first) = Scene::of(&mut sim, self.0, Some(0), 1).unwrap();
        let bounds = Bounds { cost: Cost::Deviation, most: Spent { cost: 2, faults: 0, steps: 12 } };
        let options = ExploreOptions { all: true, ..ExploreOptions::default() };
        let explored = explore(&mut sim, (&scene, first), bounds, options, &mut |_| true).unwrap();
        for finding in &explored.findings {
            let parts = (self.0, &scene.program);
            let run = written(&mut sim, parts, &finding.choices, &finding.violations, Made::default());
            let options = ReplayOptions { rule: self.0.network, strict: true, interval: 1 };
            assert_eq!(replay(&mut sim, &run.schedule, &options).unwrap().verdict, Verdict::Violates);
        }
        explored.findings.len()
    }
}

#[test]
fn what_a_test_driver_does_at_once_is_of_the_execution_that_is_found() {
    let driver = "[[fuzz.program]]\nsend = { to = \"coordinator\", type = \"Begin\", payload = \"Begin(tx1,participant-1)\" }\n";
    let text = format!("{}\n{driver}", include_str!("../../../../replay/scenarios/two-phase.toml"));
    let scenario = Scenario::parse(&text).unwrap();
    assert!(with_model(&scenario, Driven(&scenario)).unwrap() > 0);
}

#[test]
fn a_recorded_violation_is_found_again_without_a_deviation() {
    for (name, seed) in [("raft-46", 1), ("raft-45", 2), ("raft-66", 1), ("raft-58b", 1)] {
        let path = format!("{}/../../replay/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        with_model(&scenario, Recorded(&scenario, seed)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// From wherever it begins, with the cache and without, and no matter how the recording ends.
    #[test]
    fn nothing_is_lost_around_random_executions(table in table(), seed: u64, from in 0..6_u64, bound in 0..3_u32) {
        let (scenario, mut sim) = simulator(&table, NetworkRule::Fifo);
        let options = FuzzOptions::new(seed, 20, 12);
        let Some(found) = fuzz(&mut sim, &scenario, &options, &mut |_| true).unwrap() else { return Ok(()) };
        for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
            let bounds = Bounds { cost, most: Spent { cost: bound, faults: 0, steps: 7 } };
            let [with, without] = [true, false].map(|cache| {
                let (scene, first) = Scene::around(&mut sim, &scenario, &found.schedule, from).unwrap();
                explore(&mut sim, (&scene, first), bounds, ExploreOptions { all: true, cache, ..ExploreOptions::default() }, &mut |_| true).unwrap()
            });
            prop_assert_eq!(with.ended, Ended::Complete);
            prop_assert_eq!((with.met, with.digest), (without.met, without.digest));
            prop_assert_eq!(with.findings.len(), without.findings.len());
        }
    }
}

#[test]
fn a_recording_of_another_system_is_refused() {
    let path = format!("{}/../../replay/scenarios/raft-46.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    struct Cut<'a>(&'a Scenario);
    impl Visitor for Cut<'_> {
        type Output = ();
        fn visit<M: Model>(self, mut sim: Simulator<M>) {
            let options = FuzzOptions { at_least: 20, ..FuzzOptions::new(1, 50_000, 400) };
            let found = fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().unwrap();
            let mut schedule = found.schedule;
            // Without its first timer nothing comes of it.
            let timer = schedule.steps.iter().position(|step| step.kind == StepKind::Timer).unwrap();
            schedule.steps.remove(timer);
            let error = Scene::around(&mut sim, self.0, &schedule, found.deliveries - 1).map(drop);
            assert!(matches!(error, Err(SceneError::Diverged(_))), "{error:?}");
        }
    }
    with_model(&scenario, Cut(&scenario)).unwrap();
}
