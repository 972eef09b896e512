//! The road of docs/programs.md: a program as it is, from a random run to the shortest schedule, its history and its script.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// A command in the project's folder, where the examples are; its status and what it prints.
fn run(args: &[&str]) -> (i32, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output =
        Command::cargo_bin("demi-lineage").unwrap().current_dir(root).arg("-q").args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), text + &String::from_utf8_lossy(&output.stderr))
}

fn json(args: &[&str]) -> Value {
    let (status, text) = run(args);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {status} {error}: {text}"))
}

const SCENARIO: &str = "examples/programs/register.toml";

#[test]
fn a_program_as_it_is_comes_to_its_shortest_schedule() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (found, min) = (path("found"), path("min"));
    let (status, text) = run(&["program", "check", "--scenario", SCENARIO, "--requests", "10"]);
    assert_eq!(status, 0, "{text}");
    let made = json(&[
        "fuzz",
        "--scenario",
        SCENARIO,
        "--seed",
        "4",
        "--runs",
        "20",
        "--deliveries",
        "200",
        "--min-deliveries",
        "40",
        "--out",
        &found,
        "--json",
    ]);
    assert_eq!(made["violation"][0], "lin-kv/not linearizable");
    // What minimizing looks at does not depend on how many threads look.
    let shortest = |out: &str, jobs: &str| {
        let input = format!("{found}/schedule.jsonl");
        json(&[
            "minimize",
            &input,
            "--scenario",
            SCENARIO,
            "--out",
            out,
            "--budget",
            "1500r",
            "--jobs",
            jobs,
            "--json",
        ])
    };
    let summary = shortest(&min, "1");
    assert_eq!(summary["steps"], 6, "{summary}");
    let programs = &summary["programs"];
    // The search that proves the length looks at every history once; what is left of its work is known.
    assert!(programs["from_memory"].as_f64().unwrap() >= 0.4, "{programs}");
    assert!(programs["starts"].as_u64().unwrap() * 100 <= programs["steps"].as_u64().unwrap(), "{programs}");
    let other = path("other");
    shortest(&other, "8");
    let schedule = |folder: &str| std::fs::read_to_string(format!("{folder}/schedule.jsonl")).unwrap();
    assert_eq!(schedule(&min), schedule(&other));
    let replay = || {
        let mut told =
            json(&["replay", &format!("{min}/schedule.jsonl"), "--scenario", SCENARIO, "--strict", "--json"]);
        told.as_object_mut().unwrap().remove("seconds");
        told
    };
    let first = replay();
    assert_eq!(first["verdict"], "violates", "{first}");
    assert_eq!(first, replay());
    let history = format!("{min}/history.jsonl");
    let (status, text) = run(&["check-history", &history, "--workload", "lin-kv"]);
    assert_eq!(status, 1, "{text}");
    let (status, text) = run(&["check-history", &history, "--workload", "lin-kvs"]);
    assert!(status == 2 && text.contains("did you mean 'lin-kv'"), "{text}");
    let (status, text) = run(&["export", &min, "--format", "maelstrom-script"]);
    assert!(status == 0 && text.contains("tell n2 ") && text.contains("start n0"), "{text}");
    let trace = std::fs::read_to_string(format!("{min}/trace.md")).unwrap();
    // Of two replicas that wait for the value one is asked.
    assert!(trace.contains("**n1** takes from c2") || trace.contains("**n2** takes from c3"), "{trace}");
}

