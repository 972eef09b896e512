//! `explore`: the promise, what is found, and the statuses.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::process::Command;

use base64::Engine;
use serde_json::Value;

const SCENARIO: &str =
    "model = \"two-phase\"\nnetwork = \"fifo\"\nmembers = 2\n[switches]\ncommit_on_timeout = BUG\n";

fn run(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
        .args(line.split(' '))
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn folder(bug: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.toml"), SCENARIO.replace("BUG", &bug.to_string())).unwrap();
    folder
}

#[test]
fn the_least_violation_is_found_and_minimized() {
    let folder = folder(true);
    let at = folder.path();
    let (status, told, _) = run(at, "explore --scenario s.toml --externals 2 --out e --json -q");
    assert_eq!(status, Some(1), "{told}");
    let summary: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(summary["findings"][0]["cost"], 1, "{told}");
    assert_eq!(summary["promise"]["bound"], 0, "{told}");
    let (status, ..) = run(at, "explore --scenario s.toml --externals 2 --out e --expect violation -q");
    assert_eq!(status, Some(0));
    assert_eq!(run(at, "replay e --scenario s.toml --strict -q").0, Some(0));
    let (status, told, _) = run(at, "minimize e --scenario s.toml --out m -q --budget 2000r");
    assert!(status == Some(0) && told.contains("Atomicity"), "{told}");
    // Two runs write the same.
    let first = std::fs::read_to_string(at.join("e/summary.json")).unwrap();
    run(at, "explore --scenario s.toml --externals 2 --out e -q");
    assert_eq!(std::fs::read_to_string(at.join("e/summary.json")).unwrap(), first);
}

#[test]
fn what_is_not_there_is_promised() {
    let folder = folder(false);
    let at = folder.path();
    let line = "explore --scenario s.toml --externals 1 --bound 2 --faults 1 --out e -q";
    let (status, told, _) = run(at, line);
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains(
            "at most 2 deviations from the default order, at most 1 client message and at most 1 fault"
        ),
        "{told}"
    );
    assert!(told.contains("whatever its length"), "{told}");
    let (status, told, _) = run(at, "explore --scenario s.toml --externals 1 --depth 3 --out e -q");
    assert!(status == Some(0) && told.contains("within 3 steps"), "{told}");
    let (status, told, _) = run(at, "explore --scenario s.toml --bound 3 --budget 100states --out e -q");
    assert!(status == Some(4) && told.contains("The budget ended before the bound"), "{told}");
    let (status, _, told) = run(at, "explore --scenario s.toml --budget 10r --out e -q");
    assert!(status == Some(2) && told.contains("replays nothing"), "{told}");
    let (status, _, told) = run(at, "explore --scenario s.toml --cost distance --out e -q");
    assert!(status == Some(2) && told.contains("no cost 'distance'"), "{told}");
}

#[test]
fn what_else_could_have_gone_wrong_around_a_recording() {
    let folder = folder(true);
    let at = folder.path();
    let (status, ..) = run(at, "fuzz --scenario s.toml --seed 3 --out f -q");
    assert_eq!(status, Some(0));
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(at.join("f/summary.json")).unwrap()).unwrap();
    let (status, told, _) =
        run(at, "explore --from f --last 4 --bound 0 --scenario s.toml --out e --json -q");
    assert_eq!(status, Some(1), "{told}");
    let summary: Value = serde_json::from_str(&told).unwrap();
    let finding = &summary["findings"][0];
    assert_eq!(
        (&finding["cost"], &finding["violation"]),
        (&Value::from(0), &recorded["violation"]),
        "{told}"
    );
    assert_eq!(finding["deliveries"], recorded["deliveries"], "{told}");
    assert_eq!(run(at, "replay e --scenario s.toml --strict -q").0, Some(0));

    let (status, told, _) =
        run(at, "explore --from f --every 5 --depth 30 --bound 1 --all --scenario s.toml --out e --json -q");
    let summary: Value = serde_json::from_str(&told).unwrap();
    assert!(status == Some(1) && !summary["findings"].as_array().unwrap().is_empty(), "{told}");
    assert!(summary["beginnings"].as_array().unwrap().len() > 2, "{told}");

    let (status, _, told) = run(at, "explore --from f --externals 2 --scenario s.toml --out e -q");
    assert!(status == Some(2) && told.contains("--externals is for the scenario's beginning"), "{told}");
    let (status, _, told) = run(at, "explore --from f --scenario s.toml --out f -q");
    assert!(status == Some(2) && told.contains("is being read"), "{told}");
}

