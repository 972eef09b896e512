//! Each model breaks its invariant with its bug and keeps it without; the shortest executions replay strictly.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_check::optimum::{Optimum, optimum};
use demi_included::Visitor;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;
use demi_zoo::recording::record;
use demi_zoo::{ZOO, scenario, with_model};

/// Random runs without the bug, and deliveries of each.
const RUNS: u64 = 30;
const DELIVERIES: u64 = 1_500;

struct Holds<'a>(&'a Scenario);

impl Visitor for Holds<'_> {
    type Output = Option<Vec<String>>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = FuzzOptions::new(7, RUNS, DELIVERIES);
        fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().map(|f| f.violation)
    }
}

/// The size of an execution, and the number of steps of a shortest one, if that is found with so few configurations.
struct Found<'a>(&'a Scenario, usize);

impl Visitor for Found<'_> {
    type Output = Option<(u64, Option<usize>)>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let Found(scenario, limit) = self;
        let (_, found) = record(&sim, scenario, 1, 20).unwrap().into_iter().next()?;
        let shortest = optimum(&sim, &found.schedule, scenario.network, &found.violation, limit).unwrap();
        let Optimum::Proven(schedule) = shortest else { return Some((found.deliveries, None)) };
        let options = ReplayOptions { rule: scenario.network, strict: true, interval: 1 };
        let outcome = replay(&mut sim.clone(), &schedule, &options).unwrap();
        assert_eq!(outcome.divergences, 0, "{schedule:?}");
        assert!(outcome.violation.iter().any(|v| found.violation.contains(v)), "{schedule:?}");
        Some((found.deliveries, Some(schedule.steps.len())))
    }
}

#[test]
fn without_its_bug_each_model_keeps_its_invariant() {
    let broken: Vec<_> = ZOO
        .iter()
        .filter(|system| {
            let mut scenario = scenario(system.name).unwrap();
            scenario.switches.insert(system.switch.to_owned(), false);
            with_model(&scenario, Holds(&scenario)).unwrap().is_some()
        })
        .map(|system| system.name)
        .collect();
    assert_eq!(broken, [""; 0]);
}

#[test]
fn with_its_bug_each_model_has_executions_of_the_right_size() {
    let none: Vec<_> = ZOO
        .iter()
        .filter(|system| {
            let scenario = scenario(system.name).unwrap();
            let found = with_model(&scenario, Found(&scenario, 20_000)).unwrap();
            println!("{}: deliveries, steps of the shortest: {found:?}", system.name);
            found.is_none()
        })
        .map(|system| system.name)
        .collect();
    assert_eq!(none, [""; 0]);
}

#[test]
fn a_ring_with_twins_has_two_leaders_after_eight_steps() {
    let scenario = scenario("ring").unwrap();
    let found = with_model(&scenario, Found(&scenario, 500_000)).unwrap();
    assert_eq!(found.and_then(|f| f.1), Some(8));
}

#[test]
fn each_scenario_names_its_model_and_its_switch() {
    for system in ZOO {
        let scenario = scenario(system.name).unwrap();
        assert_eq!(scenario.model, system.name);
        assert_eq!(scenario.switches.get(system.switch), Some(&true), "{}", system.name);
    }
}