/// From the log of a run to the shortest schedule; and the first line that a changed program does not write.
#[test]
fn the_log_of_a_real_run_comes_to_its_shortest_schedule() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let log = "examples/programs/register-log.jsonl";
    let (followed, min) = (path("followed"), path("min"));
    let told = json(&["program", "follow", log, "--scenario", SCENARIO, "--out", &followed, "--json"]);
    assert_eq!(told["violation"][0], "lin-kv/not linearizable", "{told}");
    assert_eq!((&told["followed"], &told["parting"]), (&told["messages"], &Value::Null));
    let (schedule, scenario) = (format!("{followed}/schedule.jsonl"), format!("{followed}/scenario.toml"));
    let budget = ["--out", &min, "--budget", "20000states", "--json"];
    let summary = json(&[&["minimize", &schedule, "--scenario", &scenario], &budget[..]].concat());
    assert_eq!(summary["steps"], 6, "{summary}");
    let (status, text) = run(&["check-history", &format!("{min}/history.jsonl"), "--workload", "lin-kv"]);
    assert_eq!(status, 1, "{text}");
    // A program that forgets to tell others.
    let program = std::fs::read_to_string("examples/programs/register.py").unwrap();
    std::fs::write(path("changed.py"), program.replacen("\"type\": \"replicate\"", "\"type\": \"told\"", 1))
        .unwrap();
    let text = std::fs::read_to_string(SCENARIO).unwrap();
    std::fs::write(path("changed.toml"), text.replace("examples/programs/register.py", &path("changed.py")))
        .unwrap();
    let (status, text) =
        run(&["program", "follow", log, "--scenario", &path("changed.toml"), "--out", &path("other")]);
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("parts from the log at ") && text.contains("\"type\":\"told\""), "{text}");
    assert!(text.contains("\"type\": \"replicate\"") || text.contains("\"type\":\"replicate\""), "{text}");
}

#[test]
fn a_program_that_ends_at_its_start_is_told_so() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("ends.py"), "raise SystemExit(3)").unwrap();
    let text = format!(
        "network = \"unordered\"\n[model]\ncommand = [\"python3\", {:?}]\nnodes = 2\n[workload]\nname = \"echo\"\n",
        path("ends.py")
    );
    std::fs::write(path("s.toml"), text).unwrap();
    let (scenario, found, min) = (path("s.toml"), path("found"), path("min"));
    let (status, text) =
        run(&["fuzz", "--scenario", &scenario, "--seed", "1", "--runs", "1", "--out", &found]);
    assert!(status == 0 && text.contains("crash: n0, the program ended: exit status: 3"), "{text}");
    let schedule = format!("{found}/schedule.jsonl");
    let (status, text) = run(&["minimize", &schedule, "--scenario", &scenario, "--out", &min]);
    assert!(status != 0 && text.contains("is there before the first step"), "{status}: {text}");
    assert!(!Path::new(&min).exists(), "nothing is written");
}

#[test]
fn a_program_that_answers_nothing_is_told_so() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("silent.py"), "import sys\nfor line in sys.stdin: pass\n").unwrap();
    let text = format!(
        "network = \"unordered\"\n[model]\ncommand = [\"python3\", {:?}]\nnodes = 2\n[workload]\nname = \"echo\"\n",
        path("silent.py")
    );
    std::fs::write(path("s.toml"), text).unwrap();
    let scenario = path("s.toml");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fuzz = [
        "fuzz",
        "--scenario",
        &scenario,
        "--seed",
        "1",
        "--runs",
        "2",
        "--deliveries",
        "20",
        "--out",
        &path("found"),
    ];
    let output = Command::cargo_bin("demi-lineage").unwrap().current_dir(root).args(fuzz).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("operations was answered, so nothing is known of the program"), "{text}");
    let (status, text) = run(&["program", "check", "--scenario", &scenario, "--requests", "3"]);
    assert!(status == 1 && text.contains("does not answer 'init' with 'init_ok'"), "{status}: {text}");
    let begins = "import json, sys\nfor line in sys.stdin:\n    m = json.loads(line)\n    if m['body']['type'] == 'init':\n        \
                  print(json.dumps({'src': m['dest'], 'dest': m['src'], 'body': {'type': 'init_ok', 'in_reply_to': m['body']['msg_id']}}), flush=True)\n";
    std::fs::write(path("silent.py"), begins).unwrap();
    let (status, text) = run(&["program", "check", "--scenario", &scenario, "--requests", "3"]);
    assert!(status == 0 && text.contains("no request was answered"), "{status}: {text}");
}
