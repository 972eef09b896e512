//! `fuzz` of an own model: how long a run must be, and what comes after it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program `examples/hostile.rs`, which is built with these tests.
fn program() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    folder.join("examples").join(format!("hostile{}", std::env::consts::EXE_SUFFIX))
}

fn fuzz(folder: &Path, more: &[&str]) -> Output {
    let scenario = folder.join("scenario.toml");
    std::fs::write(&scenario, "model = \"hostile\"\nnetwork = \"fifo\"\nmembers = 2\n").unwrap();
    Command::new(program())
        .args(["fuzz", "--seed", "1", "--runs", "200", "--scenario"])
        .arg(scenario)
        .arg("--out")
        .arg(folder.join("found"))
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn deliveries(folder: &Path) -> u64 {
    let summary = std::fs::read_to_string(folder.join("found/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    summary["deliveries"].as_u64().unwrap()
}

#[test]
fn what_was_found_is_minimized_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = fuzz(folder.path(), &["--minimize", "min", "--budget", "2000r"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let result = std::fs::read_to_string(folder.path().join("min/schedule.jsonl")).unwrap();
    let found = std::fs::read_to_string(folder.path().join("found/schedule.jsonl")).unwrap();
    assert!(result.lines().count() < found.lines().count(), "{result}");
}

#[test]
fn the_folder_of_a_run_is_minimized_and_replayed_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(fuzz(folder.path(), &[]).status.code(), Some(0));
    for line in [
        "minimize found --scenario found/scenario.toml --out min --budget 500r",
        "replay min --scenario min/scenario.toml",
    ] {
        let output =
            Command::new(program()).args(line.split(' ')).current_dir(folder.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {told}");
    }
}

#[test]
fn who_expects_no_violation_succeeds_without_one() {
    let folder = tempfile::tempdir().unwrap();
    for (more, status) in [
        (&["--expect", "violation"][..], 0),
        (&["--expect", "none"], 1),
        (&["--expect", "none", "--minimize", "min", "--budget", "500r"], 1),
        (&["--expect", "none", "--externals", "0"], 0),
        (&["--externals", "0"], 1),
    ] {
        assert_eq!(fuzz(folder.path(), more).status.code(), Some(status), "{more:?}");
    }
    for (expect, status) in [("violation", 0), ("none", 1)] {
        let mut replay = Command::new(program());
        replay.args(["replay", "min/schedule.jsonl", "--scenario", "scenario.toml", "--expect", expect]);
        assert_eq!(
            replay.current_dir(folder.path()).output().unwrap().status.code(),
            Some(status),
            "{expect}"
        );
    }
}

#[test]
fn a_run_is_at_least_as_long_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(fuzz(folder.path(), &[]).status.code(), Some(0));
    let least = deliveries(folder.path()) + 1;
    assert_eq!(fuzz(folder.path(), &["--min-deliveries", &least.to_string()]).status.code(), Some(0));
    assert!(deliveries(folder.path()) >= least);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (wrong, why) in [
        (&["--min-deliveries", "11", "--deliveries", "10"][..], "--min-deliveries 11"),
        (&["--minimize", "found"], "found"),
        (&["--budget", "5s"], "--minimize"),
    ] {
        let output = fuzz(folder.path(), wrong);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains(why), "{wrong:?}: {told}");
    }
}
