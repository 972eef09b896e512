//! Who names the wrong file or folder is told what it is and what to do.

use std::path::Path;
use std::process::{Command, Stdio};

const LINES: &str = "{\"actor\":\"a\",\"seq\":1,\"kind\":\"send\",\"msg_id\":\"1\",\"to\":\"b\",\"type\":\"X\"}\n\
    {\"actor\":\"b\",\"seq\":1,\"kind\":\"receive\",\"msg_id\":\"1\",\"from\":\"a\",\"type\":\"X\"}\n";

fn demi(folder: &Path, line: &str) -> (Option<i32>, String) {
    let words = line.split_whitespace();
    let output =
        Command::new(env!("CARGO_BIN_EXE_demi-lineage")).args(words).current_dir(folder).output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&told).into_owned())
}

/// A store, an execution, a scenario, logs and other files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("log.jsonl", LINES);
    write("text.log", "2026-01-01 10:00:00 a sends 5 to b\n2026-01-01 10:00:01 b got it\n");
    write("cut.jsonl", &LINES[..LINES.len() - 30]);
    write("kind.jsonl", "{\"actor\":\"a\",\"seq\":1,\"kind\":\"sned\",\"to\":\"b\"}\n");
    write("schedule.jsonl", "{\"schema\":\"demi-schedule/1\"}\n{\"kind\":\"start\",\"to\":\"raft-mem");
    write("s.toml", "model = \"akka-raft\"\nnetwork = \"fifo\"\nmembers = 4\n");
    write("p.toml", "network = \"fifo\"\nmodel = { command = [\"python3\", \"m.py\"] }\n");
    write("empty.jsonl", "{\"schema\":\"demi-schedule/1\"}\n");
    std::fs::create_dir(folder.path().join("logs")).unwrap();
    write("logs/a.jsonl", LINES);
    for line in [
        "ingest load --store store --system s log.jsonl",
        "build --store store --system s --violation none --out exec",
    ] {
        let (status, told) = demi(folder.path(), line);
        assert_eq!(status, Some(0), "{told}");
    }
    folder
}

#[test]
fn what_a_path_is_and_what_to_do_is_said() {
    let folder = folder();
    for (line, parts) in [
        (
            "minimize store --scenario s.toml --out m",
            &["store is an event store", "demi-lineage build --store store"][..],
        ),
        (
            "minimize log.jsonl --scenario s.toml --out m",
            &["log.jsonl is a log", "build log.jsonl --out EXEC"],
        ),
        ("minimize logs --scenario s.toml --out m", &["logs is a folder of logs", "build logs --out EXEC"]),
        (
            "minimize text.log --scenario s.toml --out m",
            &["text.log is a text file", "--mapping MAPPING", "ingest mappings"],
        ),
        (
            "minimize s.toml --scenario s.toml --out m",
            &["s.toml is a TOML file", "wanted here is an execution, a schedule"],
        ),
        ("minimize nothing --scenario s.toml --out m", &["nothing: there is no such file or folder"]),
        (
            "minimize schedule.jsonl --scenario s.toml --out m",
            &["schedule.jsonl: line 2", "last line is cut off"],
        ),
        ("minimize exec --scenario exec --out m", &["exec is a folder", "--scenario FILE"]),
        ("replay store --scenario s.toml", &["store is an event store", "build --store store"]),
        ("replay log.jsonl --scenario s.toml", &["log.jsonl is a log"]),
        (
            "verify exec",
            &["exec is an execution, which claims nothing", "a folder written by minimize or explore"],
        ),
        ("verify store", &["store is an event store"]),
        ("verify log.jsonl", &["log.jsonl is a log", "a folder written by minimize or explore"]),
        ("verify nothing", &["nothing: there is no such file or folder"]),
        ("report log.jsonl --html x.html", &["log.jsonl is a log"]),
        ("export store --format dot", &["store is an event store", "build --store store"]),
        ("export log.jsonl --format dot", &["log.jsonl is a log"]),
        (
            "query log.jsonl stats",
            &["log.jsonl is a log", "wanted here is an execution (from build) or an event store"],
        ),
        ("query logs stats", &["logs is a folder of logs"]),
        (
            "export empty.jsonl --scenario p.toml --format rust-test",
            &["the scenario's model is a command", "--format pytest"],
        ),
        (
            "export empty.jsonl --scenario s.toml --format pytest",
            &["'akka-raft' is a model in Rust", "--format rust-test"],
        ),
        ("query exec --sql TRUNCATE", &["no SQL"]),
    ] {
        let (status, told) = demi(folder.path(), line);
        assert_eq!(status, Some(2), "{line}: {told}");
        for part in parts {
            assert!(told.contains(part), "{line}: '{part}' is not in: {told}");
        }
        assert!(!told.contains("os error"), "{line}: {told}");
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said_when_it_is_loaded() {
    let folder = folder();
    let (status, told) = demi(folder.path(), "ingest load --store cut --system s cut.jsonl");
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains("cut.jsonl:2 (not_json)") && told.contains("ends in the middle of a record"),
        "{told}"
    );
    let (status, told) = demi(folder.path(), "ingest load --store kind --system s kind.jsonl");
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains("did you mean 'send'?") && !told.contains("another program"), "{told}");
    let (status, told) = demi(folder.path(), "ingest load --store text --system s text.log");
    assert!(status == Some(1) && told.contains("text.log:1") && told.contains("ingest mappings"), "{told}");
}

