//! Schedule and scenario files: what is written is read again, and no text makes the readers panic.

use std::collections::BTreeMap;

use demi_schemas::event::{DEAD_LETTERS, TimerInfo, Via};
use demi_schemas::scenario::{FuzzSettings, Mask, Strategy as Order};
use demi_schemas::schedule::{Schedule, Sent, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::Value;

/// Text as logs have it: mostly tame, now and then with anything.
fn text() -> BoxedStrategy<String> {
    prop_oneof![3 => "[a-z0-9(),-]{1,12}", 1 => any::<String>()].boxed()
}

fn name() -> BoxedStrategy<String> {
    text().prop_filter("an actor has a name", |n| !n.is_empty()).boxed()
}

/// Keys that no version of the format will use.
fn attrs() -> BoxedStrategy<BTreeMap<String, Value>> {
    btree_map("x-[a-z]{1,4}", json(), 0..2).boxed()
}

fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let pair = (text(), prop_oneof![Just(Value::Null), inner.clone()]);
        prop_oneof![
            vec(inner, 0..3).prop_map(Value::from),
            vec(pair, 0..3).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
    .boxed()
}

fn via() -> impl Strategy<Value = Option<Via>> {
    of(prop::sample::select(vec![Via::Forward, Via::Scheduler, Via::Thread, Via::Ask]))
}

fn timer() -> impl Strategy<Value = Option<TimerInfo>> {
    let info = (of(text()), of(text()), of(any::<bool>()), of(any::<u64>()), attrs());
    of(info.prop_map(|(name, message, repeat, generation, attrs)| TimerInfo {
        name,
        message,
        repeat,
        generation,
        attrs,
    }))
}

fn sent() -> impl Strategy<Value = Sent> {
    (of(text()), text(), of(text()), text(), via(), timer()).prop_map(
        |(from, to, type_, payload, via, timer)| Sent { from, to, type_, payload, via, timer, msg_id: None },
    )
}

fn kind() -> impl Strategy<Value = StepKind> {
    use StepKind::{Action, Crash, Deliver, External, Heal, Isolate, Restart, Start, Stop, Timer};
    let kinds = vec![Start, External, Deliver, Timer, Crash, Restart, Isolate, Heal, Stop, Action];
    prop::sample::select(kinds)
}

fn step() -> impl Strategy<Value = Step> {
    let from = of(prop_oneof![text(), Just(DEAD_LETTERS.to_owned())]);
    let content = (of(text()), of(text()), of(text()), of(any::<bool>()), via(), of(json()));
    let log = (timer(), vec(sent(), 0..3), vec(sent(), 0..2), of(text()), of(text()), of(any::<u64>()));
    (kind(), from, name(), content, log, attrs()).prop_map(|(kind, from, to, content, log, attrs)| {
        let (type_, payload, fingerprint, mut external, via, fields) = content;
        let (timer, sends, timer_sets, event, source, offset) = log;
        let to = if kind == StepKind::Action { String::new() } else { to };
        // What readers add where nothing is said.
        let nobody = kind == StepKind::Deliver && from.as_deref() == Some(DEAD_LETTERS) && via.is_none();
        if kind == StepKind::External || (nobody && external.is_none()) {
            external = Some(true);
        }
        let content = Step { type_, payload, fingerprint, external, via, fields, ..Step::new(kind, to) };
        Step { from, timer, sends, timer_sets, event, source, offset, attrs, ..content }
    })
}

fn rule() -> impl Strategy<Value = NetworkRule> {
    prop::sample::select(vec![NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo])
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let header = (of(text()), of(rule()), vec(text(), 0..3), vec(text(), 0..3), of(any::<u64>()));
    let more = (any::<bool>(), vec(text(), 0..2), attrs());
    (vec(step(), 0..6), header, more).prop_map(|(steps, header, more)| {
        let mut schedule = Schedule::new(steps);
        let h = &mut schedule.header;
        (h.system, h.network, h.violation, h.affected, h.deliveries) = header;
        h.exact = more.0;
        (h.conformance, h.timers_recorded, h.attrs) = more;
        schedule
    })
}

fn toml_value() -> impl Strategy<Value = toml::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(toml::Value::from),
        any::<i64>().prop_map(toml::Value::from),
        prop::num::f64::NORMAL.prop_map(toml::Value::from),
        text().prop_map(toml::Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(toml::Value::Array),
            btree_map(text(), inner, 0..3).prop_map(|m| toml::Value::Table(m.into_iter().collect())),
        ]
    })
}

