//! Telemetry as event records: both encodings, retries, recorded documents, and documents that make no sense.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use demi_ingest::otlp::{self, Item, OtlpError, OtlpOptions};
use demi_ingest::{LoadOptions, Sources, Store, record_digest};
use demi_schemas::{EventRecord, Kind};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value as Any,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, span};
use proptest::prelude::*;
use prost::Message;
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
const SHOP: &str = include_str!("otlp/shop.json");
const SHOP_ZIPKIN: &str = include_str!("otlp/shop-zipkin.json");

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
            Item::Rejected(r) => format!("{} [{}]", r, r.code),
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
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus"), PathBuf::from);
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

/// Loads records as a file of its own; says (added, duplicates, conflicts).
fn load(store: &mut Store, folder: &Path, name: &str, records: &[EventRecord]) -> (u64, u64, u64) {
    let path = folder.join(name);
    std::fs::write(&path, lines(records)).unwrap();
    let sources = Sources::plan(&[path.display().to_string()]).unwrap();
    let summary = demi_ingest::load(store, sources, &LoadOptions::new("s"), |_| {}).unwrap().summary;
    assert_eq!(summary.quarantined, 0, "{:?}", summary.quarantine_reasons);
    (summary.added, summary.duplicates, summary.conflicts)
}

#[test]
fn a_request_sent_again_adds_nothing_whatever_it_is_grouped_with() {
    let records = events(otlp::from_json(SHOP.as_bytes(), &OtlpOptions::default()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path().join("store")).unwrap();
    let (all, some) = (records.len() as u64, records.len() / 3);
    // The second part first, as after a retry of the first one; then everything.
    let rest = (records.len() - some) as u64;
    assert_eq!(load(&mut store, folder.path(), "b", &records[some..]), (rest, 0, 0));
    assert_eq!(load(&mut store, folder.path(), "all", &records), (some as u64, rest, 0));
    let mut changed: Vec<EventRecord> = records.iter().rev().cloned().collect();
    changed.iter_mut().filter(|r| r.attrs.contains_key("key")).for_each(|r| {
        r.attrs.insert("added_by_a_collector".into(), json!(true));
    });
    assert_eq!(load(&mut store, folder.path(), "changed", &changed), (0, all, 0));
    let loaded: u64 = store.event_files("s").unwrap().len() as u64;
    assert!(loaded > 0);
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        ".{0,8}".prop_map(Any::StringValue),
        any::<bool>().prop_map(Any::BoolValue),
        any::<i64>().prop_map(Any::IntValue),
        (-1e9..1e9).prop_map(Any::DoubleValue),
        proptest::collection::vec(any::<u8>(), 0..6).prop_map(Any::BytesValue),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        let wrapped = inner.prop_map(|v| AnyValue { value: Some(v) });
        prop_oneof![
            proptest::collection::vec(wrapped.clone(), 0..3)
                .prop_map(|values| Any::ArrayValue(ArrayValue { values })),
            proptest::collection::vec(("[a-z]{1,4}", wrapped), 0..3).prop_map(|pairs| {
                let pair = |(key, value)| KeyValue { key, value: Some(value), ..KeyValue::default() };
                Any::KvlistValue(KeyValueList { values: pairs.into_iter().map(pair).collect() })
            }),
        ]
    });
    proptest::option::weighted(0.95, value).prop_map(|value| AnyValue { value })
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let key = prop_oneof![
        Just("messaging.operation".to_owned()),
        Just("messaging.operation.type".to_owned()),
        Just("messaging.destination.name".to_owned()),
        Just("service.name".to_owned()),
        Just("seq".to_owned()),
        "[a-z.]{1,6}",
    ];
    let word = prop_oneof![
        Just("publish"),
        Just("send"),
        Just("process"),
        Just("receive"),
        Just("settle"),
        Just("q")
    ];
    let word = word.prop_map(|text| AnyValue { value: Some(Any::StringValue(text.to_owned())) });
    let pair = (key, prop_oneof![word, any_value()]);
    let pair = pair.prop_map(|(key, value)| KeyValue { key, value: Some(value), ..KeyValue::default() });
    proptest::collection::vec(pair, 0..4)
}

fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (1_u8..4).prop_map(move |n| { let mut id = vec![0; length]; id[length - 1] = n; id }),
        1 => Just(vec![0; length]),
        1 => Just(Vec::new()),
    ]
}

fn any_span() -> impl Strategy<Value = Span> {
    let times = (
        prop_oneof![Just(0_u64), any::<u64>(), 1_700_000_000_000_000_000..1_700_000_000_000_000_009_u64],
        0..99_u64,
    );
    let ids = (bytes(16), bytes(8), bytes(8));
    let link = (bytes(16), bytes(8), attributes()).prop_map(|(trace_id, span_id, attributes)| span::Link {
        trace_id,
        span_id,
        attributes,
        ..Default::default()
    });
    let event = (any::<u64>(), "[a-z]{0,4}", attributes()).prop_map(|(time_unix_nano, name, attributes)| {
        span::Event { time_unix_nano, name, attributes, ..Default::default() }
    });
    let parts = (proptest::collection::vec(link, 0..3), proptest::collection::vec(event, 0..2));
    (ids, times, 0..8_i32, "[a-z ]{0,6}", 0..1024_u32, attributes(), parts).prop_map(
        |(
            (trace_id, span_id, parent_span_id),
            (start, length),
            kind,
            name,
            flags,
            attributes,
            (links, events),
        )| Span {
            trace_id,
            span_id,
            parent_span_id,
            flags,
            name,
            kind,
            start_time_unix_nano: start,
            end_time_unix_nano: start.saturating_add(length),
            attributes,
            events,
            links,
            ..Span::default()
        },
    )
}

fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scope = (attributes(), "[a-z]{0,3}", proptest::collection::vec(any_span(), 0..5)).prop_map(
        |(attributes, name, spans)| ScopeSpans {
            scope: Some(InstrumentationScope { name, attributes, ..Default::default() }),
            spans,
            ..Default::default()
        },
    );
    let resource =
        (attributes(), proptest::collection::vec(scope, 0..3)).prop_map(|(attributes, scope_spans)| {
            ResourceSpans {
                resource: Some(Resource { attributes, ..Default::default() }),
                scope_spans,
                ..Default::default()
            }
        });
    proptest::collection::vec(resource, 0..3)
        .prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let log = (
        prop_oneof![Just(0_u64), any::<u64>()],
        proptest::option::of(any_value()),
        attributes(),
        bytes(16),
        bytes(8),
    )
        .prop_map(|(time_unix_nano, body, attributes, trace_id, span_id)| LogRecord {
            time_unix_nano,
            body,
            attributes,
            trace_id,
            span_id,
            ..Default::default()
        });
    proptest::collection::vec(log, 0..6).prop_map(|log_records| ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs { log_records, ..Default::default() }],
            ..Default::default()
        }],
    })
}

fn rejected(items: &[Item]) -> Vec<(String, &'static str)> {
    let one = |item: &Item| match item {
        Item::Event(_) => None,
        Item::Rejected(r) => Some((r.path.clone(), r.code)),
    };
    items.iter().filter_map(one).collect()
}

fn good(items: &[Item]) -> Vec<&EventRecord> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Event(record) => Some(&**record),
            Item::Rejected(_) => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn both_encodings_of_spans_say_the_same(request in traces(), responses in any::<bool>()) {
        let options = OtlpOptions { responses, ..OtlpOptions::default() };
        let json = serde_json::to_vec(&request).unwrap();
        let decoded = ExportTraceServiceRequest::decode(&request.encode_to_vec()[..]).unwrap();
        let spans: Vec<Span> =
            request.resource_spans.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans).collect();
        let one = otlp::from_span_resources(decoded.resource_spans, &options);
        if let Ok(other) = otlp::from_json(&json, &options) {
            prop_assert_eq!(good(&one), good(&other));
            prop_assert_eq!(rejected(&one), rejected(&other));
        } else {
            prop_assert!(spans.is_empty());
        }
        // Nothing vanishes: a span is rejected, or has an event with its key.
        let keys: BTreeSet<&str> = good(&one).iter().filter_map(|r| r.attrs["key"].as_str()).collect();
        for span in &spans {
            let hex = |id: &[u8]| id.iter().map(|b| format!("{b:02x}")).collect::<String>();
            let key = format!("{}:{}", hex(&span.trace_id), hex(&span.span_id));
            let usable = span.trace_id.iter().any(|b| *b > 0) && span.span_id.iter().any(|b| *b > 0) && span.end_time_unix_nano > 0;
            prop_assert!(!usable || keys.contains(key.as_str()), "{}", key);
        }
        prop_assert_eq!(rejected(&one).len(), spans.iter().filter(|s| {
            s.trace_id.iter().all(|b| *b == 0) || s.span_id.iter().all(|b| *b == 0) || s.end_time_unix_nano == 0
        }).count());
        for record in good(&one) {
            prop_assert!(record.check().is_ok(), "{:?}", record);
            let line = serde_json::to_vec(record).unwrap();
            let read = EventRecord::parse(&line).unwrap();
            prop_assert_eq!(record_digest(&read), record_digest(record));
        }
    }

    #[test]
    fn both_encodings_of_logs_say_the_same(request in logs()) {
        let options = OtlpOptions::default();
        let json = serde_json::to_vec(&request).unwrap();
        let count = request.resource_logs[0].scope_logs[0].log_records.len();
        let one = otlp::from_log_resources(request.resource_logs, &options);
        let other = otlp::from_json(&json, &options).unwrap();
        prop_assert_eq!(one.len(), count);
        prop_assert_eq!(good(&one), good(&other));
        prop_assert_eq!(rejected(&one), rejected(&other));
    }

    #[test]
    fn documents_of_any_kind_do_no_harm(cut in 0..4000_usize, at in 0..4000_usize, with in ".{0,3}") {
        for (text, zipkin) in [(SHOP, false), (SHOP_ZIPKIN, true)] {
            let mut damaged = text.to_owned();
            let place = |n: usize| (n % text.len()..text.len()).find(|i| text.is_char_boundary(*i)).unwrap();
            let (a, b) = (place(cut).min(place(at)), place(cut).max(place(at)));
            damaged.replace_range(a..b.min(a + 3), &with);
            for document in [&damaged[..], &text[..a]] {
                let read = if zipkin { otlp::from_zipkin_json } else { otlp::from_json };
                for item in read(document.as_bytes(), &OtlpOptions::default()).unwrap_or_default() {
                    if let Item::Event(record) = item {
                        prop_assert!(record.check().is_ok());
                    }
                }
            }
        }
    }
}
