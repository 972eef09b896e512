//! Searches along a witness: the same as an enumeration of all executions that follow it in its order, with so many other deliveries between.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::cell::Cell;

use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::search::{Query, Root};
use demi_replay::names::TextId;
use demi_replay::script::Act;
use demi_replay::{ActorId, World};
use demi_schemas::NetworkRule;
use demi_space::Alike;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::common::random::{RULES, engine, events, execution};
use crate::common::{KINDS, Machine, TARGET, table};

/// What makes two deliveries one kind here.
type Kind = (Option<ActorId>, TextId);

/// How many deliveries of a list are not of a longest common subsequence with another.
fn between(made: &[Kind], witness: &[Kind]) -> usize {
    let mut common = vec![0_usize; witness.len() + 1];
    for one in made {
        let mut before = 0;
        for (at, other) in witness.iter().enumerate() {
            let above = common[at + 1];
            common[at + 1] = if one == other { before + 1 } else { above.max(common[at]) };
            before = above;
        }
    }
    made.len() - common[witness.len()]
}

/// The fewest deliveries, up to so many, of an execution that violates and has no more deliveries between those of the witness.
fn shortest(
    engine: &mut Engine<Machine>,
    (world, made): (&World<Machine>, &mut Vec<Kind>),
    (witness, whoever, beyond): (&[Kind], bool, usize),
    (most, rule): (usize, NetworkRule),
) -> Option<usize> {
    if made.len() == most {
        return None;
    }
    let mut least: Option<usize> = None;
    for index in 0..world.pending().len() {
        if !engine.sim.deliverable(world, index, rule) {
            continue;
        }
        let entry = world.pending()[index];
        made.push(((!whoever).then_some(entry.to), engine.sim.info(entry.msg).type_));
        if between(made, witness) <= beyond {
            let mut after = world.clone();
            engine.sim.deliver(&mut after, index, rule);
            let mut found = Vec::new();
            engine.sim.check(&after, &mut (), &mut found);
            let most = least.map_or(most, |least| least - 1);
            let length = match found.iter().any(|violation| violation.fingerprint == TARGET) {
                true => Some(made.len()).filter(|length| *length <= most),
                false => shortest(engine, (&after, made), (witness, whoever, beyond), (most, rule)),
            };
            least = length.or(least);
        }
        made.pop();
        if least == Some(made.len() + 1) {
            return least;
        }
    }
    least
}

#[test]
fn they_find_what_an_enumeration_finds() {
    let outside = proptest::collection::vec((0..3_u16, 0..KINDS), 1..4);
    let choices = proptest::collection::vec(0..1_000_usize, 3..10);
    let all = (table(), outside, choices, 0..RULES.len(), any::<bool>(), 0..3_u8);
    let config = ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[67; 32]);
    let (shorter, narrower) = (Cell::new(0), Cell::new(0));
    TestRunner::new_with_rng(config, rng)
        .run(&all, |(mut table, outside, choices, rule, whoever, beyond)| {
            let rule = RULES[rule];
            let events = events(&table, &outside, &[]);
            let Some(recorded) = execution(&mut table, &events, &choices, rule) else { return Ok(()) };
            let (mut engine, script) = engine(&table, &recorded, rule);
            let Some(witness) = engine.first_witness(&script.acts, EXACT) else { return Ok(()) };
            let most = witness.size.deliveries;
            if most > 7 {
                return Ok(());
            }
            let alike = if whoever { Alike::Type } else { Alike::ReceiverAndType };
            let query = Query::from(Root::Started).over(&witness.acts).deliveries(most);
            let free = query.clone().run(&mut engine).unwrap().length;
            let along = query.in_order(&witness.acts, alike, beyond).run(&mut engine).unwrap();
            let kind = |act: &Act| match act {
                Act::Deliver(want) => Some(((!whoever).then_some(want.to), want.type_)),
                _ => None,
            };
            let kinds: Vec<Kind> = witness.acts.iter().filter_map(kind).collect();
            let mut world = engine.sim.empty_world();
            for act in witness.acts.iter().filter(|act| matches!(act, Act::Start(_))) {
                engine.follow(&mut world, act);
            }
            for act in &witness.acts {
                if let Act::Deliver(want) = act
                    && let Some(msg) = want.external
                {
                    engine.sim.inject(&mut world, want.to, msg);
                }
            }
            let limits = (kinds.as_slice(), whoever, usize::from(beyond));
            let expected = shortest(&mut engine, (&world, &mut Vec::new()), limits, (most, rule));
            prop_assert_eq!(along.length, expected);
            shorter.set(shorter.get() + usize::from(expected.is_some_and(|length| length < most)));
            narrower.set(narrower.get() + usize::from(free < expected || expected.is_none()));
            Ok(())
        })
        .unwrap();
    assert!(shorter.get() > 100 && narrower.get() > 10, "{shorter:?} {narrower:?}");
}
