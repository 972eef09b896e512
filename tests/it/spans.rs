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

/// What `build` prints and warns of, for a store of one system.
fn built(dir: &Path, store: &str, more: &[&str]) -> (String, String) {
    let exec = dir.join("exec").display().to_string();
    let args = ["build", "--store", store, "--violation", "none", "--out", &exec];
    let output = Command::cargo_bin("demi-lineage").unwrap().args(args).args(more).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn load_with(dir: &Path, mapping: &str, document: &Value) -> String {
    let file = dir.join("document.json");
    fs::write(&file, document.to_string()).unwrap();
    let store = dir.join("store").display().to_string();
    let file = file.display().to_string();
    run(&["ingest", "load", "--store", &store, "--system", "s", "--mapping", mapping, &file]);
    store
}

const MICROS: u64 = BASE / 1000;

#[test]
fn zipkin_of_version_1_is_read_and_an_edge_against_stamps_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let at = |value: &str, micros: u64, service: &str| json!({"timestamp": MICROS + micros, "value": value, "endpoint": {"serviceName": service}});
    // The clock of the second is behind.
    let store = load_with(
        dir.path(),
        "zipkin",
        &json!([{"traceId": "a", "id": "1", "name": "get", "binaryAnnotations": [],
            "annotations": [at("cs", 20_000, "front"), at("sr", 10_000, "back"), at("ss", 12_000, "back"), at("cr", 40_000, "front")]}]),
    );
    let sent = format!("front/{}", BASE + 20_000_000 + 2);
    let received = format!("back/{}", BASE + 10_000_000);
    assert_eq!(order(&store, &sent, &received), "_ happens before _");
    let (said, warned) = built(dir.path(), &store, &[]);
    let line = format!(
        "stamps: 1 of 1 certain edges run against those of both ends (first {sent} -> {received}; most {sent} -> {received}, by 10 ms)"
    );
    assert!(said.contains(&line), "{said}");
    assert!(said.contains("constant differences between clocks explain it"), "{said}");
    assert!(!warned.contains("warning"), "{warned}");
    let (_, warned) = built(dir.path(), &store, &["--check-stamps"]);
    assert!(!warned.contains("warning"), "{warned}");
}

#[test]
fn stamps_that_no_difference_of_clocks_explains_are_warned_of_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let client = |id: &str, service: &str, micros: u64| json!({"traceId": "a", "id": id, "kind": "CLIENT", "timestamp": MICROS + micros, "localEndpoint": {"serviceName": service}});
    let server = |id: &str, service: &str, micros: u64| json!({"traceId": "a", "id": id, "kind": "SERVER", "timestamp": MICROS + micros, "localEndpoint": {"serviceName": service}});
    let spans = [client("1", "a", 900), server("1", "b", 500), client("2", "b", 800), server("2", "a", 400)];
    let store = load_with(dir.path(), "zipkin", &json!(spans));
    let (said, warned) = built(dir.path(), &store, &[]);
    assert!(said.contains("stamps: 2 of 2 certain edges"), "{said}");
    assert!(said.contains("of 1 pair of actors no constant difference"), "{said}");
    assert!(!warned.contains("no constant difference"), "{warned}");
    let (_, warned) = built(dir.path(), &store, &["--check-stamps"]);
    assert!(
        warned.contains("warning: no constant difference between two clocks explains the stamps of"),
        "{warned}"
    );
}

#[test]
fn spans_of_jaeger_that_share_an_id_are_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let span = |id: &str, kind: &str, process: &str, micros: u64, references: Value| {
        json!({"traceID": "a", "spanID": id, "operationName": "get", "references": references, "startTime": MICROS + micros, "duration": 5,
               "tags": [{"key": "span.kind", "type": "string", "value": kind}], "logs": [], "processID": process})
    };
    let follows = json!([{"refType": "FOLLOWS_FROM", "traceID": "a", "spanID": "1"}]);
    let store = load_with(
        dir.path(),
        "jaeger",
        &json!({"data": [{"traceID": "a", "spans": [
            span("1", "client", "p1", 100, json!([])), span("1", "server", "p2", 110, json!([])),
            span("2", "internal", "p3", 90, follows)],
            "processes": {"p1": {"serviceName": "front"}, "p2": {"serviceName": "back"}, "p3": {"serviceName": "later"}}}]}),
    );
    let (sent, received) = (format!("front/{}", BASE + 100_002), format!("back/{}", BASE + 110_000));
    assert_eq!(order(&store, &sent, &received), "_ happens before _");
    let later = format!("later/{}", BASE + 90_001);
    assert_eq!(order(&store, &sent, &later), "_ happens before _");
}
