//! Recordings on a model in another language: an akka-raft in Python that was written apart from the included one.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

use crate::support::kill::check::rows;

fn json(args: &[&str]) -> (i32, Value) {
    let output = Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), value)
}

/// The tests of the Python SDK's logging side.
#[test]
fn the_python_sdk_tells_states() {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python");
    let output = std::process::Command::new("python3")
        .args(["-m", "unittest", "discover", "tests"])
        .current_dir(sdk)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder of the material that tests use where it is at hand.
fn material(variable: &str, default: &str, part: &str) -> Option<PathBuf> {
    let root = std::env::var_os(variable)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(default), PathBuf::from);
    let folder = root.join(part);
    if !folder.exists() {
        println!("skipped: no {part} (set {variable})");
        return None;
    }
    Some(folder)
}

#[test]
fn recordings_replay_on_a_model_in_python() {
    let Some(model) = material("DEMI_MODELS", "../shared/models", "python") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (program, sdk) = (root.join("crates/child/tests/python/akka_raft.py"), root.join("sdk/python"));
    let command = serde_json::json!({ "command": ["python3", program, sdk, model] });
    let command = command["command"].to_string();
    for (case, deliveries) in [("raft-45", 2160), ("raft-58b", 1500), ("raft-66", 400)] {
        let Some(recording) = material("DEMI_CORPUS", "../shared/corpus", &format!("demi/{case}")) else {
            continue;
        };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (store, exec, scenario) = (at("store"), at("exec"), at("scenario.toml"));
        let text = std::fs::read_to_string(recording.join("scenario.toml")).unwrap();
        let text = text.replace("\"akka-raft\"", &format!("{{ command = {command} }}"));
        std::fs::write(&scenario, text).unwrap();
        let logs = recording.join("logs").display().to_string();
        json(&["ingest", "load", "--store", &store, "--system", case, &logs, "--json"]);
        json(&["build", "--store", &store, "--system", case, "--out", &exec, "--json"]);
        let (code, replayed) = json(&["replay", &exec, "--scenario", &scenario, "--json"]);
        assert_eq!((code, &replayed["divergences"]), (0, &Value::from(0)), "{case}: {replayed}");
        assert_eq!(
            (&replayed["deliveries"], &replayed["matches_recorded"]),
            (&deliveries.into(), &true.into()),
            "{case}: {replayed}"
        );
    }
}

#[test]
fn new_projects_pass_their_own_tests() {
    for (language, interpreter) in [("python", "python3"), ("javascript", "node")] {
        if std::process::Command::new(interpreter).arg("--version").output().is_err() {
            println!("skipped: there is no {interpreter}");
            continue;
        }
        new_project(language);
    }
}

