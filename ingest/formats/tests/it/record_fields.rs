//! Every field of an event record is seen by the digest and by redaction, or is exempt on purpose. Whoever adds a field is
//! reminded here.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_formats::{Redaction, record_digest};
use demi_schemas::EventRecord;
use serde_json::{Map, Value, json};

const SCHEMA: &str = include_str!("../../../../schemas/json/event-record.schema.json");

/// Where a record belongs and stands: two records that differ in nothing else say the same.
const NOT_IN_DIGEST: [&str; 3] = ["system", "source", "offset"];
/// Texts that patterns leave alone: what orders events, where they stand, and their time.
const NOT_REDACTED: [&str; 8] = ["system", "actor", "msg_id", "from", "to", "source", "time", "vector_clock"];
/// Fields that a rule may name besides those that patterns reach: nothing is ordered by the time.
const BY_NAME_ONLY: [&str; 1] = ["time"];

/// What a rule finds.
const SECRET: &str = "needle";

/// The properties of a record by path, those of a timer after a dot, and a field that nobody knows.
fn properties(schema: &Value) -> Vec<(String, Value)> {
    let mut found = vec![("zone".to_owned(), json!({})), ("timer.zone".to_owned(), json!({}))];
    for (name, property) in schema["properties"].as_object().unwrap() {
        let shape = resolved(schema, property);
        match shape["properties"].as_object() {
            Some(parts) => {
                let parts = parts.iter();
                found.extend(parts.map(|(part, shape)| (format!("{name}.{part}"), resolved(schema, shape))));
            }
            None => found.push((name.clone(), shape)),
        }
    }
    found
}

/// A property without references and without null.
fn resolved(schema: &Value, property: &Value) -> Value {
    if let Some(any) = property["anyOf"].as_array() {
        return resolved(schema, any.iter().find(|one| one["type"] != "null").unwrap());
    }
    match property["$ref"].as_str() {
        Some(link) => schema.pointer(link.strip_prefix('#').unwrap()).unwrap().clone(),
        None => property.clone(),
    }
}

/// Two values that the shape allows, with [`SECRET`] in them where a text may stand.
fn values(shape: &Value) -> [Value; 2] {
    if let Some(choices) = shape["oneOf"].as_array() {
        // The last ones: the first kinds of events need addresses.
        return [1, 2].map(|back| choices[choices.len() - back]["const"].clone());
    }
    let type_ = shape["type"].as_str().or_else(|| shape["type"][0].as_str());
    match type_ {
        Some("string") => [1, 2].map(|n| json!(format!("{SECRET} {n}"))),
        Some("integer") => [json!(3), json!(4)],
        Some("boolean") => [json!(true), json!(false)],
        Some("object") => [1, 2].map(|n| json!({ SECRET: n })),
        None => [1, 2].map(|n| json!({ "a": [format!("{SECRET} {n}")], SECRET: n })),
        Some(other) => unreachable!("the test does not know values of type {other}"),
    }
}

/// A record in which the path has the value, and nothing else that is not needed.
fn record(path: &str, value: Value) -> EventRecord {
    let mut fields: Map<String, Value> =
        json!({ "actor": "a", "seq": 1, "kind": "local" }).as_object().unwrap().clone();
    match path.split_once('.') {
        Some((name, part)) => fields.insert(name.to_owned(), json!({ part: value })),
        None => fields.insert(path.to_owned(), value),
    };
    EventRecord::parse(Value::Object(fields).to_string().as_bytes()).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn redacted(rule: &str, record: &EventRecord) -> Option<String> {
    let root: toml::Table = format!("[redact]\n[[redact.rules]]\n{rule}\n").parse().unwrap();
    let redaction = Redaction::new(root["redact"].clone()).ok()?;
    let mut record = record.clone();
    redaction.record("s", &mut record);
    Some(serde_json::to_string(&record).unwrap())
}

#[test]
fn the_digest_sees_every_field() {
    let properties = properties(&schema());
    assert!(properties.len() > 20, "{properties:?}");
    for (path, shape) in properties {
        let digests = values(&shape).map(|value| record_digest(&record(&path, value)));
        let without = NOT_IN_DIGEST.contains(&path.as_str());
        assert_eq!(digests[0] == digests[1], without, "{path}: see ingest/formats/src/digest.rs");
    }
}

#[test]
fn a_pattern_finds_every_text_and_a_rule_every_field_that_may_be_redacted() {
    for (path, shape) in properties(&schema()) {
        let [value, _] = values(&shape);
        let has_text = value.to_string().contains(SECRET);
        let logged = record(&path, value);
        let left = redacted(&format!("pattern = '{SECRET}'"), &logged).unwrap();
        let exempt = NOT_REDACTED.contains(&path.as_str());
        assert_eq!(
            left.contains(SECRET),
            has_text && exempt,
            "{path}: see ingest/formats/src/redact.rs: {left}"
        );
        // A rule about the field is refused, or it works: none is taken and does nothing.
        let named = redacted(&format!("field = '{path}'"), &logged);
        let text = serde_json::to_string(&logged).unwrap();
        let whole = path.split('.').next().unwrap();
        let refused = named.is_none();
        assert!(named.is_none_or(|left| left != text && !left.contains(SECRET)), "{path}");
        if has_text && whole != "type" {
            let may = !exempt || BY_NAME_ONLY.contains(&whole);
            assert_eq!(refused, !may, "{path}: see ingest/formats/src/redact/rules.rs");
        }
    }
}
