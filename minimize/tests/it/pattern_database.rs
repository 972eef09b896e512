//! The bound for models that know none: it never says more than is needed, by exhaustive search without it, and it falls by
//! at most one a delivery.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::cell::Cell;
use std::sync::Arc;

use crate::common::random::{RULES, engine, events, execution};
use crate::common::{KINDS, table};
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::search::{Query, Root, pattern_database};
use demi_replay::script::Act;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

#[test]
fn it_never_says_more_than_is_needed() {
    let outside = proptest::collection::vec((0..3_u16, 0..KINDS), 1..5);
    let choices = proptest::collection::vec(0..1_000_usize, 3..16);
    let all = (table(), outside, choices, 0..RULES.len());
    let config = ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[63; 32]);
    let (more, fewer) = (Cell::new(0), Cell::new(0));
    TestRunner::new_with_rng(config, rng)
        .run(&all, |(mut table, outside, choices, rule)| {
            let rule = RULES[rule];
            let events = events(&table, &outside, &[]);
            let Some(recorded) = execution(&mut table, &events, &choices, rule) else { return Ok(()) };
            let (mut engine, script) = engine(&table, &recorded, rule);
            let Some(witness) = engine.first_witness(&script.acts, EXACT) else { return Ok(()) };
            let bound = Arc::new(pattern_database(&mut engine, &witness.acts).unwrap());
            let mut before = usize::MAX;
            for at in 0..=witness.acts.len() {
                let (mut world, _) = engine.world_at(&witness, at);
                let least = engine.sim.lower_bound(&world, &bound);
                let (made, left) = witness.acts.split_at(at);
                if left.iter().any(|act| matches!(act, Act::Start(_))) {
                    continue;
                }
                prop_assert!(before <= least.saturating_add(1) || before == usize::MAX);
                before = least;
                for act in left {
                    if let Act::Deliver(want) = act
                        && let Some(msg) = want.external
                    {
                        engine.sim.inject(&mut world, want.to, msg);
                    }
                }
                if left.is_empty() {
                    prop_assert_eq!(least, 0, "after {} acts", made.len());
                    continue;
                }
                let query = Query::from(Root::World(&world)).deliveries(left.len());
                let needed = query.run(&mut engine).unwrap().length;
                prop_assert!(least <= needed.unwrap(), "{} of {:?}", least, needed);
                more.set(more.get() + usize::from(least > 1));
            }
            let query = Query::from(Root::Started).over(&witness.acts).deliveries(witness.size.deliveries);
            let with = query.clone().bound(Some(&bound)).run(&mut engine).unwrap();
            let without = query.run(&mut engine).unwrap();
            prop_assert_eq!((with.at_least, with.complete), (without.at_least, true));
            prop_assert!(with.states <= without.states);
            fewer.set(fewer.get() + usize::from(with.states < without.states));
            Ok(())
        })
        .unwrap();
    assert!(more.get() > 1_000 && fewer.get() > 200, "{more:?} {fewer:?}");
}
