//! Streams against whole documents.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fate::{Events, Fate};
use crate::formats::Decoded;
use crate::otlp::{self, Item, OtlpOptions};

mod jaeger;

/// A small generator of numbers, so that texts and pieces shrink with their seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// Writes a value with members in any order and space anywhere.
fn write(value: &Value, dice: &mut Dice, out: &mut String) {
    let space = |dice: &mut Dice, out: &mut String| {
        (0..dice.below(3)).for_each(|_| out.push([' ', '\n', '\t', '\r'][dice.below(4)]));
    };
    match value {
        Value::Array(list) => {
            out.push('[');
            for (n, element) in list.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                space(dice, out);
                write(element, dice, out);
                space(dice, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            (1..members.len()).for_each(|n| members.swap(n, dice.below(n + 1)));
            out.push('{');
            for (n, (name, member)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                space(dice, out);
                out.push_str(&Value::from(name.as_str()).to_string());
                space(dice, out);
                out.push(':');
                space(dice, out);
                write(member, dice, out);
                space(dice, out);
            }
            space(dice, out);
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn text(documents: &[Value], dice: &mut Dice) -> String {
    let mut out = String::new();
    if dice.below(4) == 0 {
        out.push('\u{feff}');
    }
    for document in documents {
        write(document, dice, &mut out);
        out.push(if dice.below(2) == 0 { '\n' } else { ' ' });
    }
    out
}

/// Reads a text in pieces of at most so many bytes.
fn read(container: Container, records: Option<&str>, limit: usize, text: &[u8], piece: usize) -> Vec<Found> {
    let mut found = Vec::new();
    let mut documents = Documents::new(container, records, OtlpOptions::default(), limit).unwrap();
    let mut dice = Dice(text.len() as u64);
    let mut rest = text;
    while !rest.is_empty() {
        let (now, then) = rest.split_at(1 + dice.below(piece.min(rest.len())));
        documents.feed(now, &mut |f| found.push(f));
        rest = then;
    }
    documents.finish(&mut |f| found.push(f));
    found
}

/// The value with all members in the order of their names.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(sorted).collect(),
        Value::Object(map) => {
            let members: BTreeMap<&String, Value> = map.iter().map(|(name, v)| (name, sorted(v))).collect();
            Value::Object(members.into_iter().map(|(name, v)| (name.clone(), v)).collect())
        }
        scalar => scalar.clone(),
    }
}

/// Events, without their lines, and reasons, each in the order of their text.
fn outcomes(found: Vec<Found>) -> (Vec<String>, Vec<String>) {
    let (mut events, mut reasons) = (Vec::new(), Vec::new());
    for found in found {
        match found.fate {
            Fate::Row(Decoded::Record(record)) => events.push(sorted(&record.value()).to_string()),
            Fate::Quarantined(why) => reasons.push(why.reason().to_owned()),
            Fate::Row(Decoded::Events(Events { records, .. })) => {
                for mut record in records {
                    assert_eq!(record.line.take(), Some(found.part.line.number));
                    events.push(serde_json::to_string(&record).unwrap());
                }
            }
            Fate::LeftOut(_) => {}
        }
    }
    events.sort();
    reasons.sort();
    (events, reasons)
}

/// What whole-document parsing makes of OTLP or Zipkin documents.
fn whole(container: Container, documents: &[Value]) -> (Vec<String>, Vec<String>) {
    let options = OtlpOptions::default();
    let (mut events, mut reasons) = (Vec::new(), Vec::new());
    for document in documents {
        let text = document.to_string();
        let found = match container {
            Container::Zipkin => otlp::from_zipkin_json(text.as_bytes(), &options),
            _ => otlp::from_json(text.as_bytes(), &options),
        };
        match found {
            Ok(found) => found.into_iter().for_each(|item| match item {
                Item::Event(event) => events.push(serde_json::to_string(&event).unwrap()),
                Item::Rejected(rejected) => reasons.push(rejected.to_string()),
            }),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    events.sort();
    reasons.sort();
    (events, reasons)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Fractions that every reader reads alike.
        (-1000_i32..1000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[\\[\\]{},:\"\\\\\n\u{1}é a]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[ab\"\\\\/~é]{0,2}", inner, 0..4)
                .prop_map(|map: BTreeMap<String, Value>| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Value> {
    proptest::collection::vec(("[a-c]{1,2}", "[x-z{}\"]{0,3}"), 0..3).prop_map(|pairs| {
        let mut list: Vec<Value> =
            pairs.iter().map(|(k, v)| json!({"key": k, "value": {"stringValue": v}})).collect();
        list.push(json!({"key": "service.name", "value": {"stringValue": "s"}}));
        Value::from(list)
    })
}

fn span() -> impl Strategy<Value = Value> {
    (0_u64..6, 0_u64..4, 0_u64..6, attributes()).prop_map(|(id, time, kind, attributes)| {
        json!({"traceId": format!("{:032x}", 7), "spanId": format!("{id:016x}"), "kind": kind, "name": "n",
               "startTimeUnixNano": (time * 1_700_000_000_000_000_000).to_string(), "attributes": attributes})
    })
}

fn log() -> impl Strategy<Value = Value> {
    (0_u64..3, "[ab]").prop_map(|(time, body)| {
        json!({"timeUnixNano": (time * 1_700_000_000_000_000_000).to_string(), "body": {"stringValue": body}})
    })
}

/// A list of resources with their scopes and elements; what may be left out is left out at times.
fn resources(
    names: [&'static str; 2],
    element: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Value> {
    let scope = (proptest::option::of(attributes()), proptest::collection::vec(element, 0..4), 0_usize..3);
    let resource = (proptest::option::of(attributes()), proptest::collection::vec(scope, 0..3));
    proptest::collection::vec(resource, 0..3).prop_map(move |resources| {
        let resources = resources.into_iter().map(|(own, scopes)| {
            let scopes = scopes.into_iter().map(|(own, elements, other)| {
                let mut scope = json!({names[1]: elements, "schemaUrl": "u"});
                if let Some(own) = own {
                    scope["scope"] = json!({"name": format!("l{other}"), "attributes": own});
                }
                scope
            });
            let mut resource = json!({names[0]: scopes.collect::<Vec<_>>()});
            if let Some(own) = own {
                resource["resource"] = json!({"attributes": own});
            }
            resource
        });
        resources.collect()
    })
}

fn telemetry() -> impl Strategy<Value = Value> {
    let spans = resources(["scopeSpans", "spans"], prop_oneof![8 => span(), 1 => value()]);
    let logs = resources(["scopeLogs", "logRecords"], log());
    (proptest::option::of(spans), proptest::option::of(logs), value()).prop_map(|(spans, logs, other)| {
        let mut document = json!({"other": other});
        document.as_object_mut().unwrap().extend(spans.map(|s| ("resourceSpans".to_owned(), s)));
        document.as_object_mut().unwrap().extend(logs.map(|l| ("resourceLogs".to_owned(), l)));
        document
    })
}

fn zipkin() -> impl Strategy<Value = Value> {
    let span = (0_u64..5, 0_u64..3).prop_map(|(id, time)| {
        json!({"traceId": "7", "id": format!("{id:x}"), "timestamp": time * 1_700_000_000_000_000, "kind": "CLIENT",
               "localEndpoint": {"serviceName": "s"}})
    });
    let span = prop_oneof![6 => span, 1 => value()].boxed();
    let element = prop_oneof![span.clone(), proptest::collection::vec(span, 0..3).prop_map(Value::from)];
    proptest::collection::vec(element, 0..5).prop_map(Value::from)
}

proptest! {
    #[test]
    fn telemetry_is_read_as_whole_documents_are(
        documents in proptest::collection::vec(telemetry(), 0..3), seed in any::<u64>(), piece in 1_usize..200,
    ) {
        let text = text(&documents, &mut Dice(seed));
        let streamed = outcomes(read(Container::Otlp, None, 1 << 20, text.as_bytes(), piece));
        prop_assert_eq!(streamed, whole(Container::Otlp, &documents), "{}", text);
    }

    #[test]
    fn zipkin_is_read_as_whole_documents_are(
        documents in proptest::collection::vec(zipkin(), 0..3), seed in any::<u64>(), piece in 1_usize..200,
    ) {
        let text = text(&documents, &mut Dice(seed));
        let streamed = outcomes(read(Container::Zipkin, None, 1 << 20, text.as_bytes(), piece));
        prop_assert_eq!(streamed, whole(Container::Zipkin, &documents), "{}", text);
    }

    #[test]
    fn records_are_those_of_the_values(
        documents in proptest::collection::vec(value(), 0..4), inside in any::<bool>(), seed in any::<u64>(),
        piece in 1_usize..60,
    ) {
        let mut dice = Dice(seed);
        let (mut expected, mut bad) = (Vec::new(), 0);
        let documents: Vec<Value> = documents.into_iter().map(|d| if inside { json!({"x": [0, {"a/": d}]}) } else { d }).collect();
        for document in &documents {
            let list = match (inside, document) {
                (true, document) => document.pointer("/x/1/a~1").filter(|v| v.is_array()),
                (false, list @ Value::Array(_)) => Some(list),
                (false, _) => None,
            };
            let alone = std::slice::from_ref(document);
            let records = match list { Some(Value::Array(list)) => list, _ if inside => &[Value::Null][..], _ => alone };
            for record in records {
                if record.is_object() || record.is_array() { expected.push(sorted(record).to_string()) } else { bad += 1 }
            }
        }
        expected.sort();
        let text = text(&documents, &mut dice);
        let found = read(Container::Json, inside.then_some("/x/1/a~1"), 1 << 20, text.as_bytes(), piece);
        let body = text.trim_start_matches('\u{feff}');
        for found in &found {
            let (begin, line) = (found.part.line.offset as usize, &found.part.line);
            prop_assert_eq!(&text.as_bytes()[begin..begin + line.length as usize], &found.part.raw[..]);
            prop_assert_eq!(line.number, 1 + text[..begin].matches('\n').count() as u64);
        }
        // Lines of documents are counted once, and what stands between them is not.
        let counted: u64 = found.iter().map(|f| f.lines).sum();
        let most = body.trim_end_matches(['\n', ' ']).matches('\n').count() as u64 + 1;
        prop_assert!(counted <= most && (documents.is_empty() || counted > 0), "{} of {}: {:?}", counted, most, text);
        let (events, reasons) = outcomes(found);
        prop_assert_eq!(events, expected);
        prop_assert_eq!(reasons.len(), bad);
    }

    #[test]
    fn what_stands_before_a_cut_is_kept(
        records in proptest::collection::vec("[\\[\\]{},\"\\\\a]{0,6}", 1..6), seed in any::<u64>(), cut in any::<prop::sample::Index>(),
    ) {
        let records: Vec<Value> = records.iter().map(|r| json!({"x": r})).collect();
        let mut text = String::new();
        write(&Value::from(records.clone()), &mut Dice(seed), &mut text);
        let full = read(Container::Json, None, 1 << 20, text.as_bytes(), 50);
        let cut = cut.index(text.len());
        let found = read(Container::Json, None, 1 << 20, &text.as_bytes()[..cut], 7);
        let before = full.iter().filter(|f| f.part.line.offset + f.part.line.length <= cut as u64).count();
        let (events, reasons) = outcomes(found);
        prop_assert_eq!(events.len(), before);
        prop_assert_eq!(reasons.len(), usize::from(cut > 0));
        if let Some(reason) = reasons.first() {
            prop_assert!(reason.contains("the file ends within it") && reason.contains("in line 1 "), "{}", reason);
        }
    }

    #[test]
    fn damaged_documents_are_read_past(
        documents in proptest::collection::vec(telemetry(), 1..3), seed in any::<u64>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..6), limit in 1_usize..400,
    ) {
        let mut text = text(&documents, &mut Dice(seed)).into_bytes();
        for (place, byte, how) in changes {
            let at = place.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 => text.truncate(at.max(1)),
                _ => { text.remove(at); text.push(b'{'); }
            }
        }
        let lines = text.iter().filter(|b| **b == b'\n').count() as u64 + 1;
        for container in [Container::Otlp, Container::Zipkin, Container::Jaeger, Container::Json] {
            let counted: u64 = read(container, None, limit, &text, 9).iter().map(|f| f.lines).sum();
            prop_assert!(counted <= lines, "{} of {}", counted, lines);
        }
    }
}

#[test]
fn a_broken_document_of_many_costs_no_other() {
    let good = |n: u64| json!([{"n": n}]).to_string();
    let broken =
        ["[{\"n\":\"x", "[{\"n\":1", "[{\"n\":1}", "[{\"n\":1,}]", "rubbish", "]", "[{\"n\":tru}]", "[1}"];
    for broken in broken {
        let text = format!("{}\n{broken}\n{}\n\n{}\n", good(1), good(2), good(3));
        let found = read(Container::Json, None, 1 << 20, text.as_bytes(), 5);
        assert_eq!(found.iter().map(|f| f.lines).sum::<u64>(), 4, "{broken}");
        let (mut events, reasons) = outcomes(found);
        events.retain(|e| *e != "{\"n\":1}" && *e != "{\"n\":true}");
        assert_eq!(events, ["{\"n\":2}", "{\"n\":3}"], "{broken}");
        let placed = |r: &String| r.contains("broken in line 2") || r.contains("broken in line 3, column 1:");
        assert!(reasons.iter().any(placed), "{reasons:?}");
    }
}

#[test]
fn a_record_that_is_too_long_is_rejected_alone_with_its_place() {
    let long = "y".repeat(300);
    let text = format!("[{{\"a\":1}},\n{{\"a\":\"{long}\"}},\n{{\"a\":2}}]");
    let found = read(Container::Json, None, 100, text.as_bytes(), 50);
    let lines: Vec<_> =
        found.iter().map(|f| (f.part.line.number, f.part.line.length, f.part.raw.len())).collect();
    assert_eq!(lines, [(1, 7, 7), (2, 308, 100), (3, 7, 7)]);
    let (events, reasons) = outcomes(found);
    assert_eq!(events.len(), 2);
    assert!(reasons[0].contains("308 bytes long"), "{reasons:?}");
}

#[test]
fn spans_before_their_resource_are_whose_they_are_and_those_of_a_broken_one_are_not_guessed() {
    let span = |n: u64| {
        json!({"traceId": format!("{:032x}", 7), "spanId": format!("{n:016x}"), "startTimeUnixNano": "1700000000000000000",
               "name": "x".repeat(9000)})
        .to_string()
    };
    let attributes = |name: &str| {
        format!("{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{name}\"}}}}]}}")
    };
    // More than is held in memory.
    let spans: Vec<String> = (1..1200).map(span).collect();
    let scope = format!("{{\"spans\":[{}],\"scope\":{{\"name\":\"lib\"}}}}", spans.join(","));
    let start = format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{scope}]");
    let text = format!("{start},\"resource\":{}}}]}}", attributes("late"));
    let mut actors = BTreeMap::new();
    for found in read(Container::Otlp, None, 1 << 20, text.as_bytes(), 1 << 16) {
        let Fate::Row(Decoded::Events(Events { records, .. })) = found.fate else { panic!() };
        for record in records {
            let of = (record.actor.clone(), record.attrs["scope"].as_str().unwrap().to_owned());
            *actors.entry(of).or_insert(0) += 1;
        }
    }
    assert_eq!(actors, BTreeMap::from([(("late".to_owned(), "lib".to_owned()), 1199)]));
    let (events, reasons) = outcomes(read(Container::Otlp, None, 1 << 20, start.as_bytes(), 1 << 16));
    assert_eq!((events.len(), reasons.len()), (0, 1200));
    assert!(reasons.iter().filter(|r| r.contains("before it says whose")).count() == 1199);
}
