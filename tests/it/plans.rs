//! `lineage refresh`, and builds and questions on engines.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// What a run printed, and how it ended.
fn run(args: &[&str], folder: &Path) -> (String, String, bool) {
    let output = Command::cargo_bin("demi-lineage").unwrap().current_dir(folder).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

fn done(args: &[&str], folder: &Path) -> String {
    let (out, err, success) = run(args, folder);
    assert!(success, "{args:?}: {out}{err}");
    out
}

/// A store of one system, in which `c` breaks something after it has heard of `a` through `b`.
fn store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log = r#"
{"actor":"a","seq":1,"kind":"start"}
{"actor":"a","seq":2,"kind":"send","msg_id":"1","to":"b","type":"x"}
{"actor":"a","seq":3,"kind":"send","msg_id":"9","to":"d","type":"x"}
{"actor":"b","seq":1,"kind":"start"}
{"actor":"b","seq":2,"kind":"receive","msg_id":"1","from":"a","type":"x"}
{"actor":"b","seq":3,"kind":"send","msg_id":"2","to":"c","type":"y"}
{"actor":"c","seq":1,"kind":"start"}
{"actor":"c","seq":2,"kind":"receive","msg_id":"2","from":"b","type":"y"}
{"actor":"d","seq":1,"kind":"start"}
{"actor":"d","seq":2,"kind":"receive","msg_id":"9","from":"a","type":"x"}
{"actor":"_monitor","seq":1,"kind":"violation","fields":{"fingerprints":["F"],"affected":["c"]}}
"#;
    std::fs::write(folder.path().join("log.jsonl"), log.trim_start()).unwrap();
    done(&["ingest", "load", "--store", "store", "--system", "s", "log.jsonl"], folder.path());
    folder
}

#[test]
fn tables_are_refreshed_and_statements_are_told() {
    let folder = store();
    let path = folder.path();
    let told = done(&["lineage", "refresh", "--store", "store"], path);
    assert!(
        told.contains("s: 3 messages between 5 logs, of version 1 of the events; wrote 3 messages"),
        "{told}"
    );
    for table in ["actors", "runs", "messages", "checkpoints"] {
        assert!(path.join(format!("store/lineage_{table}/_delta_log")).is_dir(), "{table}");
    }
    let again: Value =
        serde_json::from_str(&done(&["lineage", "refresh", "--store", "store", "--json"], path)).unwrap();
    assert_eq!((&again["messages_written"], &again["messages"]), (&0.into(), &3.into()), "{again}");
    // Nothing is read or written for these.
    for dialect in ["duckdb", "datafusion", "spark", "trino"] {
        let explain = format!("--explain-sql={dialect}");
        let tables = done(&["lineage", "refresh", "--store", "nowhere", &explain], path);
        assert!(tables.contains("-- messages by id\n") && tables.contains("-- checkpoints\n"), "{tables}");
        let slice = done(&["build", "--store", "nowhere", &explain], path);
        assert!(slice.contains("-- one round: repeated until it raises nothing\n"), "{slice}");
    }
    let (_, missing, success) = run(&["build", "--store", "store"], path);
    assert!(!success && missing.contains("--out"), "{missing}");
}

#[test]
fn what_no_engine_can_do_is_refused_with_the_way() {
    let folder = store();
    let path = folder.path();
    let refused = |args: &[&str], reason: &str| {
        let (_, err, success) = run(args, path);
        assert!(!success && err.contains(reason), "{args:?}: {err}");
    };
    refused(&["query", "store", "--engine", "duckdb", "stats"], "--fetch EVENT");
    refused(&["query", "store", "--engine", "duckdb", "path", "a/1", "c/2"], "the lengths of all chains");
    refused(&["query", "store", "--fetch", "c/2", "stats"], "--engine");
    refused(&["query", "store", "--engine", "oracle", "past", "c/2"], "is no engine");
    refused(&["query", "store", "--engine", "ballista", "past", "c/2"], "names no scheduler");
    refused(&["build", "log.jsonl", "--engine", "duckdb", "--out", "exec"], "name one with --store");
    refused(
        &["build", "--store", "store", "--engine", "duckdb", "--last", "3", "--out", "exec"],
        "a window is for the local engine",
    );
    let nothing = Command::cargo_bin("demi-lineage")
        .unwrap()
        .current_dir(path)
        .env("DEMI_PYTHON", "/nowhere/python")
        .args(["build", "--store", "store", "--engine", "duckdb", "--out", "exec"])
        .output()
        .unwrap();
    let told = String::from_utf8(nothing.stderr).unwrap();
    assert!(told.contains("duckdb cannot be started with /nowhere/python"), "{told}");
}

