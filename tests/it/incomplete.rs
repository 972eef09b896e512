//! What is missing of the logs is said by `build` and `query`, and can be refused; `ingest status` and SQL show the quarantine.

use std::fs;
use std::process::{Command, Output};

const A: &str = r#"{"actor":"a","seq":1,"kind":"start"}
{"actor":"a","seq":4,"kind":"send","to":"b","type":"X","msg_id":"1"}
nonsense
more nonsense
"#;
/// Another process under the same name.
const AGAIN: &str = r#"{"actor":"a","seq":1,"kind":"start","payload":"other"}
"#;
const WHOLE: &str = r#"{"actor":"b","seq":1,"kind":"start"}
{"actor":"b","seq":2,"kind":"local","type":"tick"}
"#;

fn demi(dir: &tempfile::TempDir, line: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_demi-lineage")).args(line).current_dir(dir.path()).output().unwrap()
}

fn ends(dir: &tempfile::TempDir, status: i32, line: &[&str]) -> (String, String) {
    let output = demi(dir, line);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{line:?}: {out}{err}");
    (out, err)
}

fn store(logs: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in logs {
        fs::write(dir.path().join(name), text).unwrap();
        demi(&dir, &["ingest", "load", "--store", "store", "--system", "s", name]);
    }
    dir
}

#[test]
fn gaps_conflicts_and_quarantined_lines_are_said_and_can_be_refused() {
    let dir = store(&[("a.jsonl", A), ("again.jsonl", AGAIN)]);
    let build = ["build", "--store", "store", "--violation", "none", "--out", "exec"];
    let told = |said: &str| {
        for what in [
            "2 sequence numbers are missing (a: 2)",
            "1 record contradicts",
            "a.jsonl:3",
            "2 lines are in quarantine",
        ] {
            assert!(said.contains(what), "{what}: {said}");
        }
    };
    let (_, said) = ends(&dir, 2, &[&build[..], &["--refuse-incomplete"]].concat());
    told(&said);
    assert!(!dir.path().join("exec").exists());
    told(&ends(&dir, 0, &build).1);
    told(&ends(&dir, 0, &["query", "store", "past", "a/4"]).1);
    told(&ends(&dir, 2, &["query", "store", "past", "a/4", "--refuse-incomplete"]).1);
    // An execution knows its gaps, and nothing of a store.
    let (_, said) = ends(&dir, 0, &["query", "exec", "past", "a/4"]);
    assert!(said.contains("(a: 2)") && !said.contains("quarantine"), "{said}");
}

#[test]
fn complete_logs_are_neither_warned_of_nor_refused() {
    let dir = store(&[("b.jsonl", WHOLE)]);
    let build = ["build", "--store", "store", "--violation", "none", "--out", "exec", "--refuse-incomplete"];
    assert!(!ends(&dir, 0, &build).1.contains("warning"));
    ends(&dir, 0, &["query", "--refuse-incomplete", "store", "past", "b/2"]);
    assert_eq!(ends(&dir, 0, &["query", "exec", "past", "b/2"]).1, "");
    let (rows, _) =
        ends(&dir, 0, &["query", "store", "--sql", "SELECT * FROM quarantine", "--format", "csv"]);
    assert_eq!(rows, "source,offset,line,raw_length,code,reason,digest\n");
}

#[test]
fn status_and_sql_show_the_quarantine() {
    let dir = store(&[("a.jsonl", A), ("again.jsonl", AGAIN)]);
    let (status, _) = ends(&dir, 0, &["ingest", "status", "--store", "store"]);
    assert!(status.contains("s: 3 in quarantine"), "{status}");
    let line = |n: &str, code: &str| {
        status.lines().position(|l| l.trim_start().starts_with(&format!("{n}  {code}; first")))
    };
    assert!(line("2", "not_json").unwrap() < line("1", "conflict").unwrap(), "{status}");
    let json = ends(&dir, 0, &["ingest", "status", "--store", "store", "--json"]).0;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["quarantine"][0]["rows"], &json["completeness"][0]["missing"]), (&2.into(), &2.into()));
    let sql = "SELECT code, count(*) AS n, min(line) AS first FROM quarantine GROUP BY code ORDER BY n DESC";
    let (rows, _) = ends(&dir, 0, &["query", "store", "--sql", sql, "--format", "csv"]);
    assert!(rows.starts_with("code,n,first\nnot_json,2,3\nconflict,1,1\n"), "{rows}");
    // Bytes that are no text stand in no form's way.
    fs::write(dir.path().join("bytes.jsonl"), b"\xff\xfe\n").unwrap();
    demi(&dir, &["ingest", "load", "--store", "store", "--system", "s", "bytes.jsonl"]);
    for format in ["table", "csv", "jsonl"] {
        let (rows, _) =
            ends(&dir, 0, &["query", "store", "--sql", "SELECT * FROM quarantine", "--format", format]);
        assert!(rows.contains("bytes.jsonl"), "{format}: {rows}");
    }
}

#[test]
fn a_store_with_nothing_but_quarantined_lines_has_a_status() {
    let dir = store(&[("bad.jsonl", "nonsense\n")]);
    for line in [
        &["ingest", "status", "--store", "store"][..],
        &["ingest", "status", "--store", "store", "--system", "s"],
    ] {
        assert!(ends(&dir, 0, line).0.contains("s: 1 in quarantine"));
    }
}