fn fuzz_settings() -> impl Strategy<Value = FuzzSettings> {
    let orders = vec![Order::Random, Order::Priorities, Order::Bursts, Order::Mixed];
    let weight = || prop::num::f64::POSITIVE;
    (of(any::<u32>()), of(text()), [weight(), weight(), weight(), weight()], of(prop::sample::select(orders)))
        .prop_map(|(client_messages, wait_for, weights, strategy)| FuzzSettings {
            client_messages,
            wait_for,
            weight_client: weights[0],
            weight_crash: weights[1],
            weight_restart: weights[2],
            timer_putback: weights[3],
            strategy,
            ..FuzzSettings::default()
        })
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let mask = (of(text()), text(), text());
    let mask = mask.prop_map(|(type_, pattern, replace)| Mask { type_, pattern, replace });
    let tables = (
        btree_map(text(), any::<bool>(), 0..3),
        btree_map(text(), toml_value(), 0..3),
        btree_map(text(), any::<bool>(), 0..2),
    );
    let head = (text(), of(any::<u32>()), rule(), of(vec(text(), 0..3)), of(1..=u32::MAX));
    (head, tables, vec(mask, 0..3), of(fuzz_settings())).prop_map(|(head, tables, masks, fuzz)| Scenario {
        workload: None,
        process: None,
        lines: None,
        model: head.0.into(),
        members: head.1,
        network: head.2,
        invariants: head.3.clone(),
        invariant: match (head.4, &head.3) {
            // A scenario that is read with predicates says which invariants of the model are asked besides.
            (Some(n), Some(own)) if n % 2 == 0 => {
                demi_schemas::Asserted::Several(vec![demi_schemas::Assertion {
                    name: format!("n{n}"),
                    holds: own.concat(),
                    same_as: own.first().cloned(),
                }])
            }
            _ => demi_schemas::Asserted::default(),
        },
        invariant_check_interval: head.4,
        handler_limit_seconds: head.1.filter(|n| n % 2 == 0),
        deadlock: head.1.is_some_and(|n| n % 3 == 0),
        no_crash: head.1.is_some_and(|n| n % 13 == 0),
        livelock: head.1.is_some_and(|n| n % 7 == 0),
        hog: head.1.filter(|n| n % 11 == 0),
        duplicates: head.1.is_some_and(|n| n % 5 == 0),
        switches: tables.0,
        settings: tables.1.into_iter().collect(),
        payload: tables.2,
        masks,
        fuzz,
    })
}

/// A text with some of its characters replaced, doubled or left out.
fn spoilt(text: &str, changes: &[(usize, char)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for (number, &(at, with)) in changes.iter().enumerate().filter(|_| !text.is_empty()) {
        let at = at % chars.len().max(1);
        match number % 3 {
            0 if at < chars.len() => chars[at] = with,
            1 if at < chars.len() => drop(chars.remove(at)),
            _ => chars.insert(at, with),
        }
    }
    chars.into_iter().collect()
}

fn changes() -> impl Strategy<Value = Vec<(usize, char)>> {
    let with =
        prop_oneof![prop::sample::select("{}[]\",:=#.-0e\n".chars().collect::<Vec<_>>()), any::<char>()];
    vec((any::<usize>(), with), 0..4)
}

/// What is read says the same when it is written and read again.
fn reads_again(text: &str) {
    if let Ok(schedule) = Schedule::parse(text) {
        assert_eq!(Schedule::parse(&schedule.to_text()), Ok(schedule));
    }
    if let Ok(scenario) = Scenario::parse(text) {
        assert_eq!(Scenario::parse(&scenario.to_text()), Ok(scenario));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schedules_round_trip(schedule in schedule(), changes in changes()) {
        let text = schedule.to_text();
        prop_assert_eq!(text.lines().count(), 1 + schedule.steps.len());
        prop_assert_eq!(Schedule::parse(&text), Ok(schedule));
        reads_again(&spoilt(&text, &changes));
    }

    #[test]
    fn scenarios_round_trip(scenario in scenario(), changes in changes()) {
        let text = scenario.to_text();
        prop_assert_eq!(Scenario::parse(&text), Ok(scenario));
        reads_again(&spoilt(&text, &changes));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), lines in vec("[{}\\[\\]\":,a-z0-9=. -]{0,30}", 0..4)) {
        reads_again(&text);
        reads_again(&lines.join("\n"));
    }
}
