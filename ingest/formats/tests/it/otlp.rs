//! Telemetry as event records: documents of exporters, retries, recorded documents.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use demi_formats::otlp::{self, Item, OtlpError, OtlpOptions};
use demi_schemas::{EventRecord, Kind};
use serde_json::{Value, json};

fn events(items: Vec<Item>) -> Vec<EventRecord> {
    let event = |item| match item {
        Item::Event(record) => *record,
        Item::Rejected(rejected) => panic!("{rejected}"),
    };
    items.into_iter().map(event).collect()
}

fn lines(records: &[EventRecord]) -> String {
    records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect()
}

/// Three services and a topic: a batch with links, a request, a consumer by parenthood, logs.
const SHOP: &str = include_str!("../otlp/shop.json");
const SHOP_ZIPKIN: &str = include_str!("../otlp/shop-zipkin.json");

#[test]
fn a_shop_in_otlp() {
    let records = events(otlp::from_json(SHOP.as_bytes(), &OtlpOptions::default()).unwrap());
    insta::assert_snapshot!("shop", lines(&records));
    let responses = OtlpOptions { responses: true, ..OtlpOptions::default() };
    let more = events(otlp::from_json(SHOP.as_bytes(), &responses).unwrap());
    let added: Vec<_> = more.into_iter().filter(|r| !records.contains(r)).collect();
    insta::assert_snapshot!("shop_responses", lines(&added));
}

#[test]
fn a_shop_in_zipkin() {
    let records = events(otlp::from_zipkin_json(SHOP_ZIPKIN.as_bytes(), &OtlpOptions::default()).unwrap());
    insta::assert_snapshot!("shop_zipkin", lines(&records));
}

#[test]
fn exporters_that_write_it_another_way() {
    let span = |extra: Value| {
        let mut span = json!({"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
            "name": "n", "kind": 4, "startTimeUnixNano": "1544712660000000000"});
        span.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        span
    };
    let read = |span: Value| {
        let document = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        events(otlp::from_json(document.to_string().as_bytes(), &OtlpOptions::default()).unwrap())
    };
    let plain = read(span(json!({})));
    assert_eq!(plain[0].msg_id.as_deref(), Some("5b8efff798038103d269b633813fc60c:eee19b7ec3c1b174"));
    assert_eq!(read(span(json!({"traceId": "W47/95gDgQPSabYzgT/GDA==", "spanId": "7uGbfsPBsXQ="}))), plain);
    assert_eq!(
        read(span(json!({"kind": "SPAN_KIND_PRODUCER", "startTimeUnixNano": 1544712660000000000_u64}))),
        plain
    );
    let snake = format!(
        "\u{feff}{}",
        json!({"resource_spans": [{"scope_spans": [{"spans": [{
        "trace_id": "5b8efff798038103d269b633813fc60c", "span_id": "eee19b7ec3c1b174", "name": "n", "kind": 4,
        "parent_span_id": null, "start_time_unix_nano": "1544712660000000000"}]}]}]})
    );
    assert_eq!(events(otlp::from_json(snake.as_bytes(), &OtlpOptions::default()).unwrap()), plain);
    let library = json!({"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": [span(json!({}))]}]}]});
    assert_eq!(
        events(otlp::from_json(library.to_string().as_bytes(), &OtlpOptions::default()).unwrap()),
        plain
    );
    let element = json!({"resource": {}, "scopeSpans": [{"spans": [span(json!({}))]}]});
    let tempo = json!({"batches": [element]});
    for document in [element, tempo] {
        let read = otlp::from_json(document.to_string().as_bytes(), &OtlpOptions::default());
        assert_eq!(events(read.unwrap()), plain, "{document}");
    }
}

