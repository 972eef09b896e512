//! Logs of other formats through the binary: parse, load, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new() -> Case {
        Case { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::cargo_bin("demi-lineage").unwrap().current_dir(&self.dir).args(args).output().unwrap()
    }

    fn load(&self, system: &str, more: &[&str]) -> Output {
        let store = self.path("store");
        let mut args = vec!["-q", "ingest", "load", "--store", &store, "--system", system, "--json"];
        args.extend(more);
        self.run(&args)
    }

    fn loaded(&self, system: &str, more: &[&str]) -> Value {
        let output = self.load(system, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ingest/formats/tests/formats").join(name)
}

const CHAT: &str = "a {\"a\":1}\nhello\nb {\"b\":1, \"a\":1}\nheard it\n";

#[test]
fn executions_become_systems_and_a_second_load_adds_nothing() {
    let case = Case::new();
    let file = sample("shiviz.log").display().to_string();
    let summary = case.loaded("shop", &["--mapping", "shiviz", &file]);
    assert_eq!((&summary["added"], &summary["quarantined"]), (&Value::from(4), &Value::from(1)));
    assert_eq!(summary["quarantine_reasons"]["no_match"], 1);
    let executions = summary["executions"].as_array().unwrap();
    let names: Vec<_> = executions.iter().map(|e| e["system"].as_str().unwrap()).collect();
    assert_eq!(names, ["shop/first run", "shop/second run"]);
    let again = case.loaded("shop", &["--mapping", "shiviz", &file]);
    assert_eq!((&again["added"], &again["duplicates"]), (&Value::from(0), &Value::from(4)));
    assert_eq!(again["already_quarantined"], 1);
    let (store, exec) = (case.path("store"), case.path("exec"));
    let build = ["build", "--store", &store, "--system", "shop/first run", "--out", &exec, "--json"];
    let output = case.run(&[&build[..], &["--violation", "event:shop/2"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let built: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&built["events"], &built["clock_edges"]), (&Value::from(3), &Value::from(2)));
}

#[test]
fn a_mapping_of_ones_own_and_packed_files() {
    let case = Case::new();
    let mapping = case.file(
        "mine.toml",
        r#"
name = "mine"
description = "a format of my own"
[input]
container = "text"
patterns = ['^(?<who>\w+) -> (?<to>\w+): (?<what>.*)$', '^(?<who>\w+) <- (?<from>\w+): (?<what>.*)$']
[event]
actor = "{who}"
payload = "{what}"
[[rule]]
when = { to = "." }
emit = [{ kind = "send", to = "{to}", from = "{who}" }]
[[rule]]
when = { from = "." }
emit = [{ kind = "receive", from = "{from}", to = "{who}" }]
"#,
    );
    let packed = case.path("log.gz");
    let mut gz = flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), Default::default());
    gz.write_all(b"a -> b: hi\nb <- a: hi\n").unwrap();
    gz.finish().unwrap();
    let summary = case.loaded("s", &["--mapping", &mapping, &packed]);
    assert_eq!(summary["added"], 2);
    let (store, exec) = (case.path("store"), case.path("exec"));
    let output = case.run(&[
        "build",
        "--store",
        &store,
        "--system",
        "s",
        "--out",
        &exec,
        "--violation",
        "event:b/1",
        "--json",
    ]);
    let built: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(built["matched"], 1, "{built}");

    let broken = case.file("broken.toml", "name = 'x'\ndescription = ''\n[input]\ncontainr = 'text'\n");
    let output = case.load("s", &["--mapping", &broken, &packed]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("broken.toml:4:1: unknown field `containr`") && text.contains("`container`?"),
        "{text}"
    );
}

#[test]
fn clocks_that_contradict_are_diagnosed_with_file_and_line_and_not_answered() {
    let case = Case::new();
    let log = case.file("bad.log", "a {\"a\":1}\nhello\nb {\"a\":1}\nheard it\n");
    let mut args = vec!["ingest", "load", "--system", "s", "--mapping", "shiviz", "--store"];
    let store = case.path("store");
    args.extend([store.as_str(), &log]);
    let output = case.run(&args);
    assert!(output.status.success());
    let text = stderr(&output);
    assert!(text.contains("bad.log:3: the clock of 'b' has no entry of its own host"), "{text}");
    let exec = case.path("exec");
    let output =
        case.run(&["build", "--store", &store, "--system", "s", "--violation", "event:a/1", "--out", &exec]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("bad.log:3: event b/1: its clock has no entry of its own actor"), "{text}");
    assert!(!Path::new(&exec).exists(), "nothing half-written");
}

#[test]
fn a_parser_may_be_given() {
    let case = Case::new();
    let log = case.file("x.log", "one|a|{\"a\":1}\n----\ntwo|b|{\"b\":1}\n");
    let args = [
        "--mapping",
        "shiviz",
        "--parser",
        r"(?<event>\w+)\|(?<host>\w+)\|(?<clock>{.*})",
        "--delimiter",
        "^-+$",
    ];
    let summary = case.loaded("s", &[&args[..], &[log.as_str()]].concat());
    assert_eq!(summary["executions"].as_array().unwrap().len(), 2, "{summary}");
    let bad = case.load("s", &["--mapping", "shiviz", "--parser", "(?<event>", &log]);
    assert!(stderr(&bad).contains("command line: parser:"), "{}", stderr(&bad));
    let bad = case.load("s", &["--mapping", "elle", "--parser", "(?<event>.)", &log]);
    assert!(stderr(&bad).contains("not for text logs"), "{}", stderr(&bad));
    let bad = case.load("s", &["--mapping", "shivz", &log]);
    assert!(stderr(&bad).contains("did you mean 'shiviz'?"), "{}", stderr(&bad));
}

#[test]
fn a_dry_run_shows_every_line_and_stores_nothing() {
    let case = Case::new();
    let log = case.file("chat.log", &format!("{CHAT}half\n"));
    let output = case.run(&["ingest", "parse", &log, "--mapping", "shiviz"]);
    assert_eq!(output.status.code(), Some(1), "a line was rejected");
    let text = String::from_utf8_lossy(&output.stdout).replace(&log, "chat.log");
    insta::assert_snapshot!("dry_run", text);
    assert!(stderr(&output).contains("shiviz: 2 events, 0 skipped, 1 rejected"));
    let output = case.run(&["ingest", "parse", &log, "--mapping", "shiviz", "--json"]);
    let lines: Vec<Value> = output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!(
        (lines.len(), &lines[0]["became"], &lines[2]["code"]),
        (3, &Value::from("events"), &Value::from("no_match"))
    );
    assert_eq!(lines[1]["events"][0]["vector_clock"]["a"], 1);
    assert_eq!(std::fs::read_dir(case.dir.path()).unwrap().count(), 1, "only the log is there");
    // Where nothing becomes an event the reason is guessed.
    let output = case.run(&["ingest", "parse", &log]);
    assert!(
        stderr(&output).contains("likely reason: the file does not begin with JSON"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn mappings_are_listed_and_printed() {
    let case = Case::new();
    let output = case.run(&["ingest", "mappings", "--json"]);
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(list.as_array().unwrap().iter().any(|m| m["name"] == "akka"));
    let output = case.run(&["ingest", "mappings", "akka"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("name = \"akka\""), "{text}");
    // What is printed is a mapping, to be changed and used.
    let mine = case.file("mine.toml", &text);
    let log = sample("akka.log").display().to_string();
    assert_eq!(case.loaded("s", &["--mapping", &mine, &log])["added"], 11);
}
