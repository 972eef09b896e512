//! The example of the logging layer, end to end: an actor system writes its log, and the order that is built from it is the one
//! that the actors know of.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

#[path = "../../ingest/log/examples/counter.rs"]
#[allow(dead_code, unreachable_pub, reason = "main is for the command line")]
mod counter;

use std::fs;

use assert_cmd::Command;
use serde_json::Value;

fn demi(args: &[&str]) -> String {
    let output = Command::cargo_bin("demi-lineage").unwrap().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_the_actors_know_is_what_the_order_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (log, store, exec, pairs) = (path("events.jsonl"), path("store"), path("exec"), path("pairs"));
    let known = counter::run(&log).unwrap();
    let loaded: Value = serde_json::from_str(&demi(&[
        "-q", "ingest", "load", "--json", "--store", &store, "--system", "counter", &log,
    ]))
    .unwrap();
    let lines = fs::read_to_string(&log).unwrap().lines().count() as u64;
    assert_eq!(
        (loaded["added"].as_u64(), loaded["quarantined"].as_u64()),
        (Some(lines), Some(0)),
        "{loaded}"
    );
    let built: Value = serde_json::from_str(&demi(&[
        "-q",
        "build",
        "--json",
        "--store",
        &store,
        "--system",
        "counter",
        "--violation",
        "none",
        "--out",
        &exec,
    ]))
    .unwrap();
    assert_eq!(built["events"].as_u64(), Some(lines), "{built}");
    // Four first messages, each handed on forty times.
    let messages: Vec<(&str, &str)> = known.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(messages.len(), 4 * 41);
    let position = |event: &str| event.rsplit('/').next().unwrap().parse::<u64>().unwrap();
    let mut asked: Vec<(String, String, &str)> = Vec::new();
    for (sent, received) in &messages {
        asked.push(((*sent).to_owned(), (*received).to_owned(), "before"));
        asked.push(((*received).to_owned(), (*sent).to_owned(), "after"));
        // What the sender did before it sent comes before the receipt too.
        let (name, _) = sent.split_once('/').unwrap();
        if position(sent) > 1 {
            asked.push((format!("{name}/{}", position(sent) - 1), (*received).to_owned(), "before"));
        }
    }
    // No message was received when the actors started.
    asked.push(("counter-0/1".into(), "counter-1/1".into(), "concurrent"));
    let text: String = asked.iter().map(|(a, b, _)| format!("{a}\t{b}\n")).collect();
    fs::write(&pairs, text).unwrap();
    let answers = demi(&["query", &exec, "order", "--json", "--pairs", &pairs]);
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), asked.len());
    for ((a, b, expected), answer) in asked.iter().zip(&answers) {
        assert_eq!(answer["order"], *expected, "{a} and {b}: {answer}");
    }
}
