//! Bad input of every kind through the binary: a clear error or a quarantined record, never a panic, nothing lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder to work in, with the commands run there.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(args)
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// Runs a command that must fail, with these words in what it says.
    fn refused(&self, args: &[&str], words: &[&str]) {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{args:?}: '{word}' is not in: {text}");
        }
        assert!(!text.contains("panicked"), "{text}");
    }

    /// Loads a file that must load, and gives the summary.
    fn load(&self, name: &str) -> Value {
        let output = self.run(&["ingest", "load", "--store", "store", "--system", "s", name, "--json"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

fn start(actor: &str, seq: i64) -> String {
    format!("{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"start\"}}\n")
}

fn message(kind: &str, actor: &str, seq: u32, id: u32, from: &str, to: &str) -> String {
    format!(
        "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"{kind}\",\"msg_id\":\"{id}\",\"from\":\"{from}\",\"to\":\"{to}\"}}\n"
    )
}

fn quarantined(summary: &Value, rule: &str) -> u64 {
    summary["quarantine_reasons"][rule].as_u64().unwrap_or_else(|| panic!("no {rule} in {summary}"))
}

#[test]
fn an_empty_folder_is_named() {
    let desk = Desk::new();
    std::fs::create_dir(desk.0.path().join("logs")).unwrap();
    desk.refused(&["ingest", "load", "--store", "store", "--system", "s", "logs"], &["logs", "no log files"]);
    assert!(!desk.0.path().join("store").exists(), "nothing is made");
}

#[test]
fn a_truncated_archive_is_told_and_what_came_before_is_loaded() {
    let desk = Desk::new();
    let whole =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo/logs.jsonl.zst")).unwrap();
    desk.file("cut.jsonl.zst", &whole[..whole.len() / 2]);
    let load = ["ingest", "load", "--store", "store", "--system", "s", "cut.jsonl.zst"];
    desk.refused(&load, &["cut.jsonl.zst", "cut off", "what came before is loaded"]);
    let build = ["build", "--store", "store", "--system", "s", "--out", "exec"];
    // The members that the violation names are in the part that is gone.
    desk.refused(&build, &["no log of actor 'raft-member-3'"]);
    let output = desk.run(&[&build[..], &["--violation", "actors:raft-member-1", "--json"]].concat());
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["events"].as_u64().unwrap() > 100, "{summary}");
}

#[test]
fn lines_that_are_no_records_go_to_quarantine() {
    let desk = Desk::new();
    let long = format!(
        "{{\"actor\":\"a\",\"seq\":2,\"kind\":\"send\",\"payload\":\"{}\"}}\n",
        "x".repeat(100_000_000)
    );
    desk.file("long.jsonl", [start("a", 1), long, start("a", 3)].concat());
    let summary = desk.load("long.jsonl");
    assert_eq!((quarantined(&summary, "too_long"), &summary["added"]), (1, &Value::from(2)), "{summary}");

    let utf8 = b"{\"actor\":\"\xff\xfe\",\"seq\":2,\"kind\":\"start\"}\n";
    desk.file("utf8.jsonl", [start("b", 1).as_bytes(), utf8].concat());
    assert_eq!(quarantined(&desk.load("utf8.jsonl"), "not_utf8"), 1);

    desk.file("negative.jsonl", start("c", 1) + &start("c", -3));
    let summary = desk.load("negative.jsonl");
    assert_eq!((quarantined(&summary, "rule"), &summary["added"]), (1, &Value::from(1)), "{summary}");
}

#[test]
fn violations_that_name_nobody_or_a_stranger_are_refused() {
    let desk = Desk::new();
    let violation = |affected: &str| {
        format!(
            "{{\"actor\":\"_monitor\",\"seq\":1,\"kind\":\"violation\",\"fields\":{{\"fingerprints\":[\"X\"],\"affected\":[{affected}]}}}}\n"
        )
    };
    desk.file("nobody.jsonl", start("alice", 1) + &violation(""));
    desk.load("nobody.jsonl");
    let build = ["build", "--store", "store", "--system", "s", "--out", "exec"];
    desk.refused(&build, &["_monitor/1", "names no affected actor", "alice"]);
    desk.refused(
        &[&build[..], &["--violation", "actors:alicf"]].concat(),
        &["alicf", "did you mean 'alice'"],
    );
    desk.refused(&[&build[..], &["--violation", "event:alice/9"]].concat(), &["alice/9", "alice/1"]);
    desk.refused(&["build", "--store", "store", "--system", "t", "--out", "exec"], &["'t'", "'s'"]);
    desk.refused(&["build", "--store", "none", "--system", "s", "--out", "exec"], &["none"]);
    assert!(!desk.0.path().join("exec").exists(), "nothing is made");
}

#[test]
fn a_cyclic_log_is_reported_with_the_events_on_the_cycle() {
    let desk = Desk::new();
    let log = [
        message("receive", "a", 1, 1, "b", "a"),
        message("send", "a", 2, 2, "a", "b"),
        message("receive", "b", 1, 2, "a", "b"),
        message("send", "b", 2, 1, "b", "a"),
    ];
    desk.file("cyclic.jsonl", log.concat());
    desk.load("cyclic.jsonl");
    let output =
        desk.run(&["build", "--store", "store", "--system", "s", "--out", "exec", "--violation", "actors:a"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("cycle: a/2 -> b/1, b/2 -> a/1"), "{text}");
}

#[test]
fn scenarios_and_schedules_are_explained() {
    let desk = Desk::new();
    let scenario = "model = \"akka-raft\"\nmembers = 4\nnetwork = \"fifo\"\n";
    desk.file("good.toml", scenario);
    desk.file("key.toml", scenario.replace("network", "netwrok"));
    desk.file("switch.toml", format!("{scenario}[switches]\nraft45_duplicate_vote = true\n"));
    desk.file("model.toml", scenario.replace("akka-raft", "akka-raff"));
    desk.file("leap.jsonl", "{\"kind\":\"leap\",\"to\":\"a\"}\n");
    desk.file("timer.jsonl", "{\"kind\":\"timer\",\"to\":\"raft-member-1\"}\n");
    desk.file(
        "stranger.jsonl",
        "{\"kind\":\"deliver\",\"from\":\"x\",\"to\":\"y\",\"type\":\"T\",\"payload\":\"P\"}\n",
    );
    let replay = |file: &str, scenario: &str, words: &[&str]| {
        desk.refused(&["replay", file, "--scenario", scenario], words);
    };
    replay("timer.jsonl", "key.toml", &["key.toml", "line 3", "netwrok", "did you mean 'network'"]);
    replay("timer.jsonl", "switch.toml", &["switch.toml", "did you mean 'raft45_duplicate_votes'"]);
    replay("timer.jsonl", "model.toml", &["model.toml", "did you mean 'akka-raft'"]);
    replay("leap.jsonl", "good.toml", &["leap.jsonl", "line 1", "leap"]);
    replay("none.jsonl", "good.toml", &["none.jsonl"]);
    let minimize = ["minimize", "timer.jsonl", "--scenario", "good.toml", "--out", "min"];
    desk.refused(&minimize, &["does not end in the violation"]);
    // An unknown actor in a schedule is a divergence, with what was expected and what there is.
    let output = desk.run(&["replay", "stranger.jsonl", "--scenario", "good.toml", "--json"]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(summary["first_divergence"]["expected"], "x -> y: P", "{summary}");
}
