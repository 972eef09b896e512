//! What the program replaces on disk: only what it wrote itself, never what it reads, and nothing outside the folders that were
//! named, whatever systems and actors are called.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LOG: &str = concat!(
    r#"{"actor":"a","seq":1,"kind":"send","msg_id":"1","from":"a","to":"b"}"#,
    "\n",
    r#"{"actor":"b","seq":1,"kind":"receive","msg_id":"1","from":"a","to":"b"}"#,
    "\n",
);

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        fs::write(desk.at("a.jsonl"), LOG).unwrap();
        desk
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(args)
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, args: &[&str], words: &[&str]) {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{args:?}: '{word}' is not in: {text}");
        }
    }

    fn load(&self, system: &str) {
        self.ok(&["ingest", "load", "--store", "store", &format!("--system={system}"), "a.jsonl"]);
    }

    fn query(&self, system: &str) -> String {
        self.ok(&["query", "store", &format!("--system={system}"), "order", "a/1", "b/1"])
    }
}

/// Everything below a folder with its contents, but for what is below `without`.
fn below(folder: &Path, without: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(without) {
            continue;
        }
        match path.is_dir() {
            true => found.extend(below(&path, without)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn no_name_of_a_system_leads_out_of_the_store() {
    let desk = Desk::new();
    fs::create_dir(desk.at("victim")).unwrap();
    fs::write(desk.at("victim/summary.json"), "precious").unwrap();
    let outside = tempfile::tempdir().unwrap();
    let absolute = outside.path().join("x").display().to_string();
    let names = [
        "../../x",
        &absolute,
        "../../victim",
        "..",
        ".",
        "a",
        "a/b",
        "A",
        "-x",
        "c:\\d",
        "\u{202e}cba",
        "é ü",
    ];
    for name in names {
        desk.load(name);
    }
    let before = below(desk.0.path(), "store");
    // Twice: the second time all are known, and none took another's place.
    for round in 0..2 {
        for name in names {
            assert_eq!(desk.query(name), "a/1 happens before b/1\n", "{name}");
        }
        let orders = fs::read_dir(desk.at("store/orders")).unwrap().count();
        assert_eq!(orders, names.len(), "round {round}: one folder for each");
    }
    assert_eq!(below(desk.0.path(), "store"), before, "something outside of the store changed");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(
        desk.ok(&["-q", "query", "store", "--system=a", "stats"]).lines().next(),
        Some("2 events of 2 actors")
    );
}

#[test]
fn what_an_older_version_built_in_a_store_stays() {
    let desk = Desk::new();
    desk.load("s");
    fs::create_dir_all(desk.at("store/lineage/s")).unwrap();
    fs::write(desk.at("store/lineage/s/mine"), "precious").unwrap();
    assert_eq!(desk.query("s"), "a/1 happens before b/1\n");
    assert_eq!(fs::read_to_string(desk.at("store/lineage/s/mine")).unwrap(), "precious");
}

fn scenario(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(format!("replay/scenarios/{name}.toml")).display().to_string()
}

#[test]
fn minimize_replaces_only_its_own_results() {
    let desk = Desk::new();
    let scenario = scenario("raft-45");
    desk.ok(&["fuzz", "--scenario", &scenario, "--seed", "1", "--out", "found"]);
    desk.ok(&["ingest", "load", "--store", "store", "--system", "s", "found/logs"]);
    desk.ok(&["build", "--store", "store", "--system", "s", "--out", "exec"]);
    let with = |input: &str, out: &str| -> Vec<String> {
        ["minimize", input, "--scenario", &scenario, "--budget", "20r", "--out", out]
            .map(str::to_owned)
            .to_vec()
    };
    let refused = |line: &[String], words: &[&str]| {
        let before = below(desk.0.path(), "-");
        desk.refused(&line.iter().map(String::as_str).collect::<Vec<_>>(), words);
        assert!(below(desk.0.path(), "-") == before, "{line:?} changed something");
    };
    let ok = |line: &[String]| desk.ok(&line.iter().map(String::as_str).collect::<Vec<_>>());

    // Somebody else's folder, which happens to hold a summary.
    fs::create_dir(desk.at("foreign")).unwrap();
    fs::write(desk.at("foreign/summary.json"), "{}").unwrap();
    fs::write(desk.at("foreign/thesis.tex"), "precious").unwrap();
    refused(&with("exec", "foreign"), &["foreign", "did not write", "left alone"]);
    // Its own input, and a folder that its input is in.
    refused(&with("exec", "exec"), &["exec", "is being read"]);
    refused(&with("exec", "."), &["is being read"]);
    // What other commands wrote.
    refused(&with("exec", "found"), &["holds a run found by fuzz"]);

    ok(&with("exec", "min"));
    ok(&with("exec", "min"));
    refused(&with("min/schedule.jsonl", "min"), &["min/schedule.jsonl in it is being read"]);
    let ledger = [with("exec", "new"), vec!["--ledger".into(), "new/ledger".into()]].concat();
    refused(&ledger, &["new/ledger in it is being read"]);
    fs::write(desk.at("min/notes.txt"), "precious").unwrap();
    refused(&with("exec", "min"), &["a file that this program did not write: 'notes.txt'"]);
    fs::rename(desk.at("min/notes.txt"), desk.at("notes.txt")).unwrap();
    ok(&with("exec", "min"));
}

#[test]
fn build_fuzz_and_demo_leave_foreign_files_alone() {
    let desk = Desk::new();
    let scenario = scenario("raft-45");
    let fuzz = ["fuzz", "--scenario", &scenario, "--seed", "1", "--out", "found"];
    desk.ok(&fuzz);
    desk.ok(&fuzz);
    fs::write(desk.at("found/logs/mine"), "precious").unwrap();
    desk.refused(&fuzz, &["'logs/mine'"]);
    fs::remove_file(desk.at("found/logs/mine")).unwrap();
    desk.ok(&["ingest", "load", "--store", "store", "--system", "s", "found/logs"]);
    let build = ["build", "--store", "store", "--system", "s", "--out", "exec"];
    desk.ok(&build);
    desk.ok(&build);
    fs::create_dir(desk.at("exec/index/deep")).unwrap();
    fs::write(desk.at("exec/index/deep/mine"), "precious").unwrap();
    desk.refused(&build, &["'index/deep/mine'"]);
    desk.refused(&["build", "--store", "store", "--system", "s", "--out", "store"], &["is being read"]);
    for path in ["found/logs/mine", "exec/index/deep/mine"] {
        let kept = fs::read_to_string(desk.at(path)).ok();
        assert_eq!(kept.as_deref(), path.starts_with("exec").then_some("precious"), "{path}");
    }
    fs::create_dir(desk.at("demo")).unwrap();
    fs::write(desk.at("demo/summary.json"), "{}\n").unwrap();
    desk.refused(&["demo", "--out", "demo"], &["'summary.json'"]);
    assert!(
        fs::read_dir(desk.0.path())
            .unwrap()
            .all(|e| { !e.unwrap().file_name().to_string_lossy().starts_with(".demi-") }),
        "nothing is left beside"
    );
}

#[test]
fn logs_of_fuzzed_actors_are_read_again_under_their_names() {
    let desk = Desk::new();
    desk.ok(&["fuzz", "--scenario", &scenario("raft-45"), "--seed", "1", "--out", "found"]);
    for entry in fs::read_dir(desk.at("found/logs")).unwrap() {
        let path = entry.unwrap().path();
        let actor = demi_common::path_name::name_of(path.file_stem().unwrap().to_str().unwrap()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(first["actor"], serde_json::Value::from(actor));
    }
}