#[test]
fn what_is_wrong_is_said_and_the_rest_is_taken() {
    let document = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[
        {"traceId":"00000000000000000000000000000000","spanId":"eee19b7ec3c1b174","startTimeUnixNano":"1"},
        {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee1","startTimeUnixNano":"1"},
        {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"},
        {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","startTimeUnixNano":"1","attributes":[{"key":"a","value":{"intValue":"x"}}]},
        17,
        {"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","endTimeUnixNano":"7"}]}]}],
        "resourceLogs":[{"scopeLogs":[{"logRecords":[
        {"body":{"stringValue":"no time"}},
        {"timeUnixNano":"5","body":{"stringValue":"{\"actor\":\"a\",\"seq\":0,\"kind\":\"start\"}"}}]}]}]}"#;
    let items = otlp::from_json(document, &OtlpOptions::default()).unwrap();
    let said: Vec<String> = items
        .iter()
        .map(|item| match item {
            Item::Event(record) => format!("event at {}", record.seq),
            Item::Rejected(r) => format!("{r} [{}]", r.why.code()),
        })
        .collect();
    insta::assert_snapshot!("rejected", said.join("\n"));
    for bad in [
        "",
        "[]",
        "{}",
        "{\"resourceSpans\":3}",
        "{\"resourceSpans\":[{\"scopeSpans\":{}}]}",
        "{\"resourceLogs\":",
    ] {
        let error = otlp::from_json(bad.as_bytes(), &OtlpOptions::default()).unwrap_err();
        assert!(matches!(error, OtlpError::Json(_) | OtlpError::Shape(_)), "{bad}: {error}");
    }
}

#[test]
fn log_records_that_hold_event_records() {
    let line = r#"{"actor":"a","seq":3,"kind":"send","msg_id":"m","to":"b","type":"Vote","host":"h"}"#;
    let expected = EventRecord::parse(line.as_bytes()).unwrap();
    let pairs = json!([{"key": "actor", "value": {"stringValue": "a"}}, {"key": "seq", "value": {"intValue": "3"}},
        {"key": "kind", "value": {"stringValue": "send"}}, {"key": "msg_id", "value": {"stringValue": "m"}},
        {"key": "to", "value": {"stringValue": "b"}}, {"key": "type", "value": {"stringValue": "Vote"}},
        {"key": "host", "value": {"stringValue": "h"}}]);
    for log in [
        json!({"body": {"stringValue": format!(" {line}\n")}}),
        json!({"body": {"kvlistValue": {"values": pairs.clone()}}}),
        json!({"body": {"stringValue": "parsed by a collector"}, "attributes": pairs}),
    ] {
        let document = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}).to_string();
        assert_eq!(
            events(otlp::from_json(document.as_bytes(), &OtlpOptions::default()).unwrap()),
            std::slice::from_ref(&expected)
        );
    }
}

/// The folder of a recorded set, or nothing where recordings are not at hand.
fn recorded(set: &str) -> Option<PathBuf> {
    let corpus = std::env::var_os("DEMI_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"), PathBuf::from);
    let folder = corpus.join("third-party").join(set);
    if !folder.exists() {
        println!("skipped: no recording {set} (set DEMI_CORPUS)");
        return None;
    }
    Some(folder)
}

#[test]
fn recorded_documents_have_the_events_that_they_are_said_to_have() {
    for set in ["otlp-json", "zipkin-json"] {
        let Some(folder) = recorded(set) else { return };
        let truth: Value =
            serde_json::from_slice(&std::fs::read(folder.join("truth.json")).unwrap()).unwrap();
        for (file, expected) in truth["files"].as_object().unwrap() {
            let document = std::fs::read(folder.join("data").join(file)).unwrap();
            let options = OtlpOptions::default();
            let items = match set {
                "otlp-json" => otlp::from_json(&document, &options),
                _ => otlp::from_zipkin_json(&document, &options),
            };
            let records = events(items.unwrap());
            let count = expected.get("spans").or(expected.get("log_records")).unwrap();
            assert_eq!(records.len() as u64, count.as_u64().unwrap(), "{file}");
            let services = expected.get("service/instance").or(expected.get("services"));
            for (service, count) in services.and_then(Value::as_object).into_iter().flatten() {
                let events = records.iter().filter(|r| r.actor == *service).count() as u64;
                assert_eq!(events, count.as_u64().unwrap(), "{file}: {service}");
            }
            let ends = |kind| -> BTreeSet<_> {
                records.iter().filter(|r| r.kind == kind).filter_map(|r| r.msg_id.clone()).collect()
            };
            let joined = ends(Kind::Send).intersection(&ends(Kind::Receive)).count();
            match file.as_str() {
                "messaging.json" => assert_eq!(joined, 1),
                "skew.json" => assert_eq!(joined, 1),
                "yelp.json" => assert!(joined >= 3, "{joined}"),
                _ => {}
            }
        }
    }
}

