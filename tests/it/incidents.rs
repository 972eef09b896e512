//! Incidents from logs to pages: opened, worked on, found to be one bug, told apart, repaired and back.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const LOGS: &[u8] = include_bytes!("../../examples/demo/logs.jsonl.zst");
const SCENARIO: &str = include_str!("../../examples/demo/scenario.toml");
/// Little enough to be short, and counted, so that it ends in the same way everywhere.
const BUDGET: &str = "20000states";

fn demi(args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin("demi-lineage")).arg("-q").args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a command that must end with this status; its standard output.
fn ends(status: i32, args: &[&str]) -> String {
    let output = demi(args);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("logs.jsonl.zst"), LOGS).unwrap();
        std::fs::write(dir.path().join("scenario.toml"), SCENARIO).unwrap();
        Folder { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn store(&self) -> String {
        self.path("store")
    }

    fn incident(&self, status: i32, words: &[&str]) -> String {
        let store = self.store();
        let mut args = vec!["incident"];
        args.extend(words);
        args.extend(["--store", &store]);
        ends(status, &args)
    }

    fn open(&self, system: &str, more: &[&str]) -> String {
        let (logs, scenario) = (self.path("logs.jsonl.zst"), self.path("scenario.toml"));
        let mut words = vec!["open", &logs, "--system", system, "--scenario", &scenario, "--budget", BUDGET];
        words.extend(more);
        self.incident(0, &words).trim().to_owned()
    }

    fn json(&self, words: &[&str]) -> Value {
        let store = self.store();
        let mut args = vec!["incident"];
        args.extend(words);
        args.extend(["--store", &store, "--json"]);
        serde_json::from_slice(&demi(&args).stdout).unwrap()
    }

    fn data(&self, id: &str) -> PathBuf {
        Path::new(&self.store()).join("incidents/data").join(id)
    }
}

