//! Each misuse is found, and what is found is minimized to a few steps that replay strictly.

use demi_minimize::{Budget, Objective, Options, Phases, StopFlag, minimize};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};

use crate::common::{scenario, simulator};

/// Runs of a seed.
const RUNS: u64 = 100;

fn found_and_minimized(name: &str, (seed, deliveries, states): (u64, u64, u64), expected: &[&str]) {
    let scenario = scenario(name);
    let sim = simulator(&scenario);
    let options = FuzzOptions::new(seed, RUNS, deliveries);
    let found = fuzz(&mut sim.clone(), &scenario, &options, &mut |_| true).unwrap().unwrap();
    assert!(found.violation.iter().all(|v| expected.contains(&v.as_str())), "{:?}", found.violation);
    let options = Options {
        rule: scenario.network,
        budget: Budget::States(states),
        jobs: 1,
        phases: Phases::All,
        objective: Objective::default(),
        stop: StopFlag::default(),
    };
    let outcome = minimize(&sim, &found.schedule, None, &options, &|_| {}).unwrap();
    let strictly = ReplayOptions { rule: scenario.network, strict: true, interval: 1 };
    let replayed = replay(&mut sim.clone(), &outcome.schedule, &strictly).unwrap();
    assert_eq!(replayed.divergences, 0, "{}", outcome.schedule.to_text());
    assert!(replayed.violation.iter().any(|v| found.violation.contains(v)));
    let steps = outcome.schedule.steps.len();
    println!("{name}: {} deliveries found, {steps} steps left", found.deliveries);
    assert!(steps < 40, "{}", outcome.schedule.to_text());
}

/// What may be seen first where something is lost.
const LOST: [&str; 5] =
    ["ElectionSafety", "LogMatching", "StateMachineSafety", "LeaderCompleteness", "AcknowledgedWrites"];

#[test]
fn messages_that_are_sent_before_the_sync() {
    found_and_minimized("send-before-sync", (1, 500, 1_000_000), &LOST);
}

#[test]
fn entries_that_are_applied_before_their_commit_index_is_persisted() {
    found_and_minimized("apply-before-persist", (1, 500, 1_000_000), &["NoPanic"]);
}

#[test]
fn a_hard_state_that_is_not_synced() {
    found_and_minimized("ignore-must-sync", (1, 500, 1_000_000), &LOST);
}

#[test]
fn reads_that_nobody_confirms() {
    found_and_minimized("read-without-index", (1, 500, 1_000_000), &["LinearizableReads"]);
}

#[test]
fn a_leader_that_goes_on_after_its_removal() {
    found_and_minimized("removed-goes-on", (1, 500, 1_000_000), &["NoPanic", "LinearizableReads"]);
}

#[test]
fn reads_at_a_leader_that_was_removed() {
    found_and_minimized("removed-reads", (3, 1_200, 3_000_000), &["LinearizableReads"]);
}
