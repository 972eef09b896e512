//! Telemetry that anybody could send: both encodings say the same, nothing vanishes, damaged documents do no harm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::BTreeSet;

use demi_formats::otlp::{self, Item, OtlpOptions};
use demi_formats::record_digest;
use demi_schemas::EventRecord;
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

const SHOP: &str = include_str!("../otlp/shop.json");
const SHOP_ZIPKIN: &str = include_str!("../otlp/shop-zipkin.json");

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

fn rejected(items: &[Item]) -> Vec<(String, String)> {
    let one = |item: &Item| match item {
        Item::Event(_) => None,
        Item::Rejected(r) => Some((r.path.clone(), r.why.code().to_owned())),
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
            let usable = span.trace_id.iter().any(|b| *b > 0) && span.span_id.iter().any(|b| *b > 0) && span.start_time_unix_nano > 0;
            prop_assert!(!usable || keys.contains(key.as_str()), "{}", key);
        }
        prop_assert_eq!(rejected(&one).len(), spans.iter().filter(|s| {
            s.trace_id.iter().all(|b| *b == 0) || s.span_id.iter().all(|b| *b == 0) || s.start_time_unix_nano == 0
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
