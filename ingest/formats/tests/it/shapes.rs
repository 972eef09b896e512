//! Shapes of logs that foreign programs write: times for positions, records that are two events, clocks of Erlang, lists of tags.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_formats::mapping::{Mapper, Mapping, Unit};
use demi_formats::{Events, Fate};
use demi_schemas::{EventRecord, Kind};

fn map(mapping: &str, log: &str) -> Vec<Unit> {
    let mapping = Mapping::parse(mapping, "test").unwrap();
    Mapper::new(&mapping).unwrap().map_text("log", log.as_bytes())
}

fn events(units: Vec<Unit>) -> Vec<EventRecord> {
    let records = |unit: Unit| match unit.fate {
        Fate::Row(Events { records, .. }) => records,
        other => vec![EventRecord::new(format!("{other:?}"), 1, Kind::Local)],
    };
    units.into_iter().flat_map(records).collect()
}

#[test]
fn a_time_stamp_can_be_the_sequence_number() {
    let mapping = r#"
        name = "t"
        description = "t"
        input = { container = "text", patterns = ['^(?<t>\S+) (?<who>\S+) (?<what>.*)$'] }
        event = { actor = "{who}", seq = "{t!instant}", payload = "{what}", time = "{t}" }
    "#;
    let log = "2024-05-15T00:00:02Z a later\n2024-05-15T00:00:01Z a sooner\n2024-05-15T00:00:01Z a sooner\nsoon a x\n";
    let found = events(map(mapping, log));
    assert_eq!(found[0].seq, 1_715_731_202_000_000_000);
    assert_eq!((found[1].seq, found[2].seq), (1_715_731_201_000_000_000, 1_715_731_201_000_000_000));
    // Two lines that say the same are two events.
    assert_eq!((found[1].attrs.get("repeat"), &found[2].attrs["repeat"]), (None, &2.into()));
    assert!(found[3].actor.contains("no time stamp between 2006"), "{}", found[3].actor);
}

#[test]
fn a_record_can_be_a_receive_and_a_send() {
    let mapping = |clock: &str| {
        format!(
            r#"
            name = "t"
            description = "t"
            input = {{ container = "json-lines" }}
            {clock}
            [event]
            actor = "{{who}}"
            [[rule]]
            when = {{ got = '.' }}
            emit = [{{ kind = "receive", msg_id = "{{got}}", from = "c" }}, {{ kind = "send", msg_id = "{{sent}}", to = "b" }}]
            [[rule]]
            "#
        )
    };
    let log =
        "{\"who\":\"a\",\"got\":\"m1\",\"sent\":\"m2\",\"vc\":{\"a\":4}}\n{\"who\":\"a\",\"vc\":{\"a\":5}}\n";
    let kinds = |found: &[EventRecord]| found.iter().map(|e| (e.kind, e.seq)).collect::<Vec<_>>();
    let counted = [(Kind::Receive, 1), (Kind::Send, 2), (Kind::Local, 3)];
    assert_eq!(kinds(&events(map(&mapping(""), log))), counted);
    let some = "clock = { value = \"{vc}\", ticks = \"some\" }";
    assert_eq!(kinds(&events(map(&mapping(some), log))), counted);
    let refused = events(map(&mapping("clock = { value = \"{vc}\" }"), log));
    assert!(refused[0].actor.contains("ticks ="), "{}", refused[0].actor);
}

#[test]
fn clocks_of_erlang_and_lists_of_tags() {
    let mapping = r#"
        name = "t"
        description = "t"
        input = { container = "json-lines" }
        clock = { value = "{vc}" }
        event = { actor = "{tags.[key=node.name].value}", payload = "{msg}" }
    "#;
    let log = r#"{"vc":"[{n1,1},{'n2@h',3}]","msg":"x","tags":[{"key":"zone","value":"z"},{"key":"node.name","value":"n1"}]}"#;
    let found = events(map(mapping, log));
    assert_eq!((found[0].actor.as_str(), found[0].seq), ("n1", 1));
    assert_eq!(found[0].vector_clock.as_ref().unwrap()["n2@h"], 3);
}
