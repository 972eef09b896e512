//! The exhaustive search over executions with faults, against random executions and against the checker of certificates,
//! which shares nothing with it.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod common;

use common::{HOPS, KINDS, Machine, Msg, TARGET, Table, actor_name, simulator, step, table};
use demi_minimize::budget::Meter;
use demi_minimize::certificate::{CertificateError, Checked};
use demi_minimize::engine::{EXACT, Engine};
use demi_minimize::search::shortest;
use demi_minimize::{Budget, Objective, StopFlag};
use demi_replay::script::{Act, Script, Want};
use demi_replay::{ActorId, World};
use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];
const FAULTS: [StepKind; 4] = [StepKind::Crash, StepKind::Restart, StepKind::Isolate, StepKind::Stop];

fn meter() -> Meter {
    Meter::new(Budget::Seconds(1e6), StopFlag::default())
}

fn engine(table: &Table, schedule: &Schedule, rule: NetworkRule) -> (Engine<Machine>, Script) {
    let mut sim = simulator(table);
    let (script, _) = Script::compile(&mut sim, schedule).unwrap();
    let engine = Engine::new(sim, &script, rule, vec![TARGET.into()], Objective::Deliveries, meter());
    (engine, script)
}

/// What may happen: starts, messages from outside, faults.
fn events(table: &Table, outside: &[(u16, u8)], faults: &[(u16, usize)]) -> Schedule {
    let actor = |n: u16| 1 + n % table.actors;
    let mut steps: Vec<Step> =
        (1..=table.actors).map(|n| Step::new(StepKind::Start, actor_name(n))).collect();
    steps.extend(outside.iter().map(|&(n, kind)| step(Some(0), actor(n), Msg { kind, hops: HOPS })));
    steps.extend(faults.iter().map(|&(n, kind)| Step::new(FAULTS[kind], actor_name(actor(n)))));
    Schedule::new(steps)
}

/// A random execution in which all the events may happen, and the pair of states of the first two actors that comes last
/// of all for the first time.
fn execution(table: &mut Table, events: &Schedule, choices: &[usize], rule: NetworkRule) -> Option<Schedule> {
    let (mut engine, script) = engine(table, events, rule);
    let mut world = engine.sim.empty_world();
    let (mut acts, mut left): (Vec<Act>, Vec<Act>) =
        script.acts.iter().partition(|act| matches!(act, Act::Start(_)));
    acts.iter().for_each(|act| assert!(engine.follow(&mut world, act)));
    let pair = |engine: &Engine<Machine>, world: &World<Machine>| {
        let view = engine.sim.view(world);
        Some((*view.state(ActorId(1))?, *view.state(ActorId(2))?))
    };
    let mut seen = vec![(0, 0)];
    let mut cut = 0;
    for choice in choices {
        let ready: Vec<usize> =
            (0..world.pending().len()).filter(|&index| engine.sim.deliverable(&world, index, rule)).collect();
        let choice = choice % (ready.len() + left.len()).max(1);
        if let Some(&index) = ready.get(choice) {
            let entry = world.pending()[index];
            acts.push(Act::Deliver(Want::of(&engine.sim, &world, &entry)));
            engine.sim.deliver(&mut world, index, rule);
        } else if choice - ready.len() < left.len() {
            let act = left.remove(choice - ready.len());
            if !engine.follow(&mut world, &act) {
                continue;
            }
            acts.push(act);
        }
        if let (Some(Act::Deliver(_)), Some(pair)) = (acts.last(), pair(&engine, &world))
            && !seen.contains(&pair)
        {
            seen.push(pair);
            (table.bad, cut) = (pair, acts.len());
        }
    }
    (cut > 0).then(|| engine.to_schedule(&acts[..cut]))
}

#[test]
fn nothing_shorter_than_what_is_found_exists() {
    let count = proptest::collection::vec((0..3_u16, 0..KINDS), 1..4);
    let faults = proptest::collection::vec((0..3_u16, 0..FAULTS.len()), 1..4);
    let choices = proptest::collection::vec(0..1_000_usize, 2..14);
    let all = (table(), count, faults, choices, 0..RULES.len());
    let config = ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[62; 32]);
    let (met, shorter) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    TestRunner::new_with_rng(config, rng)
        .run(&all, |(mut table, outside, faults, choices, rule)| {
            let rule = RULES[rule];
            let events = events(&table, &outside, &faults);
            let Some(recorded) = execution(&mut table, &events, &choices, rule) else { return Ok(()) };
            let (mut engine, script) = engine(&table, &recorded, rule);
            let Some(witness) = engine.first_witness(&script.acts, EXACT) else { return Ok(()) };
            let faults =
                witness.acts.iter().filter(|act| !act.is_delivery() && !matches!(act, Act::Start(_)));
            if faults.count() == 0 {
                return Ok(());
            }
            let found = shortest(&mut engine, &witness, None, witness.size.deliveries, 1).unwrap();
            let again = shortest(&mut engine, &witness, None, witness.size.deliveries, 3).unwrap();
            prop_assert!(found.complete);
            let best = found.found.unwrap();
            prop_assert_eq!(&best.acts, &again.found.unwrap().acts);
            prop_assert_eq!((found.at_least, found.states), (best.size.deliveries, again.states));
            let (schedule, target) = (engine.to_schedule(&witness.acts), vec![TARGET.to_owned()]);
            let mut checked = Checked::new(&simulator(&table), &schedule, rule, &target).unwrap();
            let none = checked.none_shorter(found.at_least, false, &meter());
            prop_assert!(matches!(none, Ok(Some(_))), "{:?}, found {}", none, found.at_least);
            let one = checked.none_shorter(found.at_least + 1, false, &meter());
            prop_assert!(matches!(one, Err(CertificateError::False(_))), "{:?}", one);
            met.set(met.get() + 1);
            shorter.set(shorter.get() + usize::from(best.size.deliveries < witness.size.deliveries));
            Ok(())
        })
        .unwrap();
    assert!(met.get() > 2_000 && shorter.get() > 400, "{met:?} {shorter:?}");
}