#[test]
fn an_engine_builds_what_this_process_builds() {
    let python = std::env::var_os("DEMI_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    if !std::process::Command::new(python)
        .args(["-c", "import duckdb"])
        .output()
        .is_ok_and(|o| o.status.success())
    {
        println!("skipped: no duckdb in this Python (set DEMI_PYTHON)");
        return;
    }
    let folder = store();
    let path = folder.path();
    let (_, err, success) = run(&["build", "--store", "store", "--engine", "duckdb", "--out", "exec"], path);
    assert!(!success && err.contains("lineage refresh --store"), "{err}");
    done(&["lineage", "refresh", "--store", "store"], path);
    done(&["build", "--store", "store", "--out", "local"], path);
    let told = done(&["build", "--store", "store", "--engine", "duckdb", "--out", "exec"], path);
    assert!(told.contains("past found by duckdb in 3 rounds"), "{told}");
    let schedule = |exec: &str| std::fs::read_to_string(path.join(exec).join("schedule.jsonl")).unwrap();
    let steps = |exec: &str| schedule(exec).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(steps("exec"), steps("local"));
    let summary = std::fs::read_to_string(path.join("exec/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["plan"]["rounds"], &summary["plan"]["closed_by"]), (&3.into(), &"rounds".into()));
    assert!(summary["plan"]["rows_read"].as_u64().is_some_and(|rows| rows > 0), "{summary}");
    for question in
        [&["past", "c/2"][..], &["future", "a/2"], &["order", "a/3", "c/2"], &["past", "c/2", "--json"]]
    {
        let local = done(&[&["query", "store"], question].concat(), path);
        assert_eq!(done(&[&["query", "store", "--engine", "duckdb"], question].concat(), path), local);
    }
    let cut = done(&["query", "store", "--engine", "duckdb", "cut", "a/2", "b/1"], path);
    assert!(cut.starts_with("consistent, 1 messages between logs in flight"), "{cut}");
    let cut = done(&["query", "store", "--engine", "duckdb", "cut", "c/2"], path);
    assert!(cut.starts_with("not consistent: b/3 is outside and happens before c/2 inside"), "{cut}");
    let fetched =
        done(&["query", "store", "--engine", "duckdb", "--fetch", "c/2", "path", "a/2", "c/2"], path);
    assert_eq!(fetched, done(&["query", "store", "path", "a/2", "c/2"], path));
    // What comes later is not seen until the tables take it in.
    let more = r#"{"actor":"c","seq":3,"kind":"local"}"#;
    std::fs::write(path.join("more.jsonl"), format!("{more}\n")).unwrap();
    done(&["ingest", "load", "--store", "store", "--system", "s", "more.jsonl"], path);
    let (_, err, success) = run(&["query", "store", "--engine", "duckdb", "past", "c/2"], path);
    assert!(success && err.contains("what came since is not seen"), "{err}");
    let (_, err, success) = run(&["query", "store", "--engine", "duckdb", "past", "c/3"], path);
    assert!(!success && err.contains("no event 'c/3'"), "{err}");
    done(&["lineage", "refresh", "--store", "store"], path);
    let past = done(&["query", "store", "--engine", "duckdb", "past", "c/3"], path);
    assert!(past.starts_with("7 events happen before c/3"), "{past}");
}
