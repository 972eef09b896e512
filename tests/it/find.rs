//! From a line of a log, or a text in it, to the event that it became.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;

use serde_json::Value;

use crate::support::run::{done, told};

/// Two logs: `a` asks `b` for a vote, and `b` is elected twice.
const LOGS: [(&str, &[&str]); 2] = [
    (
        "a.jsonl",
        &[
            r#"{"actor":"a","seq":1,"kind":"start"}"#,
            "this line is no record",
            r#"{"actor":"a","seq":2,"kind":"send","to":"b","msg_id":"1","type":"Vote","payload":"Vote(Term(7))"}"#,
        ],
    ),
    (
        "b.jsonl",
        &[
            r#"{"actor":"b","seq":1,"kind":"receive","from":"a","msg_id":"1","type":"Vote","payload":"Vote(Term(7))"}"#,
            r#"{"actor":"b","seq":2,"kind":"local","payload":"ERROR: two leaders in term 7"}"#,
            r#"{"actor":"b","seq":3,"kind":"local","fields":{"note":"Two Leaders again"}}"#,
        ],
    ),
];

fn logs(folder: &Path) {
    std::fs::create_dir(folder.join("logs")).unwrap();
    for (name, lines) in LOGS {
        std::fs::write(folder.join("logs").join(name), lines.join("\n")).unwrap();
    }
}

#[test]
fn a_text_or_a_line_leads_to_its_event() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    logs(at);
    done(at, &["build", "logs", "--violation", "none", "--out", "exec"]);
    let events = |args: &[&str]| -> Vec<String> {
        let lines = done(at, &[&["query", "exec", "find"], args, &["--json"]].concat());
        let name =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned();
        lines.lines().map(name).collect()
    };
    assert_eq!(events(&["TWO LEADERS"]), ["b/2", "b/3"]);
    assert_eq!(events(&["Term(7)"]), ["a/2", "b/1"], "a text is no expression");
    assert_eq!(events(&["--regex", "Term.(7|8)"]), ["a/2", "b/1"]);
    assert_eq!(events(&["--regex", "two leaders"]), ["b/2"], "an expression minds the case");
    assert_eq!(events(&["--line", "logs/a.jsonl:3"]), ["a/2"]);
    assert_eq!(events(&["--line", "./logs/b.jsonl:2"]), ["b/2"]);
    assert_eq!(events(&["Vote", "--limit", "1"]), ["a/2"]);
    // A kind counts as a whole: not every local event holds "loc".
    assert_eq!(events(&["Receive"]), ["b/1"]);
    let (code, ..) = told(at, &["query", "exec", "find", "loc"]);
    assert_eq!(code, 1);
    let text = done(at, &["query", "exec", "find", "two leaders"]);
    assert_eq!(text.lines().next(), Some("b/2  local: ERROR: two leaders in term 7"));
    assert_eq!(told(at, &["query", "exec", "find", "three leaders"]).0, 1);
    for (line, says) in [
        ("logs/a.jsonl:2", "the nearest event before it is a/1"),
        ("logs/a.jsonl:17", "has 3 lines"),
        ("logs/a.jsonl", "FILE:LINE"),
        ("nowhere.jsonl:1", "nowhere.jsonl"),
    ] {
        let (code, _, err) = told(at, &["query", "exec", "find", "--line", line]);
        assert!(code == 2 && err.contains(says), "{line}: {err}");
    }
    let (code, _, err) = told(at, &["query", "exec", "find", "--regex", "("]);
    assert!(code == 2 && err.contains("unclosed group"), "{err}");
}

#[test]
fn a_violation_is_named_by_a_line_or_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    logs(at);
    let affected = |of: &[&str], violation: &str| -> (Value, Value, Value) {
        let args = [&["build"], of, &["--violation", violation, "--out", "exec", "--json"]].concat();
        let mut summary: Value = serde_json::from_str(&done(at, &args)).unwrap();
        (summary["affected"].take(), summary["kept"].take(), summary["warnings"].take())
    };
    let b = || serde_json::json!(["b"]);
    let same = |one: &str, other: &str| {
        let (one, other) = (affected(&["logs"], one), affected(&["logs"], other));
        assert_eq!((one.0, one.1), (other.0, other.1));
    };
    same("line:logs/a.jsonl:1", "event:a/1");
    same("line:logs/a.jsonl:3", "event:a/2");
    same("line:logs/b.jsonl:1", "event:b/1");
    same("text:Vote", "event:a/2");
    let (who, _, warnings) = affected(&["logs"], "text:(?i)two leaders");
    assert_eq!(who, b(), "of several the first counts");
    assert!(warnings.to_string().contains("the violation is b/2"), "{warnings}");
    // Of a store too, which is named before the command or after it.
    done(at, &["ingest", "--store", "store", "--system", "s", "load", "logs"]);
    assert_eq!(affected(&["--store", "store"], "text:ERROR").0, b());
    let found = done(at, &["query", "store", "find", "ERROR", "--system", "s"]);
    assert!(found.starts_with("b/2  local"), "{found}");
    for (spec, says) in [
        ("text:three", "no event holds the text"),
        ("line:logs/b.jsonl:9", "has 3 lines"),
        ("line:logs/b.jsonl", "FILE:LINE"),
        ("lines:x", "expected event:ACTOR/SEQ"),
    ] {
        let (code, _, err) = told(at, &["build", "logs", "--violation", spec, "--out", "other"]);
        assert!(code == 2 && err.contains(says), "{spec}: {err}");
    }
    let left: Vec<_> = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".demi")), "{left:?}");
}

#[test]
fn one_log_of_all_actors_keeps_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    logs(at);
    done(at, &["build", "logs", "--violation", "none", "--out", "exec"]);
    let log = done(at, &["export", "exec", "--format", "merged-log"]);
    let place = |name: &str| log.lines().position(|line| line.starts_with(name)).unwrap();
    assert!(place("a/2") < place("b/1") && place("b/1") < place("b/2"), "{log}");
    assert!(log.contains("a/2  send Vote to b id 1  Vote(Term(7))\n"), "{log}");
}
