//! The cache loses nothing: the same configurations are met with it and without.

use demi_explore::{Bounds, Cost, ExploreOptions, Scene, Spent, explore};
use demi_included::with_model;
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;

use crate::machine::{simulator, table};

/// How many configurations there are, and their digest, with the cache and without; and the steps of both.
fn both<M: Model>(sim: &mut Simulator<M>, scenario: &Scenario, bounds: Bounds) -> [(u64, u128, u64); 2] {
    [true, false].map(|cache| {
        let (scene, first) = Scene::of(sim, scenario, Some(1), 1).unwrap();
        let explored = explore(
            sim,
            (&scene, first),
            bounds,
            ExploreOptions { all: true, cache, ..ExploreOptions::default() },
            &mut |_| true,
        )
        .unwrap();
        (explored.met, explored.digest, explored.levels.iter().map(|level| level.steps).sum())
    })
}

struct Included<'a>(&'a Scenario, Bounds);

impl Visitor for Included<'_> {
    type Output = [(u64, u128, u64); 2];

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        both(&mut sim, self.0, self.1)
    }
}

/// Each included model, with so many steps that a search without a cache can end.
#[test]
fn nothing_is_lost_of_the_included_models() {
    let mut gain = 0;
    for (name, depth) in [("raft-46", 10), ("spark-9256", 9), ("two-phase", 9)] {
        let path = format!("{}/../../replay/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let mut scenario = Scenario::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
            for bound in 0..=3 {
                for network in [NetworkRule::Fifo, NetworkRule::Unordered] {
                    scenario.network = network;
                    // Deviations branch widely.
                    let steps = depth - bound;
                    let bounds = Bounds { cost, most: Spent { cost: bound, faults: bound / 3, steps } };
                    let [with, without] = with_model(&scenario, Included(&scenario, bounds)).unwrap();
                    let told = format!("{name} {cost} {bound} {network}");
                    assert_eq!((with.0, with.1), (without.0, without.1), "{told}");
                    assert!(with.2 <= without.2, "{told}");
                    gain += without.2 - with.2;
                }
            }
        }
    }
    assert!(gain > 1_000, "the cache spares only {gain} steps");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_of_random_systems(table in table(), fifo: bool, faults in 0..2_u32, bound in 0..4_u32) {
        let rule = if fifo { NetworkRule::Fifo } else { NetworkRule::Unordered };
        for cost in [Cost::Deviation, Cost::Delay, Cost::Preempt] {
            let (scenario, mut sim) = simulator(&table, rule);
            let bounds = Bounds { cost, most: Spent { cost: bound, faults, steps: 6 } };
            let [with, without] = both(&mut sim, &scenario, bounds);
            prop_assert_eq!((with.0, with.1), (without.0, without.1));
        }
    }
}
