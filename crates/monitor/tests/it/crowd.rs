//! Actors without end: memory is bounded, and what is told of those that are known stays right.

use demi_monitor::{Monitor, Options};
use demi_schemas::EventRecord;
use serde_json::json;

use super::{invariants, options};

fn told(actor: &str, seq: u64, x: i64) -> EventRecord {
    let line = json!({"actor": actor, "seq": seq, "kind": "state", "state": {"x": x}});
    EventRecord::parse(line.to_string().as_bytes()).unwrap()
}

fn local(actor: &str, seq: u64) -> EventRecord {
    let line = json!({"actor": actor, "seq": seq, "kind": "local"});
    EventRecord::parse(line.to_string().as_bytes()).unwrap()
}

fn few() -> Options {
    Options { actors: 100, ..options() }
}

#[test]
fn no_more_actors_are_known_than_there_may_be() {
    let invariants = invariants(&["x <= 50", "max(x) - min(x) <= 90"]);
    let mut monitor = Monitor::new(&invariants, few());
    for n in 0..5000 {
        super::take(&mut monitor, &[told(&format!("a{n}"), 1, n % 40)]);
        assert!(monitor.counts().actors <= 101, "{}", monitor.counts().actors);
    }
    assert_eq!(monitor.counts().forgotten + monitor.counts().actors as u64, 5000);
    // What it writes down is bounded too, and goes on alike.
    let saved = monitor.save();
    assert!(serde_json::to_vec(&saved).unwrap().len() < 100 * 600);
    let mut again = Monitor::resume(&invariants, few(), &saved);
    assert_eq!(again.save(), saved);
    for monitor in [&mut monitor, &mut again] {
        // One that comes back goes on where it goes on, without a wait.
        let found = super::take(monitor, &[told("a0", 7, 60)]);
        assert_eq!(found.iter().map(|v| v.event.as_str()).collect::<Vec<_>>(), ["a0/7"]);
        assert_eq!((monitor.counts().held, monitor.counts().uncertain), (0, 0));
    }
}

/// Those that never told a state go first: a group of others is judged as if they had never come.
#[test]
fn actors_without_states_take_no_place_of_those_with_states() {
    let invariants = invariants(&["max(x) - min(x) <= 6", "x >= prev.x"]);
    let mut monitor = Monitor::new(&invariants, few());
    super::take(&mut monitor, &[told("first", 1, 9), told("second", 1, 5)]);
    for n in 0..3000 {
        super::take(&mut monitor, &[local(&format!("a{n}"), 1)]);
    }
    assert!(monitor.counts().forgotten >= 2900);
    let found = super::take(&mut monitor, &[told("second", 2, 20)]);
    assert_eq!(found.iter().map(|v| v.invariant.as_str()).collect::<Vec<_>>(), ["i0"]);
    assert_eq!(found[0].affected, ["first", "second"]);
    let found = super::take(&mut monitor, &[told("first", 2, 3)]);
    assert_eq!(found.iter().map(|v| v.invariant.as_str()).collect::<Vec<_>>(), ["i1"]);
}

/// Those that are at work, or wait, stay; and messages on channels without end are bounded.
#[test]
fn who_waits_is_not_forgotten() {
    let invariants = invariants(&["MESSAGES 'T' HAVING sender.x <= receiver.x"]);
    let mut monitor = Monitor::new(&invariants, few());
    let mut found = Vec::new();
    let mut take = |monitor: &mut Monitor<'_>, line: serde_json::Value, now: u64| {
        let record = EventRecord::parse(line.to_string().as_bytes()).unwrap();
        let record = monitor.interest().record(&record);
        monitor.take(record, now, now, &mut found);
    };
    take(&mut monitor, json!({"actor": "s", "seq": 1, "kind": "start"}), 1);
    take(&mut monitor, json!({"actor": "s", "seq": 2, "kind": "state", "state": {"x": 5}}), 1);
    take(&mut monitor, json!({"actor": "r", "seq": 1, "kind": "state", "state": {"x": 1}}), 1);
    take(
        &mut monitor,
        json!({"actor": "r", "seq": 2, "kind": "receive", "type": "T", "from": "s", "msg_id": "m"}),
        1,
    );
    assert_eq!(monitor.counts().held, 1);
    for n in 0..2000 {
        take(
            &mut monitor,
            json!({"actor": format!("a{n}"), "seq": 1, "kind": "send", "to": format!("b{n}")}),
            2,
        );
    }
    assert!(monitor.counts().actors > 2000, "all are at work");
    assert_eq!(monitor.counts().held, 1);
    take(
        &mut monitor,
        json!({"actor": "s", "seq": 3, "kind": "send", "type": "T", "to": "r", "msg_id": "m"}),
        3,
    );
    monitor.tick(300, &mut found);
    monitor.tick(600, &mut found);
    assert_eq!(found.iter().map(|v| v.event.as_str()).collect::<Vec<_>>(), ["r/2"]);
    // Now they are quiet, and the next one takes the place of many.
    let record = monitor.interest().record(&local("z", 1));
    monitor.take(record, 9, 700, &mut Vec::new());
    let record = monitor.interest().record(&local("y", 1));
    monitor.take(record, 9, 700, &mut Vec::new());
    assert!(monitor.counts().actors < 2000, "{}", monitor.counts().actors);
}
