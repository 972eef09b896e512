//! Threads, kept configurations and stops change nothing in what an exploration comes to.

use std::cell::Cell;

use demi_explore::{Bounds, Cost, Ended, ExploreOptions, Explored, Saved, Scene, Spent, explore};
use demi_included::with_model;
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;

use crate::machine::{simulator, table};

/// Explores; stops after so many answers of `tell`.
fn run<M: Model>(
    sim: &Simulator<M>,
    scenario: &Scenario,
    bounds: Bounds,
    options: ExploreOptions<'_>,
    mut left: u64,
) -> Explored {
    let mut sim = sim.clone();
    let (scene, first) = Scene::of(&mut sim, scenario, Some(1), 1).unwrap();
    let part = Cell::new(0.0);
    let mut tell = |told: demi_explore::Told| {
        assert!(told.part >= part.get() && told.part < 1.0 + 1e-6, "{} after {}", told.part, part.get());
        part.set(told.part);
        left = left.saturating_sub(1);
        left > 0
    };
    explore(&mut sim, (&scene, first), bounds, options, &mut tell).unwrap()
}

/// Through a file, and with more stops than one.
fn in_parts<M: Model>(
    sim: &Simulator<M>,
    scenario: &Scenario,
    bounds: Bounds,
    options: ExploreOptions<'_>,
    each: u64,
) -> (Explored, u32) {
    let mut explored = run(sim, scenario, bounds, options, each);
    let mut stops = 0;
    while explored.ended == Ended::Stopped {
        stops += 1;
        let mut text = Vec::new();
        explored.saved.write(&mut text).unwrap();
        let mut line = 1;
        let saved = Saved::read(&mut text.as_slice(), &mut line).unwrap();
        assert_eq!(saved, explored.saved);
        assert_eq!(line, 1 + text.iter().filter(|&&byte| byte == b'\n').count() as u64);
        let options = ExploreOptions { from: Some(&saved), ..options };
        explored = run(sim, scenario, bounds, options, each);
    }
    (explored, stops)
}

struct Included<'a>(&'a Scenario, Bounds);

impl Visitor for Included<'_> {
    type Output = ();

    fn visit<M: Model>(self, sim: Simulator<M>) {
        let Included(scenario, bounds) = self;
        for all in [false, true] {
            let options = ExploreOptions { all, ..ExploreOptions::default() };
            let alone = run(&sim, scenario, bounds, options, u64::MAX);
            for jobs in [2, 5] {
                for kept in [1 << 18, 40, 0] {
                    let options = ExploreOptions { jobs, kept, ..options };
                    assert_eq!(run(&sim, scenario, bounds, options, u64::MAX), alone, "{jobs} {kept}");
                }
            }
            let turns: u64 =
                alone.levels.iter().map(|level| level.moments + level.known + level.ends + level.cut).sum();
            for jobs in [1, 3] {
                let options = ExploreOptions { jobs, ..options };
                let (parts, stops) = in_parts(&sim, scenario, bounds, options, turns / 3 + 2);
                assert_eq!(parts, alone, "{jobs}");
                assert!(stops > 0 || turns < 10, "{stops} {turns}");
            }
        }
    }
}

#[test]
fn included_models_with_any_number_of_threads_and_stops() {
    for (name, steps) in [("raft-46", 13), ("spark-9256", 9), ("two-phase", 9)] {
        let path = format!("{}/../../replay/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        // Preemptions leave most choices free, so those executions are shorter.
        for (cost, bound, steps) in
            [(Cost::Deviation, 1, steps), (Cost::Delay, 3, steps), (Cost::Preempt, 0, steps - 3)]
        {
            let bounds = Bounds { cost, most: Spent { cost: bound, faults: 1, steps } };
            with_model(&scenario, Included(&scenario, bounds)).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_systems_with_stops(table in table(), faults in 0..2_u32, bound in 0..4_u32, each in 2..40_u64, all: bool) {
        for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
            let (scenario, sim) = simulator(&table, NetworkRule::Fifo);
            let bounds = Bounds { cost, most: Spent { cost: bound, faults, steps: 6 } };
            let options = ExploreOptions { all, ..ExploreOptions::default() };
            let whole = run(&sim, &scenario, bounds, options, u64::MAX);
            let (parts, _) = in_parts(&sim, &scenario, bounds, options, each);
            prop_assert_eq!(parts, whole.clone());
            let few = run(&sim, &scenario, bounds, ExploreOptions { jobs: 2, kept: 3, ..options }, u64::MAX);
            prop_assert_eq!(few, whole);
        }
    }
}
