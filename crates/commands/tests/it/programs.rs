//! Programs as they are, from a random run to the shortest schedule.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program that answers before the others know.
fn register() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/programs/register.py")
}

struct Case(tempfile::TempDir);

impl Case {
    /// A scenario with three nodes of a program; nothing where there is no Python.
    fn new(program: &Path) -> Option<Case> {
        if !crate::python() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "network = \"unordered\"\n[model]\ncommand = [\"python3\", {:?}]\nnodes = 3\n[workload]\nname = \"lin-kv\"\nprocesses = 3\n",
            program.display().to_string()
        );
        std::fs::write(folder.path().join("scenario.toml"), text).unwrap();
        Some(Case(folder))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(crate::hostile::program());
        command.args(arguments).current_dir(self.0.path()).env("XDG_STATE_HOME", self.0.path().join("state"));
        command.output().unwrap()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap()
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_program_is_fuzzed_minimized_and_replayed_without_a_model() {
    let Some(case) = Case::new(&register()) else { return };
    let fuzz = [
        "fuzz",
        "--scenario",
        "scenario.toml",
        "--runs",
        "20",
        "--deliveries",
        "60",
        "--seed",
        "1",
        "--out",
        "found",
    ];
    let output = case.run(&fuzz);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("lin-kv/not linearizable"), "{}", told(&output));
    let schedule = case.text("found/schedule.jsonl");

    let minimize = [
        "minimize",
        "found/schedule.jsonl",
        "--scenario",
        "scenario.toml",
        "--phases",
        "ddmin",
        "--budget",
        "200r",
        "--out",
        "min",
    ];
    let output = case.run(&minimize);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("locally minimal"), "{}", told(&output));
    // Six are enough: a write that is answered, and a read elsewhere that does not see it, three steps each.
    let steps = case.text("min/schedule.jsonl").lines().count() - 1;
    assert!((6..=12).contains(&steps), "{steps} steps of {}", schedule.lines().count() - 1);
    let output = case.run(&["replay", "min/schedule.jsonl", "--scenario", "scenario.toml", "--strict"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("every step was followed exactly"), "{}", told(&output));

    // The same seed makes the same run, in other processes.
    std::fs::remove_dir_all(case.0.path().join("found")).unwrap();
    assert_eq!(case.run(&fuzz).status.code(), Some(0));
    assert_eq!(case.text("found/schedule.jsonl"), schedule);
}

