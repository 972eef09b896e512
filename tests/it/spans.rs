//! The order of spans: a parent comes before its children whatever their stamps say.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

fn span(service: &str, id: u64, parent: Option<u64>, kind: u64, start: u64) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", 7), "spanId": format!("{id:016x}"), "kind": kind, "name": format!("s{id}"),
        "startTimeUnixNano": (BASE + start).to_string(), "endTimeUnixNano": (BASE + 9000).to_string(),
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    json!({"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
           "scopeSpans": [{"spans": [span]}]})
}

const BASE: u64 = 1_750_000_000_000_000_000;
const INTERNAL: u64 = 1;

fn run(args: &[&str]) -> String {
    let output = Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn load(dir: &Path, spans: Vec<Value>) -> String {
    let file = dir.join("spans.json");
    fs::write(&file, json!({"resourceSpans": spans}).to_string()).unwrap();
    let store = dir.join("store").display().to_string();
    run(&["ingest", "load", "--store", &store, "--system", "s", "--mapping", "otlp", file.to_str().unwrap()]);
    store
}

fn order(store: &str, one: &str, other: &str) -> String {
    run(&["query", store, "order", one, other]).trim().replace(one, "_").replace(other, "_")
}

/// The name of a span's event; what is received has the lower numbers of a nanosecond, what is sent the higher.
fn name(service: &str, start: u64, rank: u64) -> String {
    format!("{service}/{}", BASE + start + rank)
}

#[test]
fn parents_come_before_children_in_a_service_and_across() {
    let dir = tempfile::tempdir().unwrap();
    let store = load(
        dir.path(),
        vec![
            span("a", 1, None, INTERNAL, 900),
            span("a", 2, Some(1), INTERNAL, 100),
            span("a", 3, Some(1), INTERNAL, 950),
            span("b", 4, Some(1), INTERNAL, 50),
            span("b", 5, None, INTERNAL, 20),
            span("b", 6, Some(4), INTERNAL, 50),
        ],
    );
    let (parent, child, later) = (name("a", 900, 1), name("a", 100, 1), name("a", 950, 1));
    assert_eq!(order(&store, &parent, &child), "_ happens before _");
    assert_eq!(order(&store, &child, &later), "_ happens before _");
    let (far, other) = (name("b", 50, 1), name("b", 20, 1));
    assert_eq!(order(&store, &parent, &far), "_ happens before _");
    assert_eq!(order(&store, &parent, &name("b", 50, 2)), "_ happens before _");
    assert_eq!(order(&store, &other, &far), "_ happens before _");
    assert_eq!(order(&store, &parent, &other), "_ and _ are concurrent");
    let path = run(&["query", &store, "path", &parent, &far, "--json"]);
    assert!(path.contains("\"parent\""), "{path}");
}

#[test]
fn a_producer_and_its_consumer_in_one_nanosecond_are_no_cycle() {
    let dir = tempfile::tempdir().unwrap();
    let (producer, consumer) = (4, 5);
    let mut received = span("a", 2, None, consumer, 500);
    received["scopeSpans"][0]["spans"][0]["links"] =
        json!([{"traceId": format!("{:032x}", 7), "spanId": format!("{:016x}", 1)}]);
    let store = load(dir.path(), vec![span("a", 1, None, producer, 500), received]);
    let (sent, received) = (name("a", 500, 2), name("a", 500, 0));
    assert_eq!(order(&store, &sent, &received), "_ happens before _");
    let path = run(&["query", &store, "path", &sent, &received]);
    assert!(!path.contains("cycle"), "{path}");
    let exec = dir.path().join("exec").display().to_string();
    run(&["build", "--store", &store, "--system", "s", "--violation", "none", "--out", &exec]);
    let summary: Value =
        serde_json::from_slice(&fs::read(dir.path().join("exec/summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["matched"], &summary["warnings"]), (&json!(1), &json!([])), "{summary}");
}
