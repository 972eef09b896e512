//! A Python model of akka-raft, written apart from the included one, takes the same steps: through the SDK and the
//! protocol it follows what `fuzz` found on the included one. Without that model the test says so and is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use demi_child::WithChildren;
use demi_included::Included;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::ReplaySummary;
use demi_schemas::{Scenario, Schedule};

/// The folder of the Python model, or nothing where it or Python is not at hand.
fn foreign() -> Option<PathBuf> {
    let models = std::env::var_os("DEMI_MODELS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/models"), PathBuf::from);
    let folder = models.join("python");
    if !folder.join("invariants.py").exists() {
        eprintln!("skipped: no akka-raft in Python (set DEMI_MODELS)");
        return None;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return None;
    }
    Some(folder)
}

struct Found<'a>(&'a Scenario, u64);

impl Visitor for Found<'_> {
    type Output = (Schedule, Vec<String>);

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = FuzzOptions::new(self.1, 10_000, 2_000);
        let found = fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().expect("a violation");
        (found.schedule, found.violation)
    }
}

struct Replay<'a>(&'a Scenario, &'a Schedule);

impl Visitor for Replay<'_> {
    type Output = ReplaySummary;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        let options = ReplayOptions { rule: self.0.network, strict: false, interval: 1 };
        replay(&mut sim, self.1, &options).unwrap()
    }
}

#[test]
fn a_model_in_another_language_takes_the_same_steps() {
    let Some(folder) = foreign() else { return };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = here.join("tests/python/akka_raft.py");
    let command = serde_json::json!(["python3", program, here.join("../../sdk/python"), folder]);
    for case in ["raft-45", "raft-58b", "raft-66"] {
        let text = std::fs::read_to_string(here.join(format!("../../replay/scenarios/{case}.toml"))).unwrap();
        let included = Scenario::parse(&text).unwrap();
        let child = text.replace("model = \"akka-raft\"", &format!("model = {{ command = {command} }}"));
        let child = Scenario::parse(&child).unwrap();
        for seed in 1..=3 {
            let (schedule, violation) = Included.visit(&included, Found(&included, seed)).unwrap();
            let models = WithChildren::new(NoModels);
            let replayed = models.visit(&child, Replay(&child, &schedule)).unwrap();
            assert_eq!(models.fault(), None, "{case}");
            let told = (replayed.divergences, replayed.first_divergence);
            assert_eq!(told, (0, None), "{case}, seed {seed}");
            assert_eq!(replayed.violation, violation, "{case}, seed {seed}");
        }
    }
}