#[test]
fn a_program_is_tried_before_it_is_searched() {
    let Some(case) = Case::new(&register()) else { return };
    let output = case.run(&["program", "check", "--scenario", "scenario.toml", "--requests", "5"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("15 of 15 requests answered"), "{}", told(&output));

    let stray = case.0.path().join("stray.py");
    std::fs::write(
        &stray,
        "import sys, time\nopen('/proc/uptime').read()\nfor line in sys.stdin:\n    while True: pass\n",
    )
    .unwrap();
    let case = Case::new(&stray).unwrap();
    let text = case.text("scenario.toml") + "[process]\nstep_seconds = 1\n";
    std::fs::write(case.0.path().join("scenario.toml"), text).unwrap();
    let output = case.run(&["program", "check", "--scenario", "scenario.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("did not come to rest within 1 s"), "{}", told(&output));
}

/// Three nodes that answer what they are asked, and after so many lines compute for ever.
fn echoes(lines: u32) -> Option<Case> {
    let case = Case::new(&register())?;
    let file = case.0.path().join("echo.py");
    let text = format!(
        "import sys, json\nn = 0\nfor line in sys.stdin:\n    m, n = json.loads(line), n + 1\n    while n > {lines}: pass\n    b = m['body']\n    \
         r = {{**b, 'type': b['type'] + '_ok', 'in_reply_to': b['msg_id']}}\n    \
         print(json.dumps({{'src': m['dest'], 'dest': m['src'], 'body': r}}), flush=True)\n"
    );
    std::fs::write(&file, text).unwrap();
    let scenario = case.text("scenario.toml").replace("lin-kv", "echo");
    let scenario = scenario.replace(
        &format!("{:?}", register().display().to_string()),
        &format!("{:?}", file.display().to_string()),
    );
    std::fs::write(case.0.path().join("scenario.toml"), scenario + "[process]\nstep_seconds = 1\n").unwrap();
    Some(case)
}

/// What a program could not answer broke nothing, and is no healthy run.
#[test]
fn a_run_that_ends_in_an_error_is_not_healthy() {
    let Some(case) = echoes(6) else { return };
    let fuzz = [
        "fuzz",
        "--scenario",
        "scenario.toml",
        "--seed",
        "1",
        "--deliveries",
        "60",
        "--healthy",
        "4",
        "--out",
        "found",
    ];
    let output = case.run(&fuzz);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("one of its threads computes without a pause"), "{}", told(&output));
    assert!(told(&output).contains("0 runs without a violation, of 1 made"), "{}", told(&output));
    assert!(case.text("found/summary.json").contains("\"healthy\": 0"));
    assert!(!case.0.path().join("found/run-0001").exists());
}

#[test]
fn a_search_ends_when_its_time_is_over() {
    let Some(case) = echoes(1_000_000) else { return };
    let fuzz = [
        "fuzz",
        "--scenario",
        "scenario.toml",
        "--seed",
        "1",
        "--runs",
        "1000000",
        "--time",
        "300ms",
        "--out",
        "found",
    ];
    let output = case.run(&fuzz);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("the time is over: "), "{}", told(&output));
    let wrong =
        case.run(&["fuzz", "--scenario", "scenario.toml", "--seed", "1", "--time", "5r", "--out", "found"]);
    assert!(told(&wrong).contains("a time is written as 60s or 10m"), "{}", told(&wrong));
}

#[test]
fn a_crash_of_a_program_is_a_finding() {
    let Some(case) = Case::new(&register()) else { return };
    let faulty = case.0.path().join("faulty.py");
    let text = std::fs::read_to_string(register()).unwrap();
    std::fs::write(
        &faulty,
        text.replace(
            "    elif kind == \"replicate\":\n",
            "    elif kind == \"replicate\":\n        others[7]\n",
        ),
    )
    .unwrap();
    let case = Case::new(&faulty).unwrap();
    let output =
        case.run(&["fuzz", "--scenario", "scenario.toml", "--runs", "5", "--seed", "1", "--out", "found"]);
    assert!(told(&output).contains("crash: n"), "{}", told(&output));
    assert!(told(&output).contains("the program ended"), "{}", told(&output));
}

/// However a command ends, folders of nodes are gone soon after, and nodes too.
#[test]
fn a_command_that_is_killed_leaves_no_folders_and_no_nodes() {
    let Some(case) = Case::new(&register()) else { return };
    for signal in ["TERM", "KILL"] {
        let temporary = case.0.path().join(format!("temporary-{signal}"));
        std::fs::create_dir(&temporary).unwrap();
        let arguments =
            ["fuzz", "--scenario", "scenario.toml", "--runs", "1000000", "--seed", "1", "--deliveries", "50"];
        let mut command = Command::new(crate::hostile::program())
            .args(arguments)
            .args(["--healthy", "1000000", "--out", "found"])
            .current_dir(case.0.path())
            .env("XDG_STATE_HOME", case.0.path().join("state"))
            .env("TMPDIR", &temporary)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let folders = || {
            let all = std::fs::read_dir(&temporary).unwrap().flatten();
            all.filter(|entry| entry.file_name().to_string_lossy().starts_with("demi-node-")).count()
        };
        let waits = |until: &dyn Fn() -> bool| {
            for _ in 0..6_000 {
                if until() {
                    return true;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            false
        };
        assert!(waits(&|| folders() > 0), "no node was started");
        let killed = Command::new("kill").args([&format!("-{signal}"), &command.id().to_string()]).status();
        assert!(killed.unwrap().success());
        command.wait().unwrap();
        assert!(
            waits(&|| folders() == 0),
            "{signal}: {:?}",
            std::fs::read_dir(&temporary).unwrap().collect::<Vec<_>>()
        );
        // Nodes work in those folders, so that those who live show it.
        let works_there = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            all.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
                .any(|folder| folder.starts_with(&temporary))
        };
        assert!(waits(&|| !works_there()), "{signal}: a node lives on");
    }
}
