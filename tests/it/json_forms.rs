//! Every `--json` form and the answers of `/v1` have a JSON Schema, and are what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::reference;

/// All commands with `--json`, and the schema of what each prints, in `schemas/json`.
const FORMS: [(&str, &str); 34] = [
    ("build", "build-summary"),
    ("check", "answers/check"),
    ("check-history", "answers/check-history"),
    ("explore", "explore-summary"),
    ("fuzz", "fuzz-summary"),
    ("incident list", "answers/incident-list"),
    ("incident replay", "answers/incident-replay"),
    ("incident show", "answers/incident-show"),
    ("infer", "answers/infer"),
    ("ingest backup", "answers/ingest-backup"),
    ("ingest delete", "answers/ingest-delete"),
    ("ingest load", "load-summary"),
    ("ingest mappings", "answers/ingest-mappings"),
    ("ingest parse", "answers/ingest-parse"),
    ("ingest requeue", "answers/ingest-requeue"),
    ("ingest restore", "answers/ingest-restore"),
    ("ingest status", "answers/ingest-status"),
    ("ingest verify", "answers/ingest-verify"),
    ("lineage refresh", "answers/lineage-refresh"),
    ("minimize", "minimize-summary"),
    ("model check", "answers/model-check"),
    ("program check", "answers/program-check"),
    ("program follow", "answers/program-follow"),
    ("query check", "answers/query-check"),
    ("query cut", "answers/query-cut"),
    ("query find", "answers/query-find"),
    ("query future", "answers/query-future"),
    ("query order", "answers/query-order"),
    ("query past", "answers/query-past"),
    ("query path", "answers/query-path"),
    ("query stats", "answers/query-stats"),
    ("replay", "replay-summary"),
    ("threads show", "answers/threads-show"),
    ("threads verify", "answers/verify"),
];
/// `verify` prints nothing where a result does not hold.
const VERIFY: (&str, &str) = ("verify", "answers/verify");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema(name: &str) -> PathBuf {
    root().join(format!("schemas/json/{name}.schema.json"))
}

fn forms() -> BTreeMap<&'static str, &'static str> {
    FORMS.into_iter().chain([VERIFY]).collect()
}