#[test]
fn a_promise_is_checked_from_scratch() {
    let folder = folder(true);
    let at = folder.path();
    let (status, ..) = run(at, "explore --scenario s.toml --externals 2 --out e -q");
    assert_eq!(status, Some(1));
    let (status, told, _) = run(at, "verify e -q");
    assert!(
        status == Some(0) && told.contains("at most 2 client messages") && told.contains("Atomicity"),
        "{told}"
    );
    let summary = std::fs::read_to_string(at.join("e/summary.json")).unwrap();
    let tampered = |from: &str, to: &str| {
        assert!(summary.contains(from), "{summary}");
        std::fs::write(at.join("e/summary.json"), summary.replace(from, to)).unwrap();
        run(at, "verify e -q")
    };
    let (status, _, told) = tampered("\"text\": \"No execution", "\"text\": \"Not one execution");
    assert!(status == Some(1) && told.contains("in words is not that in figures"), "{told}");
    let (status, _, told) = tampered("\"Atomicity", "\"Totality");
    assert!(status == Some(1) && told.contains("but strict replay says"), "{told}");
    // A deviation more than is true, in figures and in words.
    let more = summary
        .replace("\"promise\": {\n    \"bound\": 0", "\"promise\": {\n    \"bound\": 1")
        .replace("with no deviation", "with at most 1 deviation");
    assert_ne!(more, summary);
    std::fs::write(at.join("e/summary.json"), more).unwrap();
    let (status, _, told) = run(at, "verify e -q");
    assert!(
        status == Some(1) && told.contains("an execution within the promise violates Atomicity"),
        "{told}"
    );
    // Around a recording, from the folder alone.
    assert_eq!(run(at, "fuzz --scenario s.toml --seed 3 --out f -q").0, Some(0));
    let line = "explore --from f --last 6 --bound 1 --all --scenario s.toml --out r -q";
    assert_eq!(run(at, line).0, Some(1));
    std::fs::remove_dir_all(at.join("f")).unwrap();
    let (status, told, err) = run(at, "verify r --json -q");
    assert!(status == Some(0) && told.contains("\"holds\": true"), "{told}{err}");
}

#[test]
fn an_exploration_that_was_stopped_goes_on() {
    let folder = folder(false);
    let at = folder.path();
    let line = "explore --scenario s.toml --externals 2 --bound 2 --faults 1 --depth 30 --json -q --out";
    let (status, whole, _) = run(at, &format!("{line} whole"));
    assert_eq!(status, Some(0), "{whole}");
    let (status, told, _) = run(at, &format!("{line} e --budget 1000states --jobs 2"));
    assert!(status == Some(4) && told.contains("\"stopped\""), "{told}");
    assert!(at.join("e/unfinished.jsonl.zst").is_file());
    // What differs is refused, and nothing is lost by it.
    let (status, _, told) = run(at, &format!("{} e --resume", line.replace("--bound 2", "--bound 3")));
    assert!(status == Some(2) && told.contains("--bound is 3, and was 2 then"), "{told}");
    let (status, _, told) = run(at, &format!("{line} whole --resume"));
    assert!(status == Some(2) && told.contains("nothing to resume"), "{told}");
    let mut legs = 1;
    let last = loop {
        let (status, told, err) = run(at, &format!("{line} e --resume --budget 1000states --jobs 1"));
        legs += 1;
        match status {
            Some(4) => continue,
            Some(0) => break told,
            _ => panic!("{told}{err}"),
        }
    };
    assert!(legs > 2, "{legs}");
    assert_eq!(last, whole);
    assert!(!at.join("e/unfinished.jsonl.zst").exists());
    // A damaged file is named, with the place.
    run(at, &format!("{line} e --budget 1000states"));
    let path = at.join("e/unfinished.jsonl.zst");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let (status, _, told) = run(at, &format!("{line} e --resume"));
    assert!(status == Some(2) && told.contains("unfinished.jsonl.zst"), "{told}");
}

#[test]
fn what_left_the_default_order_is_shown() {
    let folder = folder(true);
    let at = folder.path();
    let (status, told, _) = run(at, "explore --scenario s.toml --externals 2 --out e -q");
    assert!(status == Some(1) && told.contains("instead of"), "{told}");
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(at.join("e/summary.json")).unwrap()).unwrap();
    let finding = &summary["findings"][0];
    let deviations = finding["deviations"].as_array().unwrap();
    assert_eq!(deviations.iter().map(|one| one["cost"].as_u64().unwrap()).sum::<u64>(), 1, "{finding}");
    let (status, told, err) = run(at, "report e --html page.html -q");
    assert_eq!(status, Some(0), "{told}{err}");
    let page = std::fs::read_to_string(at.join("page.html")).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data = base64::engine::general_purpose::STANDARD.decode(data.split('<').next().unwrap()).unwrap();
    let data: Value = serde_json::from_reader(flate2::read::GzDecoder::new(data.as_slice())).unwrap();
    let trace = &data["traces"][0];
    assert_eq!(trace["deviations"].as_array().unwrap().len(), deviations.len());
    assert_eq!(trace["notes"][0], serde_json::json!([trace["deviations"][0], deviations[0]["instead_of"]]));
}