#[test]
fn an_order_alone_names_no_violation() {
    let folder = folder();
    let (_, told) = demi(folder.path(), "build --store store --system s --violation none --out other");
    assert!(told.contains("violation: none is given") && !told.contains("unnamed"), "{told}");
    let (_, told) = demi(folder.path(), "build --store store --system s --violation actors:a --out other");
    assert!(told.contains("violation: without a name, at a"), "{told}");
}

#[test]
fn a_foreign_file_in_an_execution_is_left_alone() {
    let folder = folder();
    let (status, told) = demi(folder.path(), "query exec --sql SELECT*FROM/**/messages");
    assert_eq!(status, Some(0), "{told}");
    let build = "build --store store --system s --violation none --out exec";
    let (status, told) = demi(folder.path(), build);
    assert_eq!(status, Some(0), "what a question made is no foreign file: {told}");
    let tables = folder.path().join("exec/tables");
    std::fs::create_dir_all(&tables).unwrap();
    std::fs::write(tables.join("notes.txt"), "mine").unwrap();
    let (status, told) = demi(folder.path(), build);
    assert!(status == Some(2) && told.contains("tables/notes.txt"), "{told}");
    assert_eq!(std::fs::read_to_string(tables.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn who_has_read_enough_is_no_error() {
    let folder = folder();
    let many: String = (1..30_000)
        .map(|seq| {
            format!(
                "{{\"actor\":\"a\",\"seq\":{seq},\"kind\":\"local\",\"payload\":\"{}\"}}\n",
                "x".repeat(60)
            )
        })
        .collect();
    std::fs::write(folder.path().join("many.jsonl"), many).unwrap();
    let (status, told) = demi(folder.path(), "ingest load --store many --system s many.jsonl");
    assert_eq!(status, Some(0), "{told}");
    for line in [
        "query many --sql SELECT*FROM/**/events --format csv",
        "query many --sql SELECT*FROM/**/events --format jsonl",
        "query many --sql SELECT*FROM/**/events --format parquet",
        "export many/orders/s --format json",
        "export many/orders/s --format shiviz",
        "ingest parse many.jsonl",
        "completions bash",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demi-lineage"));
        command.arg("-q").args(line.split_whitespace()).current_dir(folder.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 10];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && error.is_empty(), "{line}: {:?} {error}", output.status);
    }
}

#[test]
fn logs_without_variables_say_how_to_get_some() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("none.jsonl", "{\"actor\":\"a\",\"seq\":1,\"kind\":\"state\",\"state\":{}}\n");
    write("text.jsonl", "{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\",\"state\":\"busy\"}\n");
    for (store, log) in [("none", "none.jsonl"), ("text", "text.jsonl"), ("store", "log.jsonl")] {
        demi(folder.path(), &format!("ingest load --store {store} --system s {log}"));
        let (status, told) = demi(folder.path(), &format!("infer {store} --out found.toml"));
        assert!(status == Some(2) && told.contains("\"state\": {\"role\": \"Leader\""), "{store}: {told}");
        assert!(!folder.path().join("found.toml").exists());
    }
    write(
        "some.jsonl",
        "{\"actor\":\"a\",\"seq\":1,\"kind\":\"state\",\"state\":{\"x\":1}}\n{\"actor\":\"a\",\"seq\":2,\"kind\":\"state\",\"state\":{\"x\":2}}\n",
    );
    demi(folder.path(), "ingest load --store some --system s some.jsonl");
    let (status, told) = demi(folder.path(), "infer some --without x --out found.toml");
    assert!(status == Some(2) && told.contains("--variables and --without leave none"), "{told}");
    assert_eq!(demi(folder.path(), "infer some").0, Some(0));
}