#[test]
fn logs_become_a_page_and_a_second_occurrence_is_the_same_bug() {
    let folder = Folder::new();
    assert_eq!(folder.incident(0, &["list"]).lines().count(), 1, "nothing so far");
    let first = folder.open("demo", &["--system-version", "1.4.0"]);
    assert_eq!(folder.open("demo", &["--system-version", "1.4.0"]), first, "opened once");
    let worked = folder.incident(0, &["work", "--once"]);
    assert!(worked.contains("B-1"), "{worked}");
    let incident = folder.json(&["show", &first]);
    assert_eq!((&incident["work"], &incident["result"]), (&"done".into(), &"minimized".into()), "{incident}");
    let steps = incident["steps"].as_u64().unwrap();
    assert!((26..=40).contains(&steps), "{incident}");
    assert_eq!(incident["findings"]["story"].as_array().unwrap().len() as u64, steps);
    // The first page and the last one.
    let pages: Vec<PathBuf> = incident["findings"]["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|output| output["name"].as_str().unwrap())
        .filter(|name| name.ends_with("page.html"))
        .map(|name| folder.data(&first).join(name))
        .collect();
    assert_eq!(pages.len(), 2);
    assert!(pages.iter().all(|page| std::fs::read_to_string(page).unwrap().contains("<html")));
    let shown = folder.incident(0, &["show", "B-1"]);
    assert!(shown.contains("of 677 recorded steps") && shown.contains("raft45_duplicate_votes"), "{shown}");
    assert_eq!(folder.incident(1, &["list"]).lines().count(), 2, "an open bug");

    // Given to somebody else, it is the same bug there, of which nothing is believed that was not looked at.
    let (bundle, theirs) = (folder.path("bundle.tar.zst"), folder.path("theirs"));
    folder.incident(0, &["bundle", "B-1", "--out", &bundle]);
    let taken = ends(0, &["incident", "import", &bundle, "--store", &theirs]).trim().to_owned();
    assert_eq!(ends(0, &["incident", "import", &bundle, "--store", &theirs]).trim(), taken, "taken once");
    assert_eq!(folder.incident(0, &["import", &bundle]).trim(), first, "its own store knows it");
    ends(0, &["incident", "work", "--once", "--store", &theirs]);
    let shown = ends(0, &["incident", "show", &taken, "--store", &theirs, "--json"]);
    let there: Value = serde_json::from_str(&shown).unwrap();
    for same in ["steps", "system", "version"] {
        assert_eq!(there[same], incident[same], "{there}");
    }
    assert_eq!(there["findings"]["keys"], incident["findings"]["keys"]);
    assert_eq!((&there["bug"], &there["findings"]["verified"]), (&"B-1".into(), &false.into()), "{there}");
    let theirs_data = Path::new(&theirs).join("incidents/data").join(&taken);
    let kept = std::fs::read_dir(&theirs_data).unwrap().map(|entry| entry.unwrap().path());
    let result =
        kept.into_iter().find(|path| path.join("schedule.jsonl").is_file()).unwrap().display().to_string();
    ends(
        0,
        &[
            "replay",
            &format!("{result}/schedule.jsonl"),
            "--scenario",
            &format!("{result}/scenario.toml"),
            "--strict",
        ],
    );
    assert!(ends(0, &["incident", "verify", "--store", &theirs]).contains("nothing is missing"));
    // The model is in Rust, and so is the test.
    let test = folder.data(&first).join("x");
    let tests = incident["findings"]["outputs"].as_array().unwrap().iter();
    let tests: Vec<&str> =
        tests.filter_map(|output| output["name"].as_str()).filter(|name| name.ends_with(".rs")).collect();
    assert_eq!(tests.len(), 1, "{incident}");
    assert!(std::fs::read_to_string(test.with_file_name(tests[0])).unwrap().contains("#[test]"));

    // The bug as a regression suite: on the model as it is, and on one without the defect.
    let scenario = folder.path("scenario.toml");
    let repaired = folder.path("repaired.toml");
    std::fs::write(
        &repaired,
        SCENARIO.replace("raft45_duplicate_votes = true", "raft45_duplicate_votes = false"),
    )
    .unwrap();
    assert!(folder.incident(1, &["replay", "--all", "--scenario", &scenario]).contains("violates"));
    let other = folder.path("other.toml");
    std::fs::write(&other, "model = \"two-phase\"\n").unwrap();
    assert!(!folder.incident(0, &["replay", "--all", "--scenario", &other]).contains("B-1"));
    let refused = demi(&["incident", "close", "B-1", "--store", &folder.store(), "--scenario", &scenario]);
    assert!(said(&refused).contains("B-1 stays open"), "{}", said(&refused));
    let junit = folder.path("bugs.xml");
    let verdict = demi(&[
        "incident",
        "replay",
        "B-1",
        "--store",
        &folder.store(),
        "--scenario",
        &repaired,
        "--junit",
        &junit,
    ]);
    assert!(matches!(verdict.status.code(), Some(0 | 1 | 4)), "{}", said(&verdict));
    assert!(std::fs::read_to_string(&junit).unwrap().contains("tests=\"1\""));

    folder.incident(0, &["close", "B-1", "--fixed-in", "1.4.2"]);
    folder.incident(0, &["list"]);
    // An older version does not bring it back; a later one does.
    folder.open("staging", &["--system-version", "1.4.1"]);
    folder.incident(0, &["work", "--once"]);
    let bug = folder.json(&["show", "B-1"]);
    assert_eq!((&bug["status"], &bug["since_fixed"][0]), (&"resolved".into(), &1.into()), "{bug}");
    folder.open("demo", &["--system-version", "1.4.10", "--invariant", "ElectionSafety"]);
    folder.incident(0, &["work", "--once"]);
    let bug = folder.json(&["show", "B-1"]);
    assert_eq!(bug["occurrences"], 3, "{bug}");
    assert_eq!((&bug["status"], &bug["regressions"]), (&"regressed".into(), &1.into()), "{bug}");
    folder.incident(0, &["ack", "B-1"]);
    let again = demi(&["incident", "ack", "B-1", "--store", &folder.store()]);
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("that cannot be done now: it is acknowledged"), "{}", said(&again));

    assert!(folder.incident(0, &["verify"]).contains("nothing is missing"));
    std::fs::write(&pages[0], "other").unwrap();
    assert!(folder.incident(1, &["verify"]).contains("missing or damaged"));
}

