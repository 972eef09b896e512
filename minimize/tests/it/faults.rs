//! The exhaustive search over executions with faults, against random executions and against the checker of certificates,
//! which shares nothing with it.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;

use crate::common::random::{FAULTS, RULES, engine, events, meter, repeating};
use crate::common::{KINDS, TARGET, options, simulator, table};
use demi_check::{CertificateError, Checked};
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::search::{Query, Root};
use demi_minimize::{Objective, minimize};
use demi_replay::script::Act;
use demi_schemas::schedule::{Schedule, StepKind};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

#[test]
fn nothing_shorter_than_what_is_found_exists() {
    let (met, shorter) = compared(0, 20_000);
    assert!(met > 2_000 && shorter > 400, "{met} {shorter}");
}

#[test]
fn nothing_shorter_exists_where_the_network_repeats_messages() {
    let (met, shorter) = compared(2, 10_000);
    assert!(met > 1_000 && shorter > 200, "{met} {shorter}");
}

/// Messages from outside, by receiver and content, with how often each is delivered; copies that the network made are none.
fn from_outside(schedule: &Schedule) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for step in schedule.steps.iter().filter(|step| step.kind == StepKind::Deliver && !step.copy) {
        if step.external == Some(true) {
            *counts.entry((step.to.clone(), step.payload.clone().unwrap_or_default())).or_default() += 1;
        }
    }
    counts
}

#[test]
fn no_message_comes_more_often_than_it_was_recorded() {
    let count = proptest::collection::vec((0..3_u16, 0..KINDS), 1..4);
    let faults = proptest::collection::vec((0..3_u16, 0..FAULTS.len()), 1..4);
    let choices = proptest::collection::vec(0..1_000_usize, 8..40);
    let all = (table(), count, faults, choices, 0..RULES.len());
    let config = ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let met = std::cell::Cell::new(0);
    TestRunner::new_with_rng(config, rng)
        .run(&all, |(mut table, outside, faults, choices, rule)| {
            let rule = RULES[rule];
            let events = events(&table, &outside, &faults);
            let Some(recorded) = repeating(&mut table, &events, &choices, rule, 0) else { return Ok(()) };
            if recorded.steps.len() < 8 {
                return Ok(());
            }
            let asked = options(rule, Objective::Steps, 6_000);
            let found = minimize(&simulator(&table), &recorded, None, &asked, &|_| {});
            let Ok(found) = found else { return Ok(()) };
            let known = from_outside(&recorded);
            for (message, count) in from_outside(&found.schedule) {
                prop_assert!(
                    known.get(&message).is_some_and(|most| count <= *most),
                    "{:?} {} times\n{}\n{}",
                    message,
                    count,
                    recorded.to_text(),
                    found.schedule.to_text()
                );
            }
            met.set(met.get() + 1);
            Ok(())
        })
        .unwrap();
    assert!(met.get() > 30, "{}", met.get());
}

/// Compares searches over executions in which the network repeats so many messages: how many there were, and how many of them
/// could be shortened.
fn compared(repeats: usize, cases: u32) -> (usize, usize) {
    let count = proptest::collection::vec((0..3_u16, 0..KINDS), 1..4);
    let faults = proptest::collection::vec((0..3_u16, 0..FAULTS.len()), 1..4);
    let choices = proptest::collection::vec(0..1_000_usize, 2..14);
    let all = (table(), count, faults, choices, 0..RULES.len());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[62; 32]);
    let (met, shorter) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    TestRunner::new_with_rng(config, rng)
        .run(&all, |(mut table, outside, faults, choices, rule)| {
            let rule = RULES[rule];
            let events = events(&table, &outside, &faults);
            let Some(recorded) = repeating(&mut table, &events, &choices, rule, repeats) else {
                return Ok(());
            };
            let (mut engine, script) = engine(&table, &recorded, rule);
            let Some(witness) = engine.first_witness(&script.acts, EXACT) else { return Ok(()) };
            let faults =
                witness.acts.iter().filter(|act| !act.is_delivery() && !matches!(act, Act::Start(_)));
            if faults.count() == 0 {
                return Ok(());
            }
            let query = Query::from(Root::Started).over(&witness.acts).deliveries(witness.size.deliveries);
            let found = query.clone().run(&mut engine).unwrap();
            let again = query.threads(3).run(&mut engine).unwrap();
            prop_assert!(
                found.complete,
                "{:?} {:?} {:?} {:?}",
                found.stopped,
                found.at_least,
                found.states,
                engine.to_schedule(&witness.acts).to_text()
            );
            let best = found.found.unwrap();
            prop_assert_eq!(&best.acts, &again.found.unwrap().acts);
            prop_assert_eq!((found.at_least, found.states), (best.size.deliveries, again.states));
            let (schedule, target) = (engine.to_schedule(&witness.acts), vec![TARGET.to_owned()]);
            let mut checked = Checked::new(&simulator(&table), &schedule, rule, &target).unwrap();
            let none = checked.none_shorter(found.at_least, false, &mut meter());
            prop_assert!(matches!(none, Ok(Some(_))), "{:?}, found {}", none, found.at_least);
            let one = checked.none_shorter(found.at_least + 1, false, &mut meter());
            prop_assert!(matches!(one, Err(CertificateError::False(_))), "{:?}", one);
            met.set(met.get() + 1);
            shorter.set(shorter.get() + usize::from(best.size.deliveries < witness.size.deliveries));
            Ok(())
        })
        .unwrap();
    (met.get(), shorter.get())
}
