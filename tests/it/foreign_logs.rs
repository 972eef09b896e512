//! Logs as strangers have them: other encodings, halves of a log, files that are something else than was said.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed expectation is a failed test")]

use std::fs;
use std::path::Path;
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

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args(args).env("DEMI_STORE", self.dir.path().join("store")).output().unwrap()
    }

    fn load(&self, system: &str, more: &[&str]) -> (Option<i32>, Value, String) {
        let output = self.run(&[&["ingest", "load", "--json", "--system", system], more].concat());
        let summary = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), summary, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn build(&self, system: &str) -> Output {
        let out = self.dir.path().join("exec").display().to_string();
        self.run(&["build", "--system", system, "--out", &out, "--violation", "none", "--json"])
    }
}

#[test]
fn many_runs_of_petersons_election_in_one_file_are_built() {
    let case = Case::new();
    let sample =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("ingest/formats/tests/formats/peterson-merged.txt");
    let (status, summary, error) = case
        .load("pet", &["--mapping", "examples/mappings/peterson-merged.toml", &sample.display().to_string()]);
    assert_eq!((status, &summary["added"]), (Some(0), &Value::from(7)), "{error}");
    let built = case.build("pet/1");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let built: Value = serde_json::from_slice(&built.stdout).unwrap();
    assert_eq!((&built["events"], &built["deliveries"]), (&Value::from(6), &Value::from(2)));
}

#[test]
fn actors_counted_from_another_number_than_clocks_are_hinted_at() {
    let case = Case::new();
    let log = case.file("p.txt", "0 1,0 a\n1 1,1 b\n");
    let (status, _, error) = case.load("p", &["--mapping", "examples/mappings/peterson.toml", &log]);
    assert_eq!(status, Some(0));
    assert!(error.contains("set 'first' in the mapping's [clock]"), "{error}");
    let built = case.build("p");
    let error = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success() && error.contains("set 'first'"), "{error}");
}

#[test]
fn the_second_half_of_a_log_without_sequence_numbers_is_refused() {
    let case = Case::new();
    let line = |n: u32| format!("actor=a{} x={n}\n", n % 2);
    let first = case.file("1.log", (0..10).map(line).collect::<String>());
    let second = case.file("2.log", (10..20).map(line).collect::<String>());
    let load = |files: &[&str]| case.load("s", &[&["--mapping", "logfmt"], files].concat());
    assert_eq!(load(&[&first]).1["added"], 10);
    let (status, _, error) = load(&[&second]);
    assert_eq!(status, Some(2));
    assert!(error.contains("2.log:1: the log tells no sequence numbers"), "{error}");
    assert_eq!(load(&[&first]).1["duplicates"], 10, "the same half again adds nothing");
    let (status, summary, _) = load(&[&first, &second]);
    assert_eq!((status, &summary["added"], &summary["duplicates"]), (Some(0), &10.into(), &10.into()));
}

#[test]
fn a_load_that_takes_nothing_fails_with_the_likely_reason() {
    let case = Case::new();
    let why = |mapping: &[&str], bytes: &[u8], expected: &str| {
        let log = case.file("x.log", bytes);
        let (status, _, error) = case.load("s", &[mapping, &[log.as_str()]].concat());
        assert_eq!(status, Some(1), "{error}");
        assert!(error.contains("nothing was loaded") && error.contains(expected), "{error}");
    };
    why(&[], b"{\n \"actor\": \"a\",\n \"seq\": 1\n}\n", "pretty-printed");
    why(&[], b"{\"resourceSpans\":[]}\n", "--mapping otlp");
    why(&["--mapping", "json"], b"{\"actor\":\"a\"}{\"actor\":\"b\"}\n", "several JSON values");
    let utf16: Vec<u8> = "\u{feff}actor=a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    why(&["--mapping", "logfmt"], &utf16, "--encoding utf-16");
    let empty = case.file("empty.log", "");
    assert_eq!(case.load("s", &[&empty]).0, Some(0), "nothing was there to take");
}

