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

#[test]
fn a_behavior_of_one_state_is_its_initial_state() {
    let tlc = Mapping::named("tlc").unwrap();
    let of = |log: &str| events(Mapper::new(&tlc).unwrap().map_text("log", log.as_bytes()));
    let state = "/\\ x = 7\n/\\ y = {}\n";
    let plain = of(&format!(
        "TLC2 Version 2.19 of 08 August 2024\nComputing initial states...\nError: Invariant Inv is violated by the initial state:\n{state}\nFinished in 00s at (2026-01-02 10:00:01)\n"
    ));
    let tool = of(&format!(
        "@!@!@STARTMSG 2107:1 @!@!@\nInvariant Inv is violated by the initial state:\n{state}\n@!@!@ENDMSG 2107 @!@!@\n"
    ));
    for found in [plain, tool] {
        let states: Vec<_> = found.iter().filter(|event| event.state.is_some()).collect();
        assert_eq!(states.len(), 1, "{found:?}");
        let first = states[0];
        assert_eq!((first.actor.as_str(), first.seq, first.type_.as_deref()), ("spec", 1, Some("Initial")));
        let state = first.state.as_ref().unwrap().to_string();
        assert!(state.contains("\"x\":7"), "{state}");
    }
}

#[test]
fn what_is_counted_behind_a_line_that_could_not_be_read_says_so() {
    let mapping = r#"
        name = "t"
        description = "t"
        input = { container = "text", patterns = ['^(?<who>\S+) (?<kind>sent|got) (?<of>\S+)$'] }
        event = { actor = "{who}" }
        [[rule]]
        when = { kind = 'sent' }
        emit = [{ kind = "send", to = "{of}", link = { key = ["{who}", "{of}"], order = "count" } }]
        [[rule]]
        when = { kind = 'got' }
        emit = [{ kind = "receive", from = "{of}", link = { key = ["{of}", "{who}"], order = "count" } }]
    "#;
    let ids = |log: &str| {
        let records = map(mapping, log).into_iter().filter_map(|unit| match unit.fate {
            Fate::Row(Events { records, .. }) => Some(records),
            _ => None,
        });
        records.flatten().map(|record| record.msg_id.unwrap()).collect::<Vec<_>>()
    };
    let read = ids("a sent b\na sent b\nb got a\nb got a\n");
    assert!(read.iter().all(|id| id.starts_with("count:")), "{read:?}");
    assert_eq!((&read[0], &read[1]), (&read[2], &read[3]));
    // The second send or receive may be the one that is broken.
    for log in ["a sent b\na se%t b\na sent b\nb got a\n", "a sent b\n\u{1} g b\nb got a\na sent b\n"] {
        let broken = ids(log);
        assert!(broken[0].starts_with("count:"), "{broken:?}");
        assert!(broken[1..].iter().all(|id| id.starts_with("count?:")), "{broken:?}");
    }
}

#[test]
fn replicas_of_a_service_are_told_apart_by_what_a_mapping_names() {
    let spans = |n: u8| {
        format!(
            r#"{{"traceId":"a{n}","id":"b{n}","name":"x","timestamp":1700000000000000,"localEndpoint":{{"serviceName":"shop","ipv4":"10.0.0.{n}"}}}}"#
        )
    };
    let log = format!("[{},{}]", spans(1), spans(2));
    let actors = |more: &str| {
        let mapping =
            format!("name = \"t\"\ndescription = \"t\"\ninput = {{ container = \"zipkin\"{more} }}\n");
        let mut actors: Vec<String> = events(map(&mapping, &log)).into_iter().map(|e| e.actor).collect();
        actors.sort();
        actors
    };
    assert_eq!(actors(""), ["shop", "shop"]);
    let by_address = ", actor_by = [\"service.name\", \"net.host.ip\"]";
    assert_eq!(actors(by_address), ["shop/10.0.0.1", "shop/10.0.0.2"]);
    let bad = |input: &str| {
        let mapping = format!("name = \"t\"\ndescription = \"t\"\ninput = {{ {input} }}\n");
        Mapping::parse(&mapping, "t").and_then(|mapping| Mapper::new(&mapping)).err().unwrap().to_string()
    };
    let said = bad("container = \"json\", actor_by = [\"a\"]");
    assert!(said.contains("input.actor_by") && said.contains("only for"), "{said}");
    assert!(bad("container = \"otlp\", actor_by = []").contains("at least one"));
}

#[test]
fn a_quoted_field_of_a_table_may_have_several_lines() {
    let csv = Mapping::named("csv").unwrap();
    let units = |log: &str| Mapper::new(&csv).unwrap().map_text("log", log.as_bytes());
    let rows = |log: &str| -> Vec<(u64, u64, String)> {
        let told = |unit: Unit| match unit.fate {
            Fate::Row(Events { records, .. }) => {
                let payload = records[0].payload.as_ref().map(ToString::to_string);
                (
                    unit.line.number,
                    unit.lines,
                    format!("{} {}", records[0].actor, payload.unwrap_or_default()),
                )
            }
            Fate::LeftOut(why) => (unit.line.number, unit.lines, why.to_owned()),
            Fate::Quarantined(why) => (unit.line.number, unit.lines, why.code().to_owned()),
        };
        units(log).into_iter().map(told).collect()
    };
    let row = |line, lines, told: &str| (line, lines, told.to_owned());
    let log =
        "actor,seq,payload\na,1,\"boom\n\n  at \"\"b/1\"\", c\"\nb,1,end\nactor,seq,payload\nb,2,\"x\"\n";
    assert_eq!(
        rows(log),
        [
            row(1, 1, "header"),
            row(2, 3, "a boom\n\n  at \"b/1\", c"),
            row(5, 1, "b end"),
            row(6, 1, "header"),
            row(7, 1, "b x")
        ]
    );
    // A quote that nothing ends takes no other line with it.
    let log = "actor,seq,payload\na,1,\"boom\nb,1,end\nb,2,x\n";
    assert_eq!(rows(log), [row(1, 1, "header"), row(2, 1, "not_csv"), row(3, 1, "b end"), row(4, 1, "b x")]);
    let log = "actor,seq,payload\na,1,\"boom\nb,1,\"end\"\nb,2,x\n";
    assert_eq!(rows(log), [row(1, 1, "header"), row(2, 1, "not_csv"), row(3, 1, "b end"), row(4, 1, "b x")]);
}
