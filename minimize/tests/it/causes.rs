//! The trace names the step that sent what is delivered, also where an equal message was lost before.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(dead_code, reason = "not all of the tiny systems is needed here")]

use crate::common::{HOPS, KINDS, Msg, Rule, STATES, Table, actor_name, simulator, step};
use demi_minimize::report::{shiviz, tell};
use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Schedule, Step, StepKind};

/// The first actor passes on what it gets to the second and arms its timer with it; the second does nothing.
fn table() -> Table {
    let rule = |actor: u16, kind: u8| Rule {
        next: 0,
        sends: if actor == 1 { vec![(2, kind)] } else { Vec::new() },
        timer: (actor == 1).then_some(Some(kind)),
    };
    let rules = (1..=2).flat_map(|a| (0..STATES).flat_map(move |_| (0..KINDS).map(move |k| rule(a, k))));
    Table { actors: 2, rules: rules.collect(), bad: (1, 1), blind: false }
}

fn causes(steps: Vec<Step>, rule: NetworkRule) -> Vec<Option<usize>> {
    let told = tell(&simulator(&table()), &Schedule::new(steps), rule).unwrap();
    assert_eq!(shiviz(&told).lines().count(), 2 + 2 * told.len());
    told.iter().map(|t| t.cause).collect()
}

fn first(kind: u8) -> Msg {
    Msg { kind, hops: HOPS }
}

fn passed_on(kind: u8) -> Msg {
    Msg { kind, hops: HOPS - 1 }
}

fn starts() -> Vec<Step> {
    vec![Step::new(StepKind::Start, actor_name(1)), Step::new(StepKind::Start, actor_name(2))]
}

#[test]
fn of_equal_messages_the_lost_one_is_no_cause() {
    let mut steps = starts();
    steps.extend([0, 1, 0].map(|kind| step(Some(0), 1, first(kind))));
    // The message of step 3 (from 1) is overtaken and lost; the next equal one is that of step 5.
    steps.extend([1, 0].map(|kind| step(Some(1), 2, passed_on(kind))));
    assert_eq!(causes(steps.clone(), NetworkRule::FifoLoss)[5..], [Some(3), Some(4)]);
    assert_eq!(causes(steps, NetworkRule::Unordered)[5..], [Some(3), Some(2)]);
}

#[test]
fn what_a_cut_off_actor_sent_is_no_cause() {
    let mut steps = starts();
    steps.push(step(Some(0), 1, first(0)));
    steps.push(Step::new(StepKind::Isolate, actor_name(1)));
    steps.push(step(None, 1, passed_on(0)));
    steps.push(step(Some(1), 2, passed_on(0)));
    assert_eq!(causes(steps, NetworkRule::Fifo)[4..], [Some(2), Some(2)]);
}

#[test]
fn a_timer_is_armed_by_the_step_that_armed_it_last() {
    let mut steps = starts();
    steps.extend([0, 0].map(|kind| step(Some(0), 1, first(kind))));
    steps.push(step(None, 1, passed_on(0)));
    assert_eq!(causes(steps, NetworkRule::Fifo)[4], Some(3));
    // A new incarnation forgets its timers; the one that fires was armed in it.
    let mut steps = starts();
    steps.push(step(Some(0), 1, first(0)));
    steps.push(Step::new(StepKind::Restart, actor_name(1)));
    steps.push(step(Some(0), 1, first(0)));
    steps.push(step(None, 1, passed_on(0)));
    assert_eq!(causes(steps, NetworkRule::Fifo)[5], Some(4));
}
