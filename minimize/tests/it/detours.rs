//! Detours against brute force: where a shorter way leads to the same configuration, the pass finds a shorter witness.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::HashSet;

use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::oracle::witness::Shared;
use demi_minimize::reduce::passes::detours;
use demi_minimize::reduce::reducer::Reducer;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::Act;
use demi_schemas::NetworkRule;
use demi_schemas::summary::Verdict;
use proptest::prelude::*;

use crate::common::random::{RULES, engine, events, execution};
use crate::common::{Machine, simulator, table};

/// Deliveries of the stretches that are looked at by brute force.
const WIDTH: usize = 5;
/// Configurations of one layer up to which it goes on.
const MOST: usize = 3_000;

/// Whether some stretch of deliveries between actors has a shorter way to the very same configuration.
fn has_detour(engine: &mut Engine<Machine>, witness: &Shared<Machine>, rule: NetworkRule) -> bool {
    let internal = |act: &Act| act.is_delivery() && !act.is_external();
    let ordered = rule != NetworkRule::Unordered;
    for from in 0..witness.acts.len() {
        let width = witness.acts[from..].iter().take(WIDTH).take_while(|act| internal(act)).count();
        let (root, _) = engine.world_at(witness, from);
        for to in from + 2..=from + width {
            let goal = engine.world_at(witness, to).0.configuration_hash(ordered, |p| p.msg.0.into());
            let (mut layer, mut seen) = (vec![root.clone()], HashSet::new());
            for _ in 1..to - from {
                let mut next = Vec::new();
                for world in &layer {
                    for index in 0..world.pending().len() {
                        if !engine.sim.deliverable(world, index, rule) {
                            continue;
                        }
                        let mut after = world.clone();
                        engine.sim.deliver(&mut after, index, rule);
                        let hash = after.configuration_hash(ordered, |p| p.msg.0.into());
                        if hash == goal {
                            return true;
                        }
                        if seen.insert(hash) && next.len() < MOST {
                            next.push(after);
                        }
                    }
                }
                layer = next;
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn a_shorter_way_to_the_same_configuration_is_found(
        table in table(),
        outside in prop::collection::vec((0..3_u16, 0..3_u8), 1..4),
        choices in prop::collection::vec(any::<usize>(), 4..24),
        rule in prop::sample::select(&RULES[..]),
    ) {
        let mut table = table;
        let events = events(&table, &outside, &[]);
        let Some(recorded) = execution(&mut table, &events, &choices, rule) else { return Ok(()) };
        let (mut engine, script) = engine(&table, &recorded, rule);
        let Some(witness) = engine.first_witness(&script.acts, EXACT) else { return Ok(()) };
        let there = has_detour(&mut engine, &witness, rule);
        let before = witness.size;
        let mut reducer = Reducer::new(engine, witness, &|_| ());
        detours::search(&mut reducer, usize::MAX, &[]);
        let after = reducer.best.size;
        prop_assert!(!there || after.steps < before.steps, "{before:?} stays {after:?}");
        // By code that knows nothing of the pass.
        let schedule = reducer.engine.to_schedule(&reducer.best.acts);
        let strict = ReplayOptions { rule, strict: true, interval: 1 };
        let run = replay(&mut simulator(&table), &schedule, &strict).unwrap();
        prop_assert_eq!(run.verdict, Verdict::Violates);
    }
}