fn new_project(language: &str) {
    let folder = tempfile::tempdir().unwrap();
    let new = |args: &[&str]| {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.arg("new-model").args(args).current_dir(&folder);
        command.output().unwrap()
    };
    assert_eq!(new(&["my-lock", "--language", language]).status.code(), Some(0));
    let program = assert_cmd::cargo::cargo_bin("demi-lineage");
    let path = std::env::join_paths(
        [program.parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let project = folder.path().join("my-lock");
    let (program, args): (_, &[&str]) = match language {
        "python" => ("python3", &["-m", "unittest", "test_model"]),
        _ => ("node", &["--test"]),
    };
    if language == "javascript" {
        let npm = ["install", "--offline", "--no-audit", "--no-fund"];
        match std::process::Command::new("npm").args(npm).current_dir(&project).output() {
            Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
            Err(_) => {
                // What it does with a folder.
                std::fs::create_dir(project.join("node_modules")).unwrap();
                std::os::unix::fs::symlink("../demi-model", project.join("node_modules/demi-model")).unwrap();
            }
        }
        let linked = project.join("node_modules/demi-model").canonicalize().unwrap();
        assert_eq!(linked, project.join("demi-model").canonicalize().unwrap(), "it is the project's own");
    }
    let tests = std::process::Command::new(program)
        .args(args)
        .env("PATH", path.unwrap())
        .current_dir(&project)
        .output()
        .unwrap();
    let told = [tests.stdout, tests.stderr].concat();
    assert!(tests.status.success(), "{}", String::from_utf8_lossy(&told));

    // A predicate over the states takes the place of the check in code, and a slip of the pen is an error.
    let demi = |args: &[&str]| {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        let output = command.args(args).current_dir(&project);
        let output = output.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let scenario = std::fs::read_to_string(project.join("scenario.toml")).unwrap();
    let holds = "invariant = \"WHERE works = true HAVING count(*) <= 1\"\n";
    std::fs::write(project.join("holds.toml"), format!("{holds}{scenario}")).unwrap();
    let (status, told) = demi(&["fuzz", "--scenario", "holds.toml", "--seed", "1", "--out", "run"]);
    assert!(status == Some(0) && told.contains("Invariant:client-1:client-2"), "{told}");
    for (wrong, told) in [("holder", "did you mean"), ("forgetful_lease", "forgetful_lese")] {
        let text = match wrong {
            "holder" => format!("{}{scenario}", holds.replace("works", "wroks")),
            _ => scenario.replace(wrong, told),
        };
        std::fs::write(project.join("slip.toml"), text).unwrap();
        let (status, error) = demi(&["fuzz", "--scenario", "slip.toml", "--seed", "1", "--out", "run"]);
        assert!(status == Some(2) && error.contains(told), "{error}");
    }
    let (status, told) = demi(&["report", "run", "--html", "run.html"]);
    assert!(status == Some(0) && project.join("run.html").is_file(), "{told}");
    let (status, told) = demi(&["verify", "run"]);
    assert!(status == Some(2) && told.contains("claims nothing"), "{told}");

    // What is there is somebody's work.
    let model = project.join("README.md");
    std::fs::write(&model, "mine").unwrap();
    assert_eq!(new(&["my-lock", "--language", language]).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&model).unwrap(), "mine");
    for name in ["../my-lock", "my lock", "-x", "self", "Größe"] {
        assert_eq!(new(&[name]).status.code(), Some(2), "{name}");
    }
}

/// Runs the daemon of the example until all that was logged is in the store.
fn follow_by_daemon(at: &Path) {
    let logged = || -> usize {
        let files = std::fs::read_dir(at.join("logs")).unwrap();
        files.map(|f| std::fs::read_to_string(f.unwrap().path()).unwrap().lines().count()).sum()
    };
    let stored = || {
        let store = demi_store::Store::open(at.join("store")).ok()?;
        Some(rows(&store.event_files("register").ok()?) as usize)
    };
    let mut daemon = std::process::Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"))
        .args(["ingest", "serve", "demi.toml"])
        .current_dir(at)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = std::time::Instant::now();
    while stored() != Some(logged()) && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    std::process::Command::new("kill").arg(daemon.id().to_string()).status().unwrap();
    assert!(daemon.wait().unwrap().success(), "the daemon ends well");
    assert_eq!(stored(), Some(logged()));
}

/// A real program, its log, the model, the minimized schedule and the test.
#[test]
fn the_whole_road_in_python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = root.join("sdk/python/examples/store");
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let python = |args: &[&str]| {
        let mut python = std::process::Command::new("python3");
        python.args(args).env("PYTHONPATH", root.join("sdk/python")).current_dir(at).output().unwrap()
    };
    for file in ["store.py", "model.py", "scenario.toml", "demi.toml"] {
        std::fs::copy(example.join(file), at.join(file)).unwrap();
    }
    // How long the network takes is chance, and whether the replicas differ at the end is too.
    let broken = (0..20).find(|n| {
        let output = python(&["store.py", "--logs", &format!("logs-{n}")]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("after the same 12 writes"), "{}", String::from_utf8_lossy(&output.stderr));
        output.status.code() == Some(1)
    });
    let logs = format!("logs-{}", broken.unwrap());
    let demi = |line: &str| {
        let output = Command::cargo_bin("demi-lineage")
            .unwrap()
            .args(line.split(' '))
            .env("PYTHONPATH", root.join("sdk/python"))
            .current_dir(at)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{line}: {told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        told
    };
    std::fs::rename(at.join(&logs), at.join("logs")).unwrap();
    follow_by_daemon(at);
    demi("build --store store --out exec");
    let replayed = demi("replay exec --scenario scenario.toml");
    assert!(
        replayed.contains("36 deliveries") && replayed.contains("every step was followed exactly"),
        "{replayed}"
    );
    let minimized = demi("minimize exec --scenario scenario.toml --out min --budget 20000r");
    assert!(
        minimized.contains("the shortest found: 9 steps, 6 deliveries, 5 external events"),
        "{minimized}"
    );
    demi("verify min");
    demi("export min --format pytest --out test_store.py");
    let failed = python(&["test_store.py"]);
    let told = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && told.contains("Converged"), "{told}");
    // The model stops in a debugger in front of the last step's handler.
    std::fs::write(
        at.join("hook.py"),
        "import sys\ndef stop():\n    at = sys._getframe(2)\n    print('stopped in', at.f_code.co_name, file=sys.stderr)\n",
    )
    .unwrap();
    let stopped = std::process::Command::new("python3")
        .arg("test_store.py")
        .env("PYTHONPATH", format!("{}:{}", root.join("sdk/python").display(), at.display()))
        .env("PYTHONBREAKPOINT", "hook.stop")
        .env("DEMI_REPLAY", "min/schedule.jsonl@9")
        .current_dir(at)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(told.matches("stopped in answer").count() == 1 && told.contains("Converged"), "{told}");
    // The repaired program passes.
    let test = std::fs::read_to_string(at.join("test_store.py")).unwrap();
    let repaired = test.replace("\\\"last_wins\\\":true", "\\\"last_wins\\\":false");
    assert_ne!(test, repaired);
    std::fs::write(at.join("test_store.py"), repaired).unwrap();
    assert!(python(&["test_store.py"]).status.success());
}