#[test]
fn every_json_form_has_a_schema() {
    let mut there = BTreeSet::new();
    reference::commands(&[], &mut |command, help| {
        if help.lines().any(|line| line.trim_start().starts_with("--json")) {
            there.insert(command.join(" "));
        }
    });
    let known: BTreeSet<String> = forms().keys().map(|&command| command.to_owned()).collect();
    assert_eq!(there, known, "commands with --json, and those with a schema");
    for name in forms().values() {
        let text = fs::read_to_string(schema(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(schema["title"].is_string() && schema["$schema"].is_string(), "{name}");
    }
    // None lies there that nobody answers with.
    for entry in fs::read_dir(root().join("schemas/json/answers")).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().into_owned();
        let name = format!("answers/{}", file.trim_end_matches(".schema.json"));
        assert!(name.starts_with("answers/v1-") || forms().values().any(|&known| known == name), "{name}");
    }
}

/// A folder in which commands run, and the answers that they gave.
struct Desk {
    folder: tempfile::TempDir,
    answers: Vec<(PathBuf, PathBuf)>,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempfile::tempdir().unwrap(), answers: Vec::new() }
    }

    fn command(&self, line: &str) -> Command {
        // Words are divided by blanks, those in single quotes are one.
        let mut words = Vec::new();
        for (nr, part) in line.split('\'').enumerate() {
            match nr % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        let words: Vec<String> =
            words.iter().map(|word| word.replace("ROOT", &root().display().to_string())).collect();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("demi-lineage"));
        command.arg("-q").args(words).current_dir(self.folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Runs a command, and keeps nothing of what it prints.
    fn run(&self, line: &str) {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a command with `--json`, which ends with 0 or 1, and keeps its answer.
    fn asks(&mut self, form: &str, line: &str) {
        let output = self.command(line).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {error}");
        assert!(!output.stdout.is_empty(), "{line}: {error}");
        self.keeps(forms()[form], &output.stdout);
    }

    fn keeps(&mut self, name: &str, answer: &[u8]) {
        let file = self.folder.path().join(format!("answer-{}.json", self.answers.len()));
        fs::write(&file, answer).unwrap();
        self.answers.push((schema(name), file));
    }

    /// Compares all answers with their schemas.
    fn are_right(&self) {
        let python = std::env::var_os("DEMI_PYTHON").unwrap_or_else(|| "python3".into());
        let there = Command::new(&python).args(["-c", "import jsonschema"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            assert!(std::env::var_os("CI").is_none(), "the Python package jsonschema must be there");
            println!("skipped: no Python with jsonschema (set DEMI_PYTHON)");
            return;
        }
        let mut command = Command::new(python);
        command.arg(root().join("tests/it/json_schemas.py"));
        command.args(self.answers.iter().flat_map(|(schema, answer)| [schema, answer]));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("answers"));
    }
}

/// A command that runs until it is told to stop.
struct Served(Child);

impl Served {
    /// Starts it, and waits for a line of its output that begins so; gives the rest of the line.
    fn start(mut command: Command, line: &str) -> (Served, String) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (out, wanted) = (BufReader::new(child.stdout.take().unwrap()), line.to_owned());
        let (tell, told) = std::sync::mpsc::channel();
        // It reads on, so that the command never writes to nobody.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(rest) = line.strip_prefix(&wanted) {
                    let _ = tell.send(rest.to_owned());
                }
            }
        });
        let served = Served(child);
        (served, told.recv().unwrap_or_else(|_| panic!("it ended without a line '{line}'")))
    }

    fn stop(mut self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn curl(url: &str, body: Option<&str>) -> Vec<u8> {
    let mut curl = Command::new("curl");
    curl.args(["-s", url]);
    if let Some(body) = body {
        curl.args(["-H", "content-type: application/json", "-d", body]);
    }
    let output = curl.output().unwrap();
    assert!(output.status.success(), "{url}");
    output.stdout
}

#[test]
fn answers_about_logs_are_what_their_schemas_say() {
    let mut desk = Desk::new();
    desk.asks("fuzz", "fuzz --scenario ROOT/replay/scenarios/raft-46.toml --seed 1 --state --out run --json");
    desk.asks("fuzz", "fuzz --scenario ROOT/replay/scenarios/raft-66.toml --seed 11 --healthy 4 --state --deliveries 120 --out runs --json");
    desk.asks("ingest load", "ingest load run/logs --store store --system raft --json");
    desk.asks("ingest load", "ingest load run/logs --store store --system raft --json");
    desk.asks("ingest load", "ingest load ROOT/ingest/formats/tests/formats/shiviz.log --store store --system s --mapping shiviz --json");
    desk.asks("ingest status", "ingest status --store store --json");
    desk.asks("lineage refresh", "lineage refresh --store store --system raft --json");
    desk.asks(
        "ingest requeue",
        "ingest requeue --store store --system 's/first run' --mapping shiviz --json",
    );
    desk.asks("ingest backup", "ingest backup --store store --out backup --json");
    desk.asks("ingest restore", "ingest restore backup --store restored --json");
    desk.asks("ingest delete", "ingest delete --store restored --system raft --actor raft-member-4 --json");
    desk.asks("ingest delete", "ingest delete --store restored --before 2020-01-01 --json");
    desk.asks(
        "ingest parse",
        "ingest parse ROOT/ingest/formats/tests/formats/shiviz.log --mapping shiviz --json",
    );
    desk.asks("ingest mappings", "ingest mappings --json");
    desk.asks("build", "build run/logs --out exec --json");
    desk.asks("query order", "query exec order raft-member-1/5 raft-member-2/900 --json");
    desk.asks("query find", "query exec find VoteCandidate --limit 3 --json");
    desk.asks("query past", "query exec past raft-member-1/30 --json");
    desk.asks("query future", "query exec future raft-member-1/30 --json");
    desk.asks("query path", "query exec path raft-member-1/5 raft-member-2/900 --json");
    desk.asks("query path", "query exec path raft-member-2/900 raft-member-1/5 --json");
    desk.asks("query cut", "query exec cut --at raft-member-1/30 --state --json");
    desk.asks("query cut", "query exec cut raft-member-1/30 raft-member-2/30 --json");
    desk.asks("query check", "query exec check 'term >= 0' --json");
    desk.asks("query check", "query exec check 'term < 2' --json");
    desk.asks("query stats", "query exec stats --json");
    desk.asks("infer", "infer runs --out invariants.toml --json");
    desk.asks("check", "check exec --invariants invariants.toml --json");
    desk.are_right();
}

#[test]
fn answers_of_searches_are_what_their_schemas_say() {
    let mut desk = Desk::new();
    desk.asks("build", "build ROOT/examples/demo/logs.jsonl.zst --system demo --out demo --json");
    desk.asks("replay", "replay demo --scenario ROOT/examples/demo/scenario.toml --json");
    desk.asks("fuzz", "fuzz --scenario ROOT/replay/scenarios/raft-66.toml --seed 11 --runs 2 --deliveries 50 --out none --json");
    desk.run("fuzz --scenario ROOT/replay/scenarios/raft-46.toml --seed 1 --out run");
    desk.asks("minimize", "minimize run/schedule.jsonl --scenario ROOT/replay/scenarios/raft-46.toml --out min --budget 50000states --json");
    desk.asks("verify", "verify min --json");
    desk.asks("explore", "explore --scenario ROOT/replay/scenarios/raft-46.toml --bound 2 --budget 200000states --out explored --json");
    desk.asks("model check", "model check --json -- python3 ROOT/sdk/python/examples/lock.py");
    fs::write(desk.folder.path().join("bank.jsonl"), crate::threads::SCHEDULE).unwrap();
    desk.asks("threads show", "threads show bank.jsonl --json");
    fs::create_dir(desk.folder.path().join("tests")).unwrap();
    fs::write(desk.folder.path().join("tests/bank.jsonl"), crate::threads::SCHEDULE).unwrap();
    fs::write(desk.folder.path().join("tests/bank.summary.json"), crate::threads::SUMMARY).unwrap();
    desk.asks("threads show", "threads show tests --json");
    desk.asks("threads verify", "threads verify tests --json");
    // A program as it is, named by its place from here.
    let program = fs::read_to_string(root().join("examples/programs/register.toml")).unwrap();
    let program = program.replace("examples/programs/", &format!("{}/examples/programs/", root().display()));
    fs::write(desk.folder.path().join("register.toml"), program).unwrap();
    desk.asks("program check", "program check --scenario register.toml --json");
    desk.asks(
        "fuzz",
        "fuzz --scenario register.toml --seed 1 --runs 20 --deliveries 60 --out program --json",
    );
    desk.asks(
        "program follow",
        "program follow ROOT/examples/programs/register-log.jsonl --scenario register.toml --out followed --json",
    );
    desk.asks("check-history", "check-history program/history.jsonl --workload lin-kv --json");
    desk.are_right();
}

#[test]
fn answers_of_services_are_what_their_schemas_say() {
    let mut desk = Desk::new();
    // A daemon, and what its spool says when it has ended.
    let config = "[store]\ndir = \"store\"\n[spool]\ndir = \"spool\"\n\
                  [sources.web]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n";
    fs::write(desk.folder.path().join("demi.toml"), config).unwrap();
    let (daemon, web) = Served::start(desk.command("ingest serve demi.toml"), "web ");
    let record = r#"{"actor":"a","seq":1,"kind":"start"}"#;
    let taken = curl(&format!("http://{web}/v1/events"), Some(record));
    desk.keeps("answers/v1-events", &taken);
    daemon.stop();
    desk.asks("ingest verify", "ingest verify --store store --spool spool --json");

    let scenario = "ROOT/examples/demo/scenario.toml";
    desk.run(&format!("incident open ROOT/examples/demo/logs.jsonl.zst --store incidents --system demo --scenario {scenario} --budget 20000states"));
    desk.run("incident work --store incidents --once");
    desk.asks("incident list", "incident list --store incidents --json");
    desk.asks("incident list", "incident list --store incidents --incidents --json");
    desk.asks("incident show", "incident show B-1 --store incidents --json");
    desk.asks(
        "incident replay",
        &format!("incident replay --all --store incidents --scenario {scenario} --json"),
    );
    // A model that a request may name, and one that is repaired.
    let text = fs::read_to_string(root().join("examples/demo/scenario.toml")).unwrap();
    fs::write(desk.folder.path().join("as-it-is.toml"), &text).unwrap();
    let repaired = text.replace("raft45_duplicate_votes = true", "raft45_duplicate_votes = false");
    assert_ne!(repaired, text);
    fs::write(desk.folder.path().join("repaired.toml"), repaired).unwrap();
    let models =
        "[models.as-it-is]\nscenario = \"as-it-is.toml\"\n[models.repaired]\nscenario = \"repaired.toml\"\n";
    fs::write(desk.folder.path().join("models.toml"), models).unwrap();
    let serve = "incident serve --store incidents --listen 127.0.0.1:0 --models models.toml";
    let (service, at) = Served::start(desk.command(serve), "http://");
    let at = format!("http://{}/v1", at.trim_end_matches('/'));
    let list = curl(&format!("{at}/incidents"), None);
    let id = serde_json::from_slice::<serde_json::Value>(&list).unwrap()["items"][0]["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    desk.keeps("answers/v1-incidents", &list);
    desk.asks("incident show", &format!("incident show {id} --store incidents --json"));
    for (name, path, body) in [
        ("incident", format!("/incidents/{id}"), None),
        ("problem", "/incidents/nothing".into(), None),
        ("bugs", "/bugs".into(), None),
        ("bug", "/bugs/B-1".into(), None),
        ("changed", "/bugs/B-1/note".into(), Some(r#"{"text":"seen"}"#)),
        ("opened", "/incidents".into(), Some(r#"{"system":"x","invariant":"I"}"#)),
        (
            "alertmanager",
            "/alertmanager".into(),
            Some(
                r#"{"alerts":[{"status":"firing","labels":{"demi_system":"x"},"fingerprint":"f","startsAt":"2026-01-01T00:00:00Z"}]}"#,
            ),
        ),
        ("stats", "/stats".into(), None),
    ] {
        let answer = curl(&format!("{at}{path}"), body);
        desk.keeps(&format!("answers/v1-{name}"), &answer);
    }
    // Known bugs on models of the configuration, and on nothing that a request brings.
    let replays = |body: &str| curl(&format!("{at}/replays"), Some(body));
    for (body, says) in [
        (r#"{"model":"none"}"#, "no model of this name"),
        (r#"{"model":"../as-it-is"}"#, "no model of this name"),
        (r#"{"model":"as-it-is","bugs":["B-99"]}"#, "there is no bug B-99"),
        (r#"{"model":"as-it-is","scenario":"as-it-is.toml"}"#, "unknown field"),
    ] {
        let answer = replays(body);
        assert!(String::from_utf8_lossy(&answer).contains(says), "{}", String::from_utf8_lossy(&answer));
        desk.keeps("answers/v1-problem", &answer);
    }
    for (body, verdicts) in [
        (r#"{"model":"as-it-is"}"#, &["violates"][..]),
        (r#"{"model":"repaired","bugs":["B-1"]}"#, &["gone", "gone_searched", "unknown"]),
    ] {
        let begun = replays(body);
        desk.keeps("answers/v1-replays", &begun);
        let begun: serde_json::Value = serde_json::from_slice(&begun).unwrap();
        let path = format!("{at}/replays/{}", begun["id"].as_str().unwrap());
        let began = std::time::Instant::now();
        let ended = loop {
            let now = curl(&path, None);
            let run: serde_json::Value = serde_json::from_slice(&now).unwrap();
            if !run["ended"].is_null() {
                desk.keeps("answers/v1-replays", &now);
                break run;
            }
            assert!(began.elapsed().as_secs() < 300, "{run}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        };
        assert_eq!((&ended["error"], ended["bugs"].as_array().unwrap().len()), (&serde_json::Value::Null, 1));
        let one = &ended["bugs"][0];
        assert!(one["bug"] == "B-1" && verdicts.contains(&one["verdict"].as_str().unwrap()), "{ended}");
        // The bug keeps it.
        let bug: serde_json::Value = serde_json::from_slice(&curl(&format!("{at}/bugs/B-1"), None)).unwrap();
        assert_eq!(bug["replayed"][ended["digest"].as_str().unwrap()], one["verdict"], "{bug}");
    }
    service.stop();
    desk.are_right();
}

#[test]
fn every_form_is_asked() {
    let text = fs::read_to_string(root().join("tests/it/json_forms.rs")).unwrap();
    // Arguments may stand on lines of their own.
    let text: String = text.split_whitespace().collect();
    for form in forms().keys() {
        let form: String = form.split_whitespace().collect();
        assert!(text.contains(&format!("asks(\"{form}\"")), "no test asks '{form}'");
    }
}
