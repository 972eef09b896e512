//! Bytes of an execution or a store that were changed or cut off: every answer is right or refused, and none is wrong.
//!
//! `DEMI_DAMAGE=N` damages N times instead of as often as CI has time for.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

/// How often a folder is damaged.
const TIMES: usize = 120;

fn demi(args: &[&str]) -> Output {
    Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(args).output().unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// All files below a folder, in the order of their names.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
    }
}

/// SplitMix64.
fn random(seed: &mut u64) -> usize {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as usize >> 1
}

/// Damages one file of a folder after the other, and asks each time.
fn damage(folder: &Path, questions: &[Vec<&str>]) {
    let told = |args: &Vec<&str>| {
        let output = demi(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = String::from_utf8_lossy(&output.stdout);
        let answer: Vec<String> =
            text.lines().filter(|line| !line.contains("\"seconds\"")).map(str::to_owned).collect();
        (output.status.code(), answer, error)
    };
    let right: Vec<_> = questions.iter().map(told).collect();
    right.iter().for_each(|(code, _, error)| assert!(matches!(code, Some(0 | 1)), "{error}"));
    let (mut all, mut seed) = (Vec::new(), 1);
    files(folder, &mut all);
    all.retain(|file| fs::metadata(file).unwrap().len() > 0);
    let times = std::env::var("DEMI_DAMAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(TIMES);
    let (mut refused, mut unharmed) = (0, 0);
    for time in 0..times {
        // Each file has its turn, whatever its size.
        let file = &all[time % all.len()];
        let whole = fs::read(file).unwrap();
        let mut bytes = whole.clone();
        let at = random(&mut seed) % bytes.len();
        if time / all.len() % 3 == 2 {
            bytes.truncate(at)
        } else {
            bytes[at] ^= 1 << (random(&mut seed) % 8)
        };
        fs::write(file, &bytes).unwrap();
        for (question, right) in questions.iter().zip(&right) {
            let (code, answer, error) = told(question);
            assert!(!error.contains("panicked"), "{}, byte {at}: {question:?}: {error}", file.display());
            if code == Some(2) {
                assert!(!error.is_empty());
                refused += 1;
            } else {
                assert!(
                    (code, &answer) == (right.0, &right.1),
                    "{}, byte {at}: {question:?}: {error}",
                    file.display()
                );
                unharmed += 1;
            }
        }
        fs::write(file, whole).unwrap();
    }
    println!("{times} times damaged: {refused} answers refused, {unharmed} right");
    assert!(refused > times / 4);
    // Nothing of it is left.
    assert!(questions.iter().map(told).zip(right).all(|(now, then)| now.1 == then.1));
}

/// A run of Raft that breaks an invariant: its logs in a store, in two loads.
fn recorded(dir: &Path) -> (String, String) {
    let scenario = path(Path::new(env!("CARGO_MANIFEST_DIR")), "examples/demo/scenario.toml");
    let (runs, store) = (path(dir, "run"), path(dir, "store"));
    assert!(demi(&["fuzz", "--scenario", &scenario, "--seed", "1", "--out", &runs]).status.success());
    let mut logs = Vec::new();
    files(&dir.join("run/logs"), &mut logs);
    for some in logs.chunks(2) {
        let files: Vec<&str> = some.iter().map(|log| log.to_str().unwrap()).collect();
        let args = [&["ingest", "load", "--store", &store, "--system", "raft"], &files[..]].concat();
        assert!(demi(&args).status.success());
    }
    (scenario, store)
}

#[test]
fn a_damaged_execution_answers_right_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (scenario, store) = recorded(dir.path());
    let exec = path(dir.path(), "exec");
    assert!(demi(&["build", "--store", &store, "--system", "raft", "--out", &exec]).status.success());
    let questions = [
        vec!["query", &exec, "stats"],
        vec!["query", &exec, "--sql", "SELECT * FROM events", "--format", "jsonl"],
        vec!["query", &exec, "--sql", "SELECT * FROM messages", "--format", "jsonl"],
        vec!["replay", &exec, "--scenario", &scenario, "--json"],
        vec!["replay", &exec, "--scenario", &scenario, "--kept", "--json"],
    ];
    damage(Path::new(&exec), &questions);
}

#[test]
fn a_damaged_store_answers_right_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (_, store) = recorded(dir.path());
    let exec = path(dir.path(), "exec");
    let built = vec!["build", "--store", &store, "--system", "raft", "--out", &exec, "--json"];
    let questions = [
        vec!["ingest", "status", "--store", &store, "--json"],
        built,
        vec![
            "query",
            &store,
            "--sql",
            "SELECT actor, seq, kind, payload FROM events ORDER BY actor, seq",
            "--format",
            "jsonl",
        ],
    ];
    damage(Path::new(&store), &questions);
}
