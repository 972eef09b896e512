//! What `minimize` can be asked besides, through the binary.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn demi(args: &[&str]) -> Output {
    Command::cargo_bin("demi-lineage").unwrap().args(args).output().unwrap()
}

/// A folder with a fuzzed execution.
struct Case {
    folder: tempfile::TempDir,
    scenario: String,
}

impl Case {
    fn new(scenario: &str) -> Case {
        Case::of(scenario, "1")
    }

    fn of(scenario: &str, seed: &str) -> Case {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let scenario = root.join(format!("replay/scenarios/{scenario}.toml")).display().to_string();
        let case = Case { folder: tempfile::tempdir().unwrap(), scenario };
        let fuzz = ["fuzz", "--scenario", &case.scenario, "--seed", seed, "--out", &case.at("found")];
        assert!(demi(&fuzz).status.success());
        let load = ["ingest", "load", "--store", &case.at("store"), "--system", "s", &case.at("found/logs")];
        assert!(demi(&load).status.success());
        let build = ["build", "--store", &case.at("store"), "--system", "s", "--out", &case.at("exec")];
        assert!(demi(&build).status.success());
        case
    }

    fn at(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn minimize(&self, out: &str, more: &[&str]) -> Output {
        let (exec, out) = (self.at("exec"), self.at(out));
        let args = ["minimize", &exec, "--scenario", &self.scenario, "--out", &out];
        demi(&[&args[..], more].concat())
    }

    fn verify(&self, out: &str) -> String {
        let output = demi(&["verify", &self.at(out)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The result and its certificate.
    fn result(&self, out: &str) -> (String, Value) {
        let read = |name: &str| std::fs::read_to_string(self.file(out).join(name)).unwrap();
        (read("schedule.jsonl"), serde_json::from_str(&read("certificate.json")).unwrap())
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_ledger_that_is_kept_spares_a_second_run_its_work() {
    let case = Case::new("raft-45");
    let ledger = case.at("attempts.ledger");
    let with = ["--budget", "20000r", "--ledger", &ledger];
    let first = case.minimize("one", &with);
    assert!(first.status.success(), "{}", errors(&first));
    assert!(!errors(&first).contains("continuing"), "{}", errors(&first));
    let written = std::fs::read(&ledger).unwrap();
    let second = case.minimize("two", &with);
    assert!(second.status.success() && errors(&second).contains("continuing: "), "{}", errors(&second));
    assert_eq!(case.result("one"), case.result("two"));
    assert_eq!(std::fs::read(&ledger).unwrap(), written, "there was nothing left to try");
    // A file of somebody else stays as it is.
    std::fs::write(&ledger, "notes of somebody about something").unwrap();
    let refused = case.minimize("three", &with);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("attempts.ledger is no ledger"), "{}", errors(&refused));
    assert_eq!(std::fs::read_to_string(&ledger).unwrap(), "notes of somebody about something");
    assert!(!case.file("three").exists());
}

#[test]
fn a_budget_of_states_gives_the_same_with_any_number_of_threads() {
    let case = Case::new("raft-46");
    for (out, jobs) in [("one", "1"), ("two", "2")] {
        let output = case.minimize(out, &["--budget", "3000000states", "--jobs", jobs]);
        assert!(output.status.success(), "{}", errors(&output));
    }
    assert_eq!(case.result("one"), case.result("two"));
    let summary = std::fs::read_to_string(case.file("one/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    // Work that has begun is ended a little later.
    assert!(summary["executed"].as_u64().unwrap() < 4_500_000, "{}", summary["executed"]);
    assert!(summary["deliveries"].as_u64().unwrap() < 60, "{}", summary["deliveries"]);
    case.verify("one");
}

#[test]
fn any_violation_may_count_and_is_what_the_certificate_speaks_of() {
    let case = Case::new("raft-45");
    // Nobody ever saw these two lead together.
    assert!(case.minimize("plain", &["--phases", "sts"]).status.success());
    let text = case.result("plain").0;
    let (header, steps) = text.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(header).unwrap();
    header["violation"] = serde_json::json!(["ElectionSafety:raft-member-8:raft-member-9"]);
    let (input, out) = (case.at("other.jsonl"), case.at("any"));
    std::fs::write(&input, format!("{header}\n{steps}")).unwrap();
    let args = ["minimize", &input, "--scenario", &case.scenario, "--out", &out, "--budget", "5000r"];
    let refused = demi(&args);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("raft-member-8:raft-member-9"), "{}", errors(&refused));
    let output = demi(&[&args[..], &["--match", "any"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let (_, certificate) = case.result("any");
    let fingerprint = certificate["violation"][0].as_str().unwrap().to_owned();
    assert!(case.verify("any").contains(&format!("strict replay violates {fingerprint}")));
}

#[test]
fn what_must_not_break_is_of_the_same_model_and_does_not_break() {
    let case = Case::new("raft-45");
    let text = std::fs::read_to_string(&case.scenario).unwrap();
    let mended = text.replace("raft45_duplicate_votes = true", "raft45_duplicate_votes = false");
    assert_ne!(mended, text);
    std::fs::write(case.file("mended.toml"), mended).unwrap();
    let output = case.minimize("out", &["--also", &case.at("mended.toml"), "--budget", "3000r"]);
    assert!(output.status.success(), "{}", errors(&output));
    let schedule = case.at("out/schedule.jsonl");
    let run = demi(&["replay", &schedule, "--scenario", &case.at("mended.toml"), "--json"]);
    let run: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_ne!(run["verdict"], "violates");
    case.verify("out");
    // The system itself breaks: nothing is left to minimize.
    let refused = case.minimize("none", &["--also", &case.scenario, "--budget", "1000r"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("also breaks what must not break"), "{}", errors(&refused));
    let spark = Path::new(env!("CARGO_MANIFEST_DIR")).join("replay/scenarios/spark-2294.toml");
    let refused = case.minimize("none", &["--also", &spark.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("spark-2294.toml: model 'spark'"), "{}", errors(&refused));
    assert!(!case.file("none").exists());
}

#[test]
fn repeated_runs_of_a_deterministic_model_change_nothing() {
    let case = Case::new("raft-46");
    for (out, repeat) in [("once", "1-of-1"), ("often", "2-of-3")] {
        let output = case.minimize(out, &["--repeat", repeat, "--budget", "3000r"]);
        assert!(output.status.success(), "{}", errors(&output));
    }
    assert_eq!(case.result("once"), case.result("often"));
    for bad in ["3-of-2", "0-of-1", "two"] {
        let refused = case.minimize("none", &["--repeat", bad]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(errors(&refused).contains("is not K-of-N with 1 <= K <= N"), "{}", errors(&refused));
    }
}

#[test]
fn who_ends_too_early_does_not_say_1_minimal() {
    let case = Case::new("raft-45");
    assert!(case.minimize("early", &["--budget", "2r"]).status.success());
    assert!(case.verify("early").contains("still violate: not 1-minimal"));
    let file = case.file("early/summary.json");
    let summary = std::fs::read_to_string(&file).unwrap();
    assert!(summary.contains(r#""one_minimal": false"#));
    std::fs::write(&file, summary.replace(r#""one_minimal": false"#, r#""one_minimal": true"#)).unwrap();
    let refused = demi(&["verify", &case.at("early")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        errors(&refused).contains("summary.json: it says 1-minimal, but without step"),
        "{}",
        errors(&refused)
    );
}

#[test]
fn a_long_result_is_no_proof_of_its_own_1_minimality() {
    let case = Case::of("raft-45", "2");
    assert!(case.minimize("long", &["--budget", "1r"]).status.success());
    let (schedule, certificate) = case.result("long");
    assert!(schedule.lines().count() > 1_001, "{}", schedule.lines().count());
    assert_eq!(certificate["removals"].as_array().map(Vec::len), Some(0));
    assert!(case.verify("long").contains("single removals"));
    let file = case.file("long/summary.json");
    let summary = std::fs::read_to_string(&file).unwrap();
    assert!(summary.contains(r#""one_minimal": false"#));
    std::fs::write(&file, summary.replace(r#""one_minimal": false"#, r#""one_minimal": true"#)).unwrap();
    let refused = demi(&["verify", &case.at("long")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors(&refused).contains("the certificate has no single removals"), "{}", errors(&refused));
}

/// Three defects of one kind on together.
const THREE: &str = "model = 'akka-raft'\nmembers = 4\nnetwork = 'fifo'\ninvariants = ['ElectionSafety']\n\n[switches]\n\
    raft45_duplicate_votes = true\nraft46_stale_votes = true\nraft56_forget_votes = true\ncandidate_drops_newer_rv = true\n\
    candidate_votes_in_place = true\nvote_keeps_timer = true\nvote_ignores_log = true\nstale_decline_echoes_term = true\n\n\
    [fuzz]\nclient_messages = 0\nstrategy = 'mixed'\n";

/// A scenario's text with some switches off.
fn switched_off(text: &str, off: &[&str]) -> String {
    off.iter().fold(text.to_owned(), |text, name| {
        let less = text.replace(&format!("{name} = true"), &format!("{name} = false"));
        assert_ne!(less, text, "{name}");
        less
    })
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn the_switches_that_a_result_needs_are_named_and_held_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("three.toml"), THREE).unwrap();
    let all: Vec<&str> = THREE.lines().filter_map(|line| line.strip_suffix(" = true")).collect();
    // Whether a schedule is followed strictly and breaks the invariant, by `replay` alone.
    let breaks = |schedule: &str, off: &[&str]| {
        std::fs::write(at("other.toml"), switched_off(THREE, off)).unwrap();
        let replayed = demi(&["replay", schedule, "--scenario", &at("other.toml"), "--strict"]);
        match replayed.status.code() {
            Some(0) => true,
            Some(1 | 3) => false,
            other => panic!("{other:?}: {}", errors(&replayed)),
        }
    };
    for seed in ["1", "2", "3"] {
        let found = at(&format!("found-{seed}"));
        let fuzzed = demi(&["fuzz", "--scenario", &at("three.toml"), "--seed", seed, "--out", &found]);
        assert!(fuzzed.status.success(), "{}", errors(&fuzzed));
        let mut recorded = None;
        for (out, more) in [("free", &[][..]), ("held", &["--cause"][..])] {
            let out = at(&format!("{out}-{seed}"));
            let args = [
                "minimize",
                &found,
                "--scenario",
                &at("three.toml"),
                "--budget",
                "400000states",
                "--out",
                &out,
            ];
            let done = demi(&[&args[..], more].concat());
            assert!(done.status.success(), "{}", errors(&done));
            let text = String::from_utf8(done.stdout).unwrap();
            assert!(text.starts_with("what happened, reduced: "), "{text}");
            let summary: Value =
                serde_json::from_str(&std::fs::read_to_string(format!("{out}/summary.json")).unwrap())
                    .unwrap();
            for (file, key) in [("reduced.jsonl", "reduced_needs"), ("schedule.jsonl", "needs")] {
                let schedule = format!("{out}/{file}");
                let needs = names(&summary[key]["switches"]);
                assert!(!needs.is_empty() && needs.iter().all(|name| text.contains(name)), "{text}");
                assert!(breaks(&schedule, &[]), "{schedule}");
                let rest: Vec<&str> = all.iter().copied().filter(|name| !needs.contains(name)).collect();
                assert!(breaks(&schedule, &rest), "{schedule} needs no more than {needs:?}");
                for name in needs {
                    assert!(!breaks(&schedule, &[&rest[..], &[name]].concat()), "{schedule} needs {name}");
                }
            }
            // Both are told from where they began: from the recording.
            let initial =
                ["initial_steps", "initial_deliveries", "initial_externals"].map(|key| &summary[key]);
            assert_eq!(*recorded.get_or_insert(initial.map(Value::clone)), initial.map(Value::clone));
            let off = names(&summary["switched_off"]);
            let happened = names(&summary["reduced_needs"]["switches"]);
            assert_eq!(off.is_empty(), more.is_empty());
            assert!(off.iter().all(|name| !happened.contains(name)));
            assert!(more.is_empty() || off.len() + happened.len() == all.len());
            // What is in the folder is checked with the scenario that is in it.
            let verified = demi(&["verify", &out]);
            assert!(verified.status.success(), "{}", errors(&verified));
            assert!(!folder.path().join(format!("held-{seed}.reduced.jsonl")).exists());
        }
    }
    std::fs::write(at("none.toml"), switched_off(THREE, &all)).unwrap();
    let found = at("found-1");
    let refused =
        demi(&["minimize", &found, "--scenario", &at("none.toml"), "--cause", "--out", &at("refused")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors(&refused).contains("no switch is on"), "{}", errors(&refused));
}
