//! `demi-lineage ingest load` as a person or a script uses it.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use demi_schemas::summary::LoadSummary;
use demi_store::Store;
use predicates::prelude::*;
use predicates::str::contains;

struct Case {
    dir: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Case { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn load(&self, system: &str, paths: &[&Path]) -> Command {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args(["ingest", "load", "--store"]).arg(self.path("store")).args(["--system", system]);
        command.args(paths);
        command
    }

    fn summary(&self, system: &str, paths: &[&Path]) -> LoadSummary {
        let output = self.load(system, paths).arg("--json").assert().success();
        serde_json::from_slice(&output.get_output().stdout).unwrap()
    }
}

fn log(actor: &str, from: u64, to: u64) -> String {
    (from..=to).map(|n| format!("{{\"actor\":\"{actor}\",\"seq\":{n},\"kind\":\"start\"}}\n")).collect()
}

#[test]
fn a_folder_is_loaded_and_loaded_again() {
    let case = Case::new();
    case.write("logs/a.jsonl", log("a", 1, 10));
    case.write("logs/b.jsonl", log("b", 3, 6));
    let logs = case.path("logs");
    let expected = "\
actor  incarnation  first  last  events  missing  duplicates  conflicts  gaps
a                0      1    10      10        0           0          0
b                0      3     6       4        2           0          0  1-2
";
    case.load("s", &[&logs])
        .assert()
        .success()
        .stdout(contains("s: 14 records added from 14 lines in 2 sources").and(contains(expected)))
        .stderr("");
    let again = case.summary("s", &[&logs]);
    assert_eq!((again.added, again.duplicates, again.lines, again.sources), (0, 14, 14, 2));
    assert_eq!(again.actors[1].gaps, [(1, 2)]);
    let store = Store::open(case.path("store")).unwrap();
    assert_eq!((store.version(), store.systems().unwrap()), (1, vec!["s".to_owned()]));
}

#[test]
fn standard_input_patterns_and_packed_files() {
    let case = Case::new();
    case.write("a.jsonl.zst", zstd::encode_all(log("a", 1, 5).as_bytes(), 3).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(log("b", 1, 5).as_bytes()).unwrap();
    case.write("b.jsonl.gz", gzip.finish().unwrap());
    let pattern = case.path("*.jsonl.*");
    let output =
        case.load("s", &[&pattern, Path::new("-")]).arg("--json").write_stdin(log("c", 1, 5)).assert();
    let summary: LoadSummary = serde_json::from_slice(&output.success().get_output().stdout).unwrap();
    assert_eq!((summary.added, summary.sources, summary.actors.len()), (15, 3, 3));
}

#[test]
fn quarantine_is_noted_and_is_no_failure() {
    let case = Case::new();
    let path =
        case.write("a.jsonl", log("a", 1, 2) + "nonsense\n{\"actor\":\"a\",\"seq\":-1,\"kind\":\"start\"}\n");
    case.load("s", &[&path])
        .assert()
        .success()
        .stdout(contains("2 put in quarantine"))
        .stderr(contains("2 lines put in quarantine (not_json: 1, rule: 1)").and(contains("quarantine")));
    case.load("s", &[&path]).assert().success().stdout(contains("2 there already")).stderr("");
}

#[test]
fn a_long_line_can_be_allowed_or_not() {
    let case = Case::new();
    let long = format!("{{\"actor\":\"a\",\"seq\":1,\"kind\":\"start\",\"x\":\"{}\"}}\n", "y".repeat(5000));
    let path = case.write("a.jsonl", long + &log("a", 2, 2));
    let output = case.load("s", &[&path]).args(["--json", "--max-line-bytes", "1000"]).assert().success();
    let summary: LoadSummary = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((summary.added, summary.quarantine_reasons["too_long"]), (1, 1));
    assert_eq!(case.summary("s", &[&path]).added, 1);
}

#[test]
fn a_cut_off_file_is_a_failure_after_everything_else_was_loaded() {
    let case = Case::new();
    let packed = zstd::encode_all(log("a", 1, 100_000).as_bytes(), 3).unwrap();
    let cut = case.write("a.jsonl.zst", &packed[..packed.len() / 2]);
    let whole = case.write("b.jsonl", log("b", 1, 7));
    let output = case.load("s", &[&cut, &whole]).arg("--json").assert().code(2);
    let output = output.stderr(contains("a.jsonl.zst: the packed data is damaged or cut off after "));
    let summary: LoadSummary = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!((summary.sources, summary.quarantine_reasons["truncated"]), (2, 1));
    assert_eq!(summary.actors[1].events, 7);
}

#[test]
fn mistakes_are_named_and_make_nothing() {
    let case = Case::new();
    fs::create_dir(case.path("empty")).unwrap();
    let good = case.write("a.jsonl", log("a", 1, 1));
    let zip = case.write("logs/a.log", b"PK\x03\x04 and so on");
    for (system, path, expected) in [
        ("s", case.path("nope.jsonl"), "nope.jsonl: no such file or folder"),
        ("s", case.path("empty"), "empty: no log files here"),
        ("s", case.path("*.ndjson"), "*.ndjson: no log files here"),
        ("s", zip, "zip archive"),
        ("", good.clone(), "system name"),
        ("a\nb", good.clone(), "control characters"),
    ] {
        case.load(system, &[&good, &path]).assert().code(2).stdout("").stderr(contains(expected));
    }
    case.load("s", &[]).assert().code(2).stderr(contains("<PATH>"));
    assert!(!case.path("store").exists());
}

#[test]
fn a_folder_that_is_no_store_and_one_of_another_version() {
    let case = Case::new();
    let good = case.write("a.jsonl", log("a", 1, 1));
    case.write("store", "a file");
    case.load("s", &[&good]).assert().code(2).stderr(contains("is a file, and a store is a folder"));
    fs::remove_file(case.path("store")).unwrap();
    case.summary("s", &[&good]);
    let first = case.path("store/events/_delta_log/00000000000000000000.json");
    // Nobody is to mistake it for damage: without its digest it is a commit of another program.
    let text = fs::read_to_string(&first).unwrap().replace("demi-tables/3", "demi-tables/0");
    let text = text.replace("demiSum", "otherSum");
    fs::write(&first, text).unwrap();
    case.load("s", &[&good]).assert().code(2).stderr(contains("the tables are 'demi-tables/0'"));
}
