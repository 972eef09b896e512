//! `export` of a schedule as a test, which fails while the bug is there and passes once it is mended.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program `examples/hostile.rs`, which is built with these tests; models that are commands are known to every program.
pub fn program() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    folder.join("examples").join(format!("hostile{}", std::env::consts::EXE_SUFFIX))
}

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python")
}

pub fn run(folder: &Path, args: &[&str]) -> Output {
    let output =
        Command::new(program()).args(args).env("PYTHONPATH", sdk()).current_dir(folder).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {told}");
    output
}

/// Runs a file of tests with Python alone.
fn python(folder: &Path, file: &str) -> (bool, String) {
    let mut python = Command::new("python3");
    let output = python.arg(file).env("PYTHONPATH", sdk()).current_dir(folder).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_python_test_fails_until_the_bug_is_mended() {
    if !crate::python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let model = std::fs::read_to_string(sdk().join("examples/lock.py")).unwrap();
    let (path, at) = (folder.path().join("lock.py"), folder.path());
    std::fs::write(&path, &model).unwrap();
    let scenario = "model = { command = [\"python3\", \"lock.py\"] }\nnetwork = \"fifo\"\n";
    std::fs::write(at.join("lock.toml"), scenario).unwrap();
    let fuzz = ["fuzz", "--scenario", "lock.toml", "--seed", "1", "--out", "found", "--minimize", "min"];
    run(at, &[&fuzz[..], &["--budget", "2000r"]].concat());
    for input in ["min", "found"] {
        run(at, &["export", input, "--format", "pytest", "--out", "test_lock.py"]);
        let test = std::fs::read_to_string(at.join("test_lock.py")).unwrap();
        assert!(test.contains("def test_mutual_exclusion(self):"), "{test}");
        std::fs::write(&path, &model).unwrap();
        let (passes, told) = python(at, "test_lock.py");
        assert!(!passes && told.contains("MutualExclusion") && told.contains("at step"), "{told}");
        // The lease does not end while the client holds the lock.
        let mended = model.replace("msg.type == \"LeaseEnds\" or ", "");
        assert_ne!(mended, model);
        std::fs::write(&path, mended).unwrap();
        let (passes, told) = python(at, "test_lock.py");
        assert!(passes, "{told}");
        // Of a system with other names nothing can be said, and that is no success.
        std::fs::write(&path, model.replace("\"client-", "\"user-").replace("\"server\"", "\"s\"")).unwrap();
        let (passes, told) = python(at, "test_lock.py");
        assert!(!passes && told.contains("takes no step of the schedule"), "{told}");
    }
}

#[test]
fn a_python_test_needs_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("s.toml"), "model = \"mine\"\nnetwork = \"fifo\"\n").unwrap();
    std::fs::write(at.join("s.jsonl"), "{\"schema\":\"demi-schedule/1\"}\n").unwrap();
    let args = ["export", "s.jsonl", "--scenario", "s.toml", "--format", "pytest"];
    let output = Command::new(program()).args(args).current_dir(at).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("--format rust-test"), "{told}");
}

#[test]
fn a_rust_test_holds_scenario_and_schedule() {
    use demi_included::Included;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let scenario = "model = \"two-phase\"\nnetwork = \"fifo\"\n[switches]\ncommit_on_timeout = true\n";
    let schedule =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/two-phase.jsonl"))
            .unwrap();
    std::fs::write(at.join("s.toml"), scenario).unwrap();
    std::fs::write(at.join("s.jsonl"), &schedule).unwrap();
    let args = ["export", "s.jsonl", "--scenario", "s.toml", "--format", "rust-test"];
    let test = String::from_utf8(run(at, &args).stdout).unwrap();
    assert!(test.contains("use hostile::models;") && test.contains("#[test]\nfn test_"), "{test}");
    // What the test calls.
    let broken = demi_commands::testing::violations(&Included, scenario, &schedule).unwrap();
    assert!(!broken.is_empty());
    let mended = scenario.replace("= true", "= false");
    assert_eq!(demi_commands::testing::violations(&Included, &mended, &schedule).unwrap(), [""; 0]);
}

#[test]
fn a_javascript_test_fails_until_the_bug_is_mended() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: there is no node");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/js").canonicalize().unwrap();
    std::fs::create_dir(at.join("node_modules")).unwrap();
    std::os::unix::fs::symlink(&sdk, at.join("node_modules/demi-model")).unwrap();
    let model = std::fs::read_to_string(sdk.join("examples/lock.js")).unwrap();
    let model = model.replace("../index.js", "demi-model");
    std::fs::write(at.join("lock.mjs"), &model).unwrap();
    let scenario = "model = { command = [\"node\", \"lock.mjs\"] }\nnetwork = \"fifo\"\n";
    std::fs::write(at.join("lock.toml"), scenario).unwrap();
    run(at, &["model", "check", "--scenario", "lock.toml"]);
    let fuzz = ["fuzz", "--scenario", "lock.toml", "--seed", "1", "--out", "found", "--minimize", "min"];
    run(at, &[&fuzz[..], &["--budget", "2000r"]].concat());
    run(at, &["export", "min", "--format", "js-test", "--out", "lock.test.mjs"]);
    let test = || {
        let output = Command::new("node").args(["--test", "lock.test.mjs"]).current_dir(at).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (passes, told) = test();
    assert!(!passes && told.contains("MutualExclusion") && told.contains("at step"), "{told}");
    let mended = model.replace("msg.type === \"LeaseEnds\" || ", "");
    assert_ne!(mended, model);
    std::fs::write(at.join("lock.mjs"), mended).unwrap();
    let (passes, told) = test();
    assert!(passes, "{told}");
    // Of a system with other names nothing can be said, and that is no success.
    std::fs::write(at.join("lock.mjs"), model.replace("\"client-", "\"user-").replace("\"server\"", "\"s\""))
        .unwrap();
    let (passes, told) = test();
    assert!(!passes && told.contains("takes no step of the schedule"), "{told}");
}