#[test]
fn text_of_other_encodings_is_read_and_a_bad_byte_is_named() {
    let case = Case::new();
    let log = case.file("w.log", b"actor=a msg=caf\xe9\nactor=a msg=b\n");
    let (_, summary, _) = case.load("plain", &["--mapping", "logfmt", &log]);
    assert_eq!((&summary["added"], &summary["quarantined"]), (&1.into(), &1.into()));
    let parsed = case.run(&["ingest", "parse", "--mapping", "logfmt", &log]);
    assert!(String::from_utf8_lossy(&parsed.stdout).contains("byte 16 is 0xE9"));
    let parsed = case.run(&["ingest", "parse", "--mapping", "logfmt", "--encoding", "windows-1252", &log]);
    assert!(String::from_utf8_lossy(&parsed.stdout).contains("a/1 local payload=café"));
    let utf16: Vec<u8> = "\u{feff}actor=ü x=1\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let log = case.file("u.log", utf16);
    let (_, summary, _) = case.load("wide", &["--mapping", "logfmt", "--encoding", "utf-16", &log]);
    assert_eq!(summary["actors"][0]["actor"], "ü");
    let native = case.file("n.jsonl", b"{\"actor\":\"a\xff\",\"seq\":1,\"kind\":\"start\"}\n");
    assert_eq!(case.load("native", &["--encoding", "lossy", &native]).1["added"], 1);
}

#[test]
fn a_record_of_two_lines_with_a_bad_byte_is_rejected_whole() {
    let case = Case::new();
    let log = case.file("s.log", b"alice {\"alice\":1}\ncaf\xe9\nbob {\"bob\":1}\nok\n");
    let parsed = case.run(&["ingest", "parse", "--mapping", "shiviz", &log]);
    let text = String::from_utf8_lossy(&parsed.stdout);
    assert!(text.contains("s.log:1-2: REJECTED (not_utf8)") && !text.contains("alice/1"), "{text}");
    let parsed = case.run(&["ingest", "parse", "--mapping", "shiviz", "--encoding", "lossy", &log]);
    assert!(String::from_utf8_lossy(&parsed.stdout).contains("payload=caf\u{fffd}"));
}

#[test]
fn clocks_inside_quoted_json_are_read() {
    let case = Case::new();
    let log = case.file("q.log", r#"{"e":"x","vc":"{\"n0\":1,\"n1\":2}","node":"n0"}"#);
    let parser = r#""e":"(?<event>.*?)","vc":"(?<clock>\{.*?\})","node":"(?<host>.*?)""#;
    let parsed = case.run(&["ingest", "parse", "--mapping", "shiviz", "--parser", parser, &log]);
    let text = String::from_utf8_lossy(&parsed.stdout);
    assert!(text.contains(r#"n0/1 local type=x payload=x clock={"n0":1,"n1":2}"#), "{text}");
}

/// Logs of pods as containerd writes them, one line of them cut: the pod is the actor, and where the wrapper is not named, it is hinted at.
#[test]
fn logs_of_pods_are_taken_out_of_their_wrapper() {
    let case = Case::new();
    let pods = case.dir.path().join("pods");
    let pod = |name: &str, lines: &[&str]| {
        let uid = "b0c9e9b4-5d3a-4f43-8f0e-3f2b6f1c2d3e";
        let folder = pods.join(format!("prod_{name}_{uid}")).join("server");
        fs::create_dir_all(&folder).unwrap();
        let text: String = lines
            .iter()
            .enumerate()
            .map(|(at, line)| format!("2024-05-01T10:00:0{at}.5Z stdout {line}\n"))
            .collect();
        fs::write(folder.join("0.log"), text).unwrap();
    };
    pod("raft-0", &[r#"F {"service":"raft","kind":"send","to":"raft-1","msg_id":"7"}"#]);
    pod(
        "raft-1",
        &[
            r#"P {"service":"raft","kind":"receive","#,
            r#"F "from":"raft-0","msg_id":"7"}"#,
            r#"F {"service":"raft","msg":"done"}"#,
        ],
    );
    let logs = pods.display().to_string();
    let out = case.dir.path().join("pods-exec").display().to_string();
    let build = |more: &[&str]| {
        case.run(
            &[&["build", &logs, "--mapping", "json", "--violation", "none", "--out", &out, "--json"], more]
                .concat(),
        )
    };
    let bare = build(&[]);
    let error = String::from_utf8_lossy(&bare.stderr).into_owned();
    assert!(!bare.status.success() && error.contains("say so with --wrapper cri"), "{error}");
    let built = build(&["--wrapper", "cri"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let built: Value = serde_json::from_slice(&built.stdout).unwrap();
    assert_eq!((&built["events"], &built["matched"]), (&Value::from(3), &Value::from(1)), "{built}");
    let order = case.run(&["query", &out, "order", "raft-0/1", "raft-1/2"]);
    assert!(String::from_utf8_lossy(&order.stdout).contains("raft-0/1 happens before raft-1/2"));
    let wrong = case.run(&["ingest", "parse", &logs, "--mapping", "json", "--wrapper", "k8s"]);
    assert!(
        String::from_utf8_lossy(&wrong.stderr)
            .contains("known are cri, docker, compose, kubectl, journal and syslog")
    );
}