/// Random runs of two defects of one model: with a small budget no two of their schedules are equal, and the shortest way is not found.
#[test]
fn recordings_of_one_defect_are_one_bug_and_those_of_another_are_another() {
    let folder = Folder::new();
    let recordings = [("raft-45", "101"), ("raft-46", "101"), ("raft-45", "102"), ("raft-46", "102")];
    let store = folder.store();
    let mut ids = Vec::new();
    for (defect, seed) in recordings {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("replay/scenarios/{defect}.toml"));
        // One model, with another defect.
        let scenario = folder.path(&format!("{defect}/raft.toml"));
        std::fs::create_dir_all(folder.path(defect)).unwrap();
        std::fs::copy(from, &scenario).unwrap();
        let found = folder.path(&format!("{defect}-{seed}"));
        demi(&["fuzz", "--scenario", &scenario, "--seed", seed, "--out", &found]);
        let logs = std::fs::read_dir(Path::new(&found).join("logs")).unwrap();
        let logs: Vec<String> = logs.map(|log| log.unwrap().path().display().to_string()).collect();
        let mut words = vec!["incident", "open", "--store", &store, "--system", seed];
        words.extend(["--scenario", &scenario, "--budget", BUDGET]);
        words.extend(logs.iter().map(String::as_str));
        ids.push(ends(0, &words).trim().to_owned());
    }
    folder.incident(0, &["work", "--once"]);
    let bug = |id: &String| {
        let incident = folder.json(&["show", id]);
        assert_eq!(incident["result"], "minimized", "{incident}");
        (
            incident["bug"].as_str().unwrap().to_owned(),
            incident["findings"]["cause"].to_string(),
            incident["why"].to_string(),
        )
    };
    let bugs: Vec<_> = ids.iter().map(bug).collect();
    assert!(bugs[0].1.contains("raft45_duplicate_votes"), "{bugs:?}");
    assert_eq!(bugs[0].0, bugs[2].0, "{bugs:?}");
    assert_eq!(bugs[1].0, bugs[3].0, "{bugs:?}");
    assert_ne!(bugs[0].0, bugs[1].0, "{bugs:?}");
}

#[test]
fn what_fails_says_why_and_without_a_model_there_is_the_past() {
    let folder = Folder::new();
    let logs = folder.path("logs.jsonl.zst");
    let unmodelled = folder.incident(0, &["open", &logs, "--system", "zebra7"]).trim().to_owned();
    std::fs::write(folder.path("scenario.toml"), "model = \"no such model\"\n").unwrap();
    let failing = folder.open("demo", &[]);
    let missing = folder.incident(0, &["open", "--system", "nowhere"]).trim().to_owned();
    folder.incident(0, &["work", "--once"]);
    let of = |id: &str| folder.json(&["show", id]);
    let shown = of(&unmodelled);
    assert_eq!((&shown["result"], &shown["bug"]), (&"unmodelled".into(), &"B-1".into()), "{shown}");
    let failed = of(&failing);
    assert_eq!((&failed["work"], &failed["result"]), (&"failed".into(), &"model_failed".into()), "{failed}");
    assert!(failed["said"].as_str().unwrap().contains("no such model"), "{failed}");
    let lost = of(&missing);
    assert_eq!((&lost["work"], &lost["result"]), (&"failed".into(), &"store_unreadable".into()), "{lost}");
    // Asked for, it is tried again, with all its tries.
    std::fs::write(folder.path("scenario.toml"), SCENARIO).unwrap();
    folder.incident(0, &["retry", &failing]);
    folder.incident(0, &["work", "--once"]);
    assert_eq!(of(&failing)["result"], "minimized");

    // What is forgotten is in no file, and the rest is as it was.
    folder.incident(0, &["note", "B-1", "seen in zebra7"]);
    assert!(!files_with(Path::new(&folder.store()), "zebra7").is_empty());
    let told = folder.incident(0, &["purge", "--system", "zebra7"]);
    assert!(told.contains("1 incidents are forgotten"), "{told}");
    assert_eq!(files_with(Path::new(&folder.store()), "zebra7"), Vec::<PathBuf>::new());
    assert!(!folder.data(&unmodelled).exists());
    assert_eq!(of(&unmodelled)["work"], "purged");
    assert_eq!(of(&failing)["result"], "minimized");
    assert!(folder.incident(0, &["verify"]).contains("nothing is missing"));
}