/// What became of a Zipkin document: actor, kind and message of each event, or the reason against one.
fn zipkin(document: &Value) -> Vec<String> {
    let items = otlp::from_zipkin_json(document.to_string().as_bytes(), &OtlpOptions::default()).unwrap();
    let said = items.into_iter().map(|item| match item {
        Item::Event(event) => format!(
            "{} {} {} {}",
            event.actor,
            event.kind.as_str(),
            event.seq / 1000,
            event.msg_id.as_deref().unwrap_or("-")
        ),
        Item::Rejected(rejected) => rejected.to_string(),
    });
    said.collect()
}

#[test]
fn zipkin_of_version_1_has_both_ends_of_a_request() {
    let at = |value: &str, micros: u64, service: &str| json!({"timestamp": micros, "value": value, "endpoint": {"serviceName": service}});
    let base = 1_700_000_000_000_000_u64;
    let document = json!([
        {"traceId": "a", "id": "1", "name": "get", "binaryAnnotations": [],
         "annotations": [at("cs", base, "front"), at("sr", base + 10, "back"), at("ss", base + 20, "back"), at("cr", base + 30, "front")]},
        {"traceId": "a", "id": "2", "parentId": "1", "name": "db", "annotations": [at("cs", base + 12, "back"), at("cr", base + 15, "back")]},
    ]);
    let id = |span: u64| format!("000000000000000a:{span:016x}");
    assert_eq!(
        zipkin(&document),
        [
            format!("front send {base} {}", id(1)),
            format!("back receive {} {}", base + 10, id(1)),
            format!("back send {} {}", base + 12, id(2)),
        ]
    );
}

#[test]
fn parts_of_a_span_are_joined_wherever_they_stand_and_one_without_a_start_is_no_event() {
    let base = 1_700_000_000_000_000_u64;
    let front = json!({"serviceName": "front"});
    let begun = json!({"traceId": "a", "id": "1", "kind": "CLIENT", "name": "get", "timestamp": base, "localEndpoint": front});
    let rest = json!({"traceId": "a", "id": "1", "duration": 2000, "tags": {"error": "timeout"}, "localEndpoint": front});
    let server = json!({"traceId": "a", "id": "1", "kind": "SERVER", "shared": true, "timestamp": base + 9, "localEndpoint": {"serviceName": "back"}});
    let read = |document: Value| {
        events(otlp::from_zipkin_json(document.to_string().as_bytes(), &OtlpOptions::default()).unwrap())
    };
    for order in [[&begun, &rest, &server], [&rest, &begun, &server], [&server, &rest, &begun]] {
        let found = read(json!(order));
        assert_eq!(found.len(), 2, "{found:?}");
        let sent = found.iter().find(|event| event.actor == "front").unwrap();
        assert_eq!((sent.kind, sent.seq / 1000), (Kind::Send, base));
        assert_eq!(sent.attrs["duration_ns"], json!(2_000_000));
        assert_eq!(sent.fields.as_ref().unwrap()["error"], json!("timeout"));
    }
    // A part that fits no start, one of another service, and one that fits two.
    for alone in [json!([rest]), json!([rest, server]), json!([[rest], [begun]])] {
        let said = zipkin(&alone);
        assert_eq!(said.iter().filter(|said| said.contains("says when it began")).count(), 1, "{said:?}");
    }
    let anywhere = json!({"traceId": "a", "id": "1", "duration": 5});
    let said = zipkin(&json!([anywhere, begun, server]));
    assert!(said[0].contains("says when it began") && said.len() == 3, "{said:?}");
}

#[test]
fn links_that_are_no_messages_are_kept_with_every_kind_of_span() {
    let link = json!([{"traceId": format!("{:032x}", 9), "spanId": format!("{:016x}", 9)}]);
    for (kind, kept) in [(1, true), (2, true), (3, true), (4, true), (5, false)] {
        let span = json!({"traceId": format!("{:032x}", 7), "spanId": format!("{:016x}", 1), "kind": kind, "name": "n",
            "startTimeUnixNano": "1700000000000000000", "links": link});
        let document = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        let found =
            events(otlp::from_json(document.to_string().as_bytes(), &OtlpOptions::default()).unwrap());
        assert_eq!(found[0].attrs.contains_key("links"), kept, "{kind}");
    }
}
