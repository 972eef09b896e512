//! Promises are checked by code that shares nothing with the search: it says the same, and refuses what is not true.

use std::cell::Cell;

use demi_check::promise::{Answer, Claim, RecheckError, Start, recheck};
use demi_explore::{Bounds, Cost, Ended, ExploreOptions, Explored, Origin, Promise, Scene, Spent, explore};
use demi_included::with_model;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::machine::{Table, simulator, table};

const COSTS: [Cost; 3] = [Cost::Deviation, Cost::Delay, Cost::Preempt];

fn all<M: Model>(sim: &mut Simulator<M>, scenario: &Scenario, bounds: Bounds) -> Explored {
    let (scene, first) = Scene::of(sim, scenario, None, 1).unwrap();
    explore(
        sim,
        (&scene, first),
        bounds,
        ExploreOptions { all: true, ..ExploreOptions::default() },
        &mut |_| true,
    )
    .unwrap()
}

fn kept<M: Model>(sim: &mut Simulator<M>, scenario: &Scenario, claim: Claim, start: Start<'_>) -> Answer {
    recheck(sim, scenario, claim, start, &mut |_| true).unwrap()
}

/// Whether an answer is the one that findings of an exploration of the same make right: the least number of steps, at what it costs.
fn agrees(answer: &Answer, explored: &Explored, claim: Claim) -> bool {
    let within = |spent: &Spent| {
        spent.cost <= claim.bound
            && spent.faults <= claim.faults
            && claim.steps.is_none_or(|most| spent.steps <= most)
    };
    let least = explored.findings.iter().filter(|finding| within(&finding.spent)).count();
    match answer {
        Answer::Kept { .. } => least == 0,
        Answer::Broken { violation, cost, faults, .. } => explored.findings.iter().any(|finding| {
            let names = finding.violations.iter().map(|v| &v.fingerprint);
            names.eq(violation)
                && finding.spent.cost <= *cost
                && within(&finding.spent)
                && *faults <= claim.faults
        }),
        Answer::Stopped => false,
    }
}

#[test]
fn it_says_what_the_search_says() {
    let (holds, breaks, endless) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let config = ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let rules = [NetworkRule::Unordered, NetworkRule::Fifo, NetworkRule::FifoLoss];
    let input = (table(), prop::sample::select(rules.to_vec()), 0..2_u32, 0..4_u32);
    let test = |(table, rule, faults, bound): (Table, NetworkRule, u32, u32)| {
        let steps = 6;
        for cost in COSTS {
            let (scenario, mut sim) = simulator(&table, rule);
            let most = Spent { cost: bound, faults, steps };
            let explored = all(&mut sim, &scenario, Bounds { cost, most });
            prop_assert_eq!(explored.ended, Ended::Complete);
            let clients = table.clients.len() as u32;
            let start = Start::Beginning { clients, seed: 1 };
            // Each claim within what was explored: what the search knows of it is what the check says.
            for bound in 0..=bound {
                let claim = Claim { cost, bound, faults, steps: Some(steps) };
                let answer = kept(&mut sim, &scenario, claim, start);
                prop_assert!(agrees(&answer, &explored, claim), "{:?} {:?}", answer, explored.findings);
                let counts = if matches!(answer, Answer::Kept { .. }) { &holds } else { &breaks };
                counts.set(counts.get() + 1);
            }
            // A promise is kept; one that is a unit more than what was found allows is not.
            let bounds = Bounds { cost, most };
            let promise = Promise::of(&explored, bounds, rule, Origin::Beginning(clients as usize));
            if let Some(promise) = promise {
                let claim = Claim { cost, bound: promise.bound, faults, steps: promise.steps };
                let answer = kept(&mut sim, &scenario, claim, start);
                prop_assert!(matches!(answer, Answer::Kept { .. }), "{:?}", answer);
                endless.set(endless.get() + usize::from(promise.steps.is_none()));
            }
            if let Some(finding) = explored.findings.first() {
                let Spent { cost: bound, faults, steps } = finding.spent;
                let claim = Claim { cost, bound, faults, steps: Some(steps) };
                let answer = kept(&mut sim, &scenario, claim, start);
                prop_assert!(matches!(answer, Answer::Broken { .. }), "{:?}", answer);
                // No shorter execution was found that costs as little.
                if let Some(steps) = steps.checked_sub(1) {
                    let claim = Claim { bound, faults, steps: Some(steps), cost };
                    let answer = kept(&mut sim, &scenario, claim, start);
                    let names = finding.violations.iter().map(|v| v.fingerprint.clone()).collect::<Vec<_>>();
                    let same = matches!(&answer, Answer::Broken { violation, .. } if *violation == names);
                    prop_assert!(!same, "{:?}", answer);
                }
            }
        }
        Ok(())
    };
    TestRunner::new_with_rng(config, rng).run(&input, test).unwrap();
    let told = format!("{} {} {}", holds.get(), breaks.get(), endless.get());
    assert!(holds.get() >= 200 && breaks.get() >= 200 && endless.get() >= 20, "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Around random executions too.
    #[test]
    fn it_says_the_same_around_recordings(table in table(), seed: u64, from in 0..6_u64, bound in 0..3_u32) {
        let (scenario, mut sim) = simulator(&table, NetworkRule::Fifo);
        let options = FuzzOptions::new(seed, 20, 12);
        let Some(found) = fuzz(&mut sim, &scenario, &options, &mut |_| true).unwrap() else { return Ok(()) };
        let from = from.min(found.deliveries);
        for cost in COSTS {
            let most = Spent { cost: bound, faults: 0, steps: 7 };
            let (scene, first) = Scene::around(&mut sim, &scenario, &found.schedule, from).unwrap();
            let explored =
                explore(&mut sim, (&scene, first), Bounds { cost, most }, ExploreOptions { all: true, ..ExploreOptions::default() }, &mut |_| true).unwrap();
            let claim = Claim { cost, bound, faults: 0, steps: Some(7) };
            let answer = kept(&mut sim, &scenario, claim, Start::Recorded(&found.schedule, from));
            prop_assert!(agrees(&answer, &explored, claim), "{:?} {:?}", answer, explored.findings);
        }
    }
}

#[test]
fn a_recording_that_is_too_short_and_a_caller_who_stops() {
    struct Short<'a>(&'a Scenario);
    impl Visitor for Short<'_> {
        type Output = ();
        fn visit<M: Model>(self, mut sim: Simulator<M>) {
            let options = FuzzOptions { at_least: 20, ..FuzzOptions::new(1, 50_000, 400) };
            let found = fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().unwrap();
            let claim = Claim { cost: Cost::Deviation, bound: 1, faults: 0, steps: Some(4) };
            let start = Start::Recorded(&found.schedule, found.deliveries + 1);
            let error = recheck(&mut sim, self.0, claim, start, &mut |_| true);
            assert_eq!(error, Err(RecheckError::Diverged(found.deliveries + 1)));
            let start = Start::Recorded(&found.schedule, found.deliveries);
            assert!(matches!(kept(&mut sim, self.0, claim, start), Answer::Broken { steps: 0, .. }));
            let start = Start::Recorded(&found.schedule, 0);
            let stopped = recheck(&mut sim, self.0, claim, start, &mut |_| false).unwrap();
            assert_eq!(stopped, Answer::Stopped);
        }
    }
    let path = format!("{}/../../replay/scenarios/raft-46.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    with_model(&scenario, Short(&scenario)).unwrap();
}