/// An actor stands in executions, pages, schedules and logs; afterwards in none of them.
#[test]
fn an_actor_is_forgotten_down_to_the_last_file() {
    let folder = Folder::new();
    let log = |name: &str, actor: &str| {
        let text = format!(
            "{{\"actor\":\"{actor}\",\"seq\":1,\"kind\":\"start\"}}\n\
             {{\"actor\":\"{actor}\",\"seq\":2,\"kind\":\"send\",\"msg_id\":\"1\",\"to\":\"b\",\"type\":\"Ping\"}}\n\
             {{\"actor\":\"b\",\"seq\":1,\"kind\":\"receive\",\"msg_id\":\"1\",\"from\":\"{actor}\",\"type\":\"Ping\"}}\n\
             {{\"actor\":\"_test\",\"seq\":1,\"kind\":\"violation\",\"fields\":{{\"fingerprints\":[\"I:b\"],\"affected\":[\"b\"]}}}}\n"
        );
        let path = folder.path(name);
        std::fs::write(&path, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
        path
    };
    let (first, second) = (log("first.zst", "giraffe5"), log("second.zst", "a"));
    let named = folder.incident(0, &["open", &first, "--system", "one"]).trim().to_owned();
    let other = folder.incident(0, &["open", &second, "--system", "one"]).trim().to_owned();
    folder.incident(0, &["work", "--once"]);
    assert_eq!(folder.json(&["show", &named])["result"], "unmodelled");
    assert!(!files_with(&folder.data(&named), "giraffe5").is_empty());
    let told = folder.incident(0, &["purge", "--actor", "giraffe5"]);
    assert!(told.contains("1 incidents are forgotten"), "{told}");
    assert_eq!(files_with(Path::new(&folder.store()), "giraffe5"), Vec::<PathBuf>::new());
    assert!(!folder.data(&named).exists());
    let uploads = std::fs::read_dir(Path::new(&folder.store()).join("incidents/uploads")).unwrap().count();
    assert_eq!(uploads, 1, "the other's log stays");
    assert_eq!(folder.json(&["show", &other])["result"], "unmodelled");
    assert!(folder.incident(0, &["purge", "--actor", "giraffe5"]).contains("0 incidents"));

    // Events that are deleted from the store take the incidents with them that hold them, where that is asked for.
    let store = folder.store();
    ends(0, &["ingest", "load", &first, "--store", &store, "--system", "two"]);
    let of_store = folder.incident(0, &["open", "--system", "two", "--at", "b/1"]).trim().to_owned();
    folder.incident(0, &["work", "--once"]);
    assert_eq!(folder.json(&["show", &of_store])["result"], "unmodelled");
    let delete = ["ingest", "delete", "--store", &store, "--system", "two", "--actor", "giraffe5"];
    let told = ends(0, &[&delete[..], &["--json"]].concat());
    assert!(told.contains("--incidents forgets it"), "{told}");
    assert!(!files_with(&folder.data(&of_store), "giraffe5").is_empty());
    let told = ends(0, &[&delete[..], &["--incidents"]].concat());
    // The other one is of the violation record in the store.
    assert!(told.contains("2 incidents are forgotten"), "{told}");
    // In the store stand the messages of others that name it.
    assert_eq!(files_with(&Path::new(&store).join("incidents"), "giraffe5"), Vec::<PathBuf>::new());
    assert_eq!(folder.json(&["show", &of_store])["work"], "purged");
}

/// Files below a folder in which a text stands.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn violation_records_of_the_store_become_incidents_by_themselves() {
    let folder = Folder::new();
    let (store, logs) = (folder.store(), folder.path("logs.jsonl.zst"));
    ends(0, &["ingest", "load", &logs, "--store", &store, "--system", "demo"]);
    let models = folder.path("models.toml");
    let text = format!(
        "[models.raft]\nscenario = \"scenario.toml\"\ntakes = {{ systems = [\"de*\"] }}\n\
         limits = {{ budget = \"{BUDGET}\", further = \"{BUDGET}\" }}\n"
    );
    std::fs::write(&models, text).unwrap();
    let work = ["work", "--once", "--models", &models, "--settle", "0"];
    folder.incident(0, &work);
    let list = || folder.json(&["list", "--incidents"]);
    let found = list();
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    let of = |key: &str| found[0][key].clone();
    assert_eq!((of("source"), of("result"), of("bug")), ("record".into(), "minimized".into(), "B-1".into()));
    // What is loaded again is no news, and another record is.
    ends(0, &["ingest", "load", &logs, "--store", &store, "--system", "demo"]);
    let more = folder.path("more.jsonl");
    let record = r#"{"actor":"_checker","seq":1,"kind":"violation","fields":{"fingerprints":["ElectionSafety:raft-member-3:raft-member-4"],"affected":["raft-member-3","raft-member-4"]}}"#;
    std::fs::write(&more, record).unwrap();
    ends(0, &["ingest", "load", &more, "--store", &store, "--system", "demo"]);
    folder.incident(0, &work);
    folder.incident(0, &work);
    let found = list();
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
    assert_eq!(folder.json(&["show", "B-1"])["occurrences"], 2);
    // One record of two is a violation by itself.
    let out = folder.path("exec");
    let build =
        |record: &str| demi(&["build", "--store", &store, "--out", &out, "--violation", record, "--json"]);
    let built: Value = serde_json::from_slice(&build("record:_checker/1").stdout).unwrap();
    assert_eq!(built["affected"].as_array().unwrap().len(), 2, "{built}");
    assert!(built["warnings"].as_array().is_none_or(Vec::is_empty), "{built}");
    let none = build("record:raft-member-1/1");
    assert!(said(&none).contains("raft-member-1/1 is no violation record"), "{}", said(&none));
}
