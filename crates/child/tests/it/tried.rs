//! `model check` walks through a model as the simulator would, and what it reads is what the model wrote.

use std::path::Path;
use std::process::Command;

use demi_child::tried::{Trial, try_model};
use demi_schemas::{ChildModel, Scenario};

/// A Python model whose class has these methods; nothing where there is no Python.
fn trial(body: &str) -> Option<Trial> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python");
    let text = format!(
        "import sys\nsys.path.insert(0, {:?})\nfrom demi_model import Model, Violation, message, serve\n\
         class M(Model):\n{body}\nserve(M())\n",
        sdk.display().to_string()
    );
    let file = folder.path().join("m.py");
    std::fs::write(&file, text).unwrap();
    let command = vec!["python3".to_owned(), file.display().to_string()];
    let child = ChildModel { command, ..ChildModel::default() };
    let scenario = Scenario::parse("model = 'm'\nnetwork = 'fifo'").unwrap();
    Some(try_model(&child, &scenario, 200).unwrap())
}

/// Each timer says in its message whether it may ever fire.
#[test]
fn a_timer_that_is_not_live_is_never_tried() {
    let body = r#"
    actors = ["a", "b"]
    def start(self, actor, ctx, disk=None):
        # Set, set anew, and cancelled; one of two keys; one that goes with its actor.
        ctx.set_timer("t", message("Never"))
        ctx.set_timer("t", message("First"))
        ctx.set_timer("k", message("Never"), key=1)
        ctx.set_timer("k", message("Other"), key=2)
        ctx.cancel_timer("k", key=1)
        if actor == "b":
            ctx.set_timer("ends", message("End"))
        return {"ended": False, "fired": []}
    def deliver(self, actor, s, msg, ctx):
        assert msg.type != "Never", "a timer that is not live"
        assert not s["ended"], "who has stopped takes nothing"
        assert msg.type == "Round" or msg.type not in s["fired"], "a timer fires once"
        s["fired"].append(msg.type)
        if msg.type == "End":
            ctx.set_timer("late", message("Never"))
            ctx.stop_actor("b")
            s["ended"] = True
        if msg.type == "Other":
            ctx.set_timer("round", message("Round"), repeats=True)
        if s["fired"].count("Round") == 5:
            ctx.cancel_timer("round")
            s["fired"] = [f for f in s["fired"] if f != "Round"] + ["Round"] * 5
        assert s["fired"].count("Round") <= 5, "it was cancelled"
        return s
"#;
    let Some(trial) = trial(body) else { return };
    assert!(!trial.wrong(), "{:?}", trial.findings);
    let mut types = trial.types.clone();
    types.sort();
    assert_eq!(types, ["End", "First", "Other", "Round"]);
}

#[test]
fn an_actor_that_fails_goes_on_only_where_it_restarts() {
    for restarts in [false, true] {
        let body = format!(
            r#"
    actors = ["a"]
    disk = True
    restarts = {}
    def start(self, actor, ctx, disk=None):
        boots = disk["boots"] + 1 if disk else 0
        ctx.set_timer("t", message("Fail" if boots == 0 else "Again", boots))
        ctx.set_timer("u", message("Never" if boots == 0 else "Also"))
        ctx.cancel_timer("u") if boots == 0 else None
        return {{"boots": boots}}
    def deliver(self, actor, s, msg, ctx):
        assert msg.type != "Never"
        if msg.type == "Fail":
            assert s["boots"] == 0, "it is gone with the first life"
            ctx.set_timer("gone", message("Never"))
            ctx.fail("it fails")
        return s
"#,
            if restarts { "True" } else { "False" }
        );
        let Some(trial) = trial(&body) else { return };
        assert!(!trial.wrong(), "{:?}", trial.findings);
        assert_eq!(trial.types.contains(&"Again".to_owned()), restarts, "{:?}", trial.types);
    }
}

#[test]
fn whole_numbers_beyond_64_bits_are_refused_by_name() {
    for (number, fits) in [
        ("2**64 - 1", true),
        ("-2**63", true),
        ("2**64", false),
        ("-2**63 - 1", false),
        ("10**30", false),
        ("1e30", true),
        ("'18446744073709551616'", true),
        ("'\"18446744073709551616'", true),
        ("[{'x': 0.18446744073709551616}]", true),
    ] {
        let body = format!(
            "    actors = ['a']\n    def start(self, actor, ctx, disk=None):\n        return {{'n': {number}}}\n    \
             def deliver(self, actor, s, msg, ctx):\n        return s"
        );
        let Some(trial) = trial(&body) else { return };
        assert_eq!(!trial.wrong(), fits, "{number}: {:?}", trial.findings);
        let told = trial.findings.iter().any(|found| found.what.contains("more than 64 bits"));
        assert_eq!(told, !fits, "{number}: {:?}", trial.findings);
    }
}

#[test]
fn what_a_handler_raises_is_told() {
    let body = r#"
    actors = ["a"]
    def start(self, actor, ctx, disk=None):
        ctx.set_timer("t", message("Tick"))
        return {}
    def deliver(self, actor, s, msg, ctx):
        if msg.type == "Tick":
            return s["b"]
        return s
"#;
    let Some(trial) = trial(body) else { return };
    let told = trial.findings.iter().find(|found| found.wrong).map(|found| &*found.what);
    assert_eq!(told, Some("a handler of a raises KeyError: 'b' (m.py:12)"), "{:?}", trial.findings);
    assert!(trial.wrong() && !trial.breaks_the_protocol());
}
