//! A part of the events: built of logs and of a store, told of, and refused by what replays.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;

use serde_json::Value;

use crate::support::run::{done, told};

/// `a` sends a message a second, `b` receives it half a second later; the clock of `b` is ten seconds behind.
fn logs(folder: &Path) {
    std::fs::create_dir(folder.join("logs")).unwrap();
    let (mut a, mut b) = (String::new(), String::new());
    for n in 1..=40 {
        a.push_str(&format!(
            r#"{{"actor":"a","seq":{n},"kind":"send","from":"a","to":"b","msg_id":"{n}","time":"2026-03-01T10:00:{:02}Z"}}"#,
            n + 10
        ));
        b.push_str(&format!(
            r#"{{"actor":"b","seq":{n},"kind":"receive","from":"a","to":"b","msg_id":"{n}","time":"2026-03-01T10:00:{n:02}.5Z"}}"#
        ));
        a.push('\n');
        b.push('\n');
    }
    std::fs::write(folder.join("logs/a.jsonl"), a).unwrap();
    std::fs::write(folder.join("logs/b.jsonl"), b).unwrap();
}

#[test]
fn a_window_is_built_of_logs_and_of_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    logs(at);
    done(at, &["ingest", "load", "logs", "--store", "store", "--system", "s"]);
    let window = ["--since", "2026-03-01T10:00:30Z", "--violation", "none"];
    let mut summaries = Vec::new();
    for (input, out) in [(vec!["logs", "--system", "s"], "of-logs"), (vec!["--store", "store"], "of-store")] {
        let text = done(at, &[&["build"][..], &input, &window, &["--out", out, "--json"]].concat());
        summaries.push(serde_json::from_str::<Value>(&text).unwrap());
    }
    assert_eq!(summaries[0]["window"], summaries[1]["window"]);
    // The clock of `a` cuts before its 20th message, that of `b` before its 30th, which is lowered: `b` cannot have what `a` has not sent.
    let window = &summaries[0]["window"];
    assert_eq!(window["begins"], "ground", "{window}");
    assert_eq!((window["before"].as_u64(), window["in_flight"].as_u64()), (Some(38), Some(0)), "{window}");
    assert_eq!(summaries[0]["events"], 42);
    let order = done(at, &["query", "of-store", "order", "a/20", "b/20"]);
    assert!(order.contains("before"), "{order}");

    let text = done(at, &["build", "logs", "--last", "20", "--violation", "none", "--out", "last"]);
    assert!(text.contains("window: last 20; left out: 50 events before it, 0 after it"), "{text}");
    assert!(text.contains("so it cannot be replayed"), "{text}");
    let (code, _, err) = told(at, &["export", "last", "--format", "dot"]);
    assert_eq!(code, 0, "{err}");

    let text = done(
        at,
        &["build", "logs", "--until", "2026-03-01T10:00:30Z", "--violation", "none", "--out", "start"],
    );
    assert!(text.contains("it begins at the start of the system"), "{text}");

    let text = done(
        at,
        &["build", "logs", "--around", "b/20", "--last", "6", "--violation", "none", "--out", "near"],
    );
    assert!(text.contains("window: last 6, around b/20"), "{text}");
    done(at, &["query", "near", "past", "b/20"]);
}

#[test]
fn what_begins_in_the_middle_is_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    logs(at);
    done(at, &["build", "logs", "--last", "20", "--violation", "none", "--out", "exec"]);
    std::fs::write(at.join("s.toml"), "model = \"akka-raft\"\nmembers = 4\nnetwork = \"fifo\"\n").unwrap();
    for verb in [
        &["replay", "exec", "--scenario", "s.toml"][..],
        &["minimize", "exec", "--scenario", "s.toml", "--out", "min"],
    ] {
        let (code, _, err) = told(at, verb);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("begins at a cut (last 20), not at the start of the system"), "{err}");
        assert!(err.contains("build it without --last"), "{err}");
    }
    let (code, _, err) = told(at, &["build", "logs", "--since", "noon", "--out", "none"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("'noon' is no time") && !at.join("none").exists(), "{err}");
    let (code, _, err) = told(at, &["build", "logs", "--since", "2027-01-01", "--out", "none"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no event of system") && err.contains("since 2027-01-01"), "{err}");
}
