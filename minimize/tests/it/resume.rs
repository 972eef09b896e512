//! A minimization that is killed, or whose ledger was torn, continues where it was and ends where it would have ended.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use demi_included::{Visitor, with_model};
use demi_minimize::ledger::Ledger;
use demi_minimize::{Budget, Criteria, Objective, Options, Outcome, Phases, StopFlag, minimize_with};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;

/// Where the child process finds its ledger.
const CHILD: &str = "DEMI_TEST_LEDGER";

/// The budget.
const REPLAYS: u64 = 6_000;

struct Minimize<'a> {
    scenario: &'a Scenario,
    ledger: Option<Arc<Ledger>>,
    replays: u64,
}

impl Visitor for Minimize<'_> {
    type Output = Outcome;
    fn visit<M: Model>(self, sim: Simulator<M>) -> Outcome {
        let limits = FuzzOptions::new(4, 5_000, 500);
        let found = fuzz(&mut sim.clone(), self.scenario, &limits, &mut |_| true).unwrap().unwrap();
        assert!(found.deliveries > 128, "long enough for the ledger: {}", found.deliveries);
        let options = Options {
            rule: self.scenario.network,
            budget: Budget::Replays(self.replays),
            jobs: 1,
            phases: Phases::All,
            objective: Objective::Steps,
            stop: StopFlag::default(),
        };
        let oracle = Criteria { ledger: self.ledger, ..Criteria::default() };
        minimize_with(&sim, &found.schedule, None, &options, &oracle, &|_| ()).unwrap()
    }
}

fn run(path: Option<&Path>) -> String {
    with_ledger(path.map(|path| Arc::new(Ledger::open(path, b"test").unwrap())), REPLAYS)
}

fn with_ledger(ledger: Option<Arc<Ledger>>, replays: u64) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../replay/scenarios/raft-45.toml");
    let scenario = Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    text(with_model(&scenario, Minimize { scenario: &scenario, ledger, replays }).unwrap())
}

/// All that came out but times.
fn text(mut outcome: Outcome) -> String {
    let summary = &mut outcome.summary;
    summary.seconds = 0.0;
    summary.reduced.iter_mut().for_each(|reduced| reduced.seconds = 0.0);
    summary.phases.iter_mut().for_each(|p| p.seconds = 0.0);
    summary.passes.iter_mut().for_each(|p| p.seconds = 0.0);
    let others: Vec<String> = outcome.others.iter().map(|(_, s)| s.to_text()).collect();
    let [summary, certificate] = [
        serde_json::to_string_pretty(&outcome.summary).unwrap(),
        serde_json::to_string_pretty(&outcome.certificate).unwrap(),
    ];
    let reduced = outcome.reduced.map(|reduced| reduced.to_text()).unwrap_or_default();
    [outcome.schedule.to_text(), reduced, others.concat(), summary, certificate].concat()
}

fn text_of(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn ledger(name: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("demi-resume-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    file
}

#[test]
fn a_ledger_changes_nothing_and_a_torn_one_is_continued() {
    let path = ledger("torn");
    let whole = run(None);
    assert_eq!(run(Some(&path)), whole);
    let bytes = std::fs::read(&path).unwrap();
    let known = Ledger::open(&path, b"test").unwrap().known();
    assert!(known.0 > 20 && known.1 > 4, "both sorts of records are written: {known:?}");
    // What is whole is looked up and not done again: nothing is written any more.
    let full = Arc::new(Ledger::open(&path, b"test").unwrap());
    assert_eq!(with_ledger(Some(full.clone()), REPLAYS), whole);
    assert!(full.answered() >= known.1 as u64, "{} answers, {known:?}", full.answered());
    drop(full);
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "a second run has nothing to add");
    assert!(text_of(&bytes).contains(r#""shortest":{"at_least":"#), "proofs are kept");
    // At the end, and at places that have no meaning.
    for part in [1.0, 0.93, 0.611, 0.337, 0.051] {
        std::fs::write(&path, &bytes[..(bytes.len() as f64 * part) as usize]).unwrap();
        let before = Ledger::open(&path, b"test").unwrap().known();
        assert_eq!(run(Some(&path)), whole, "continued from {part}, {before:?}");
        assert_eq!(Ledger::open(&path, b"test").unwrap().known(), known, "and complete again");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_a_smaller_budget_cut_short_is_not_taken_for_the_end() {
    let path = ledger("budgets");
    // The proofs of the first may visit far fewer configurations.
    let budgets = [100, REPLAYS, 100];
    let without: Vec<String> = budgets.iter().map(|n| with_ledger(None, *n)).collect();
    assert_ne!(without[0], without[1]);
    for (replays, whole) in budgets.into_iter().zip(&without) {
        let shared = Arc::new(Ledger::open(&path, b"test").unwrap());
        assert_eq!(&with_ledger(Some(shared), replays), whole, "{replays} replays");
    }
    std::fs::remove_file(path).unwrap();
}

/// Not a test: what the next one starts and kills.
#[test]
fn child() {
    if let Some(path) = std::env::var_os(CHILD) {
        run(Some(Path::new(&path)));
    }
}

#[test]
fn a_killed_minimization_continues() {
    let path = ledger("killed");
    let began = Instant::now();
    let whole = run(None);
    let full = began.elapsed();
    let mut killed = 0;
    for part in 1..=6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["resume::child", "--exact"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Later and later, never long enough from the beginning.
        std::thread::sleep(full.mul_f64(0.11 * f64::from(part)).max(Duration::from_millis(5)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed > 0, "it was over before it could be killed");
    assert_eq!(run(Some(&path)), whole);
    std::fs::remove_file(path).unwrap();
}
