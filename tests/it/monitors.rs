//! Invariants that are watched while events come in: a violation is found at its record, told once, and led to an execution.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use demi_ingest::Store;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

const INVARIANTS: &str = "schema = \"demi-invariants/1\"\n[[invariant]]\nname = \"OneLeader\"\n\
    holds = \"WHERE role = 'Leader' GROUP BY term HAVING count(*) <= 1\"\n";
const SCENARIO: &str = "model = \"akka-raft\"\nmembers = 4\nnetwork = \"unordered\"\n[switches]\n\
    raft45_duplicate_votes = true\n[fuzz]\ntimer_putback = 0.7\nstrategy = \"mixed\"\nclient_messages = 0\n";
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver of alerts, which refuses each the first time that it comes.
struct Hook {
    address: String,
    /// Keys and bodies of all posts.
    posts: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hook {
    fn start() -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let posts: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let kept = posts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some((key, body)) = request(&mut stream) else { continue };
                let mut posts = kept.lock().unwrap();
                let known = posts.iter().any(|(known, _)| *known == key);
                posts.push((key, body));
                let status = if known { "204 No Content" } else { "503 Service Unavailable" };
                let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Hook { address, posts }
    }
}

fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = lower.strip_prefix("idempotency-key:") {
            key = value.trim().to_owned();
        }
        if lower.starts_with("authorization:") {
            assert_eq!(line.trim(), "authorization: Bearer sesame");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((key, serde_json::from_slice(&body).unwrap()))
}

struct Daemon {
    child: Child,
    http: String,
    admin: String,
}

impl Daemon {
    fn start(dir: &Path, hook: &Hook, more: &str) -> Daemon {
        let config = format!(
            "[store]\ndir = \"{0}/store\"\nseal_millis = 100\nreserve_bytes = 0\n[spool]\ndir = \"{0}/spool\"\n[admin]\n\
             listen = \"127.0.0.1:0\"\n[sources.h]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n\
             [monitors.raft]\nsystem = \"s\"\ninvariants = \"{0}/i.toml\"\ncpu_share = 1.0\n\
             webhook = \"http://{1}/alerts\"\n{more}\n",
            dir.display(),
            hook.address
        );
        std::fs::write(dir.join("d.toml"), config).unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(["ingest", "serve"])
            .arg(dir.join("d.toml"))
            .env("DEMI_MONITOR_RAFT_TOKEN", "sesame")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (mut http, mut admin) = (String::new(), String::new());
        while http.is_empty() || admin.is_empty() {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("{}", std::fs::read_to_string(dir.join("log")).unwrap()));
            let address = line.split_whitespace().last().unwrap().to_owned();
            if line.contains("admin") { admin = address } else { http = address }
        }
        Daemon { child, http, admin }
    }

    /// Posts lines; whether they were taken.
    fn post(&self, lines: &[String]) -> bool {
        let body = lines.join("\n");
        ask(&self.http, &format!("POST /v1/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
            .is_some_and(|answer| answer.starts_with("HTTP/1.1 2"))
    }

    fn get(&self, path: &str) -> String {
        ask(&self.admin, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

fn ask(address: &str, text: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the command ends well.
fn words(folder: &Path, line: &str) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demi-lineage"));
    command.args(line.split(' ')).current_dir(folder).stdout(Stdio::null()).status().unwrap().success()
}

/// A folder with a scenario, invariants, and the lines of a run that breaks one, the logs mixed.
fn recorded(seed: u64) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bug.toml"), SCENARIO).unwrap();
    std::fs::write(folder.path().join("i.toml"), INVARIANTS).unwrap();
    let line = "fuzz --scenario bug.toml --seed 7 --deliveries 600 --state --out run -q";
    assert!(words(folder.path(), line));
    let lines = mixed(&folder.path().join("run/logs"), seed);
    (folder, lines)
}

/// The lines of the logs in a folder, each log in its order.
fn mixed(folder: &Path, seed: u64) -> Vec<String> {
    let mut logs: Vec<std::collections::VecDeque<String>> = Vec::new();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        logs.push(std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect());
    }
    let (mut lines, mut x) = (Vec::new(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    while logs.iter().any(|log| !log.is_empty()) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let next = x as usize % logs.len();
        lines.extend(logs[next].pop_front());
    }
    lines
}

/// The first records with which two actors say that they lead in one term: the violation is at one of them.
fn candidates(lines: &[String]) -> BTreeSet<String> {
    let mut leaders: std::collections::BTreeMap<i64, std::collections::BTreeMap<String, u64>> =
        Default::default();
    for line in lines {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["state"]["role"] == "Leader" {
            let actor = record["actor"].as_str().unwrap().to_owned();
            let term = record["state"]["term"].as_i64().unwrap();
            leaders.entry(term).or_default().entry(actor).or_insert(record["seq"].as_u64().unwrap());
        }
    }
    let double = leaders.into_values().filter(|l| l.len() > 1);
    double.flatten().map(|(actor, seq)| format!("{actor}/{seq}")).collect()
}

/// The sequence numbers of the daemon's own violation records; those of the logs are of incarnation 0.
fn violations(store: &Path) -> Vec<i64> {
    let mut found = Vec::new();
    for path in Store::open(store).unwrap().event_files("s").unwrap() {
        let file = std::fs::File::open(path).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
            let (actor, kind) = (text("actor"), text("kind"));
            let incarnation = batch.column_by_name("incarnation").unwrap().as_primitive::<Int32Type>();
            let seq = batch.column_by_name("seq").unwrap().as_primitive::<Int64Type>();
            let own = |row: &usize| actor.value(*row) == "_monitor" && incarnation.value(*row) == 1;
            for row in (0..batch.num_rows()).filter(own) {
                assert_eq!(kind.value(row), "violation");
                found.push(seq.value(row));
            }
        }
    }
    found
}

/// Lines are posted in pieces, and now and then the daemon is killed; what comes of it.
fn stream_and_kill(folder: &Path, lines: &[String], seed: u64, kills: &mut u64) {
    let hook = Hook::start();
    let mut daemon = Daemon::start(folder, &hook, "");
    let mut x = seed;
    let chunks: Vec<&[String]> = lines.chunks(lines.len() / 12 + 1).collect();
    for (number, chunk) in chunks.iter().enumerate() {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // A kill while it is sent, a little after, or none.
        if number > 0 && (x >> 33).is_multiple_of(3) {
            let _ = daemon.post(chunks[number - 1]);
            std::thread::sleep(Duration::from_millis((x >> 40) % 250));
            daemon.kill();
            *kills += 1;
            daemon = Daemon::start(folder, &hook, "");
        }
        until("not taken", || daemon.post(chunk));
    }
    until("no alert was taken", || hook.posts.lock().unwrap().len() >= 2);
    daemon.stop();
    let posts = hook.posts.lock().unwrap().clone();
    let keys: BTreeSet<&String> = posts.iter().map(|(key, _)| key).collect();
    let all = violations(&folder.join("store"));
    assert_eq!((keys.len(), all.len()), (1, 1), "seed {seed}: {posts:?} {all:?}");
    let event = posts[0].1["event"].as_str().unwrap();
    assert!(candidates(lines).contains(event), "seed {seed}: {event}");
}

/// How many seeds are tried.
fn seeds(otherwise: u64) -> u64 {
    std::env::var("DEMI_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_violation_is_found_recorded_posted_built_and_minimized() {
    let (folder, lines) = recorded(1);
    let hook = Hook::start();
    let more = format!(
        "build = true\nminimize = {{ scenario = \"{}/bug.toml\", budget = \"300r\" }}",
        folder.path().display()
    );
    let daemon = Daemon::start(folder.path(), &hook, &more);
    lines.chunks(50).for_each(|chunk| assert!(daemon.post(chunk)));
    until("no alert was posted twice", || hook.posts.lock().unwrap().len() >= 2);
    let posts = hook.posts.lock().unwrap().clone();
    let alert = &posts[0].1;
    assert_eq!((&posts[0], &alert["name"]), (&posts[1], &"OneLeader".into()));
    let event = alert["event"].as_str().unwrap();
    assert!(candidates(&lines).contains(event), "{event} in {:?}", candidates(&lines));
    assert_eq!(alert["affected"].as_array().unwrap().len(), 2);
    let minimized = folder.path().join("store/violations").join(&posts[0].0).join("minimized");
    until("nothing was minimized", || minimized.join("trace.md").exists());
    until("no figures", || {
        daemon
            .get("/metrics")
            .contains("invariant_failures_total{monitor=\"raft\",invariant=\"OneLeader\"} 1")
    });
    let list = daemon.get("/v1/invariants");
    let list: Value = serde_json::from_str(list.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(list["raft"]["invariants"][0]["last_failure"], event);
    let mute = "POST /v1/invariants/OneLeader/mute HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(ask(&daemon.admin, mute).unwrap().starts_with("HTTP/1.1 204"));
    until("it is not muted", || daemon.get("/v1/invariants").contains("\"muted\":true"));
    daemon.stop();
    // The program's own record, and those of the log itself.
    assert_eq!(violations(&folder.path().join("store")).len(), 1);
    let line = "build --store store --out built -q";
    assert!(words(folder.path(), line));
}

/// Killed at any point, with senders that send again what was not acknowledged: the violation is in the store once, and each post of it has
/// the same key. `DEMI_KILLS` says how often; 6 without it.
#[test]
fn a_killed_daemon_tells_a_violation_once() {
    let mut kills = 0;
    for seed in 1..=seeds(6) {
        let (folder, lines) = recorded(seed);
        stream_and_kill(folder.path(), &lines, seed, &mut kills);
    }
    println!("{kills} kills");
}

/// The same with what really happened: a recording of akka-raft, with the states that its model has.
#[test]
fn a_recorded_violation_is_found_at_its_record() {
    let corpus = std::env::var_os("DEMI_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"), PathBuf::from);
    let recording = corpus.join("demi/raft-45");
    if !recording.is_dir() {
        println!("skipped: no recording raft-45 (set DEMI_CORPUS)");
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let at = made.path();
    let logs = recording.join("logs").display().to_string();
    let scenario = recording.join("scenario.toml").display().to_string();
    assert!(words(at, &format!("ingest load {logs} --system raft --store st -q")));
    assert!(words(at, "build --store st --out exec -q"));
    assert!(words(at, &format!("replay exec --scenario {scenario} --state told -q")));
    let mut kills = 0;
    for seed in 1..=seeds(2) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("i.toml"), INVARIANTS).unwrap();
        stream_and_kill(folder.path(), &mixed(&at.join("told/logs"), seed), seed, &mut kills);
    }
    println!("{kills} kills");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let invariants = |holds: &str| {
        let text =
            format!("schema = \"demi-invariants/1\"\n[[invariant]]\nname = \"n\"\nholds = \"{holds}\"\n");
        std::fs::write(at.join("i.toml"), text).unwrap();
    };
    let validate = |monitor: &str| {
        let config = format!(
            "[store]\ndir = \"s\"\n[spool]\ndir = \"p\"\n[sources.h]\ntype = \"http\"\nsystem = \"prod\"\n\
             listen = \"127.0.0.1:0\"\n[monitors.m]\ninvariants = \"{}/i.toml\"\n{monitor}\n",
            at.display()
        );
        std::fs::write(at.join("d.toml"), config).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(["ingest", "validate", "d.toml"])
            .env("DEMI_MONITOR_M_TOKEN", "t")
            .current_dir(at)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    invariants("term >= prev.term");
    assert_eq!(validate("system = \"prod\"").0, Some(0));
    for (monitor, why) in [
        ("system = \"pord\"", "no source brings events of system 'pord'; did you mean 'prod'?"),
        ("system = \"prod\"\nsample = 0.0", "sample must be above 0 and at most 1"),
        ("system = \"prod\"\nconfirm = 0", "confirm must be at least 1"),
        ("system = \"prod\"\nsampel = 0.5", "did you mean 'sample'?"),
        ("system = \"prod\"\nwebhook = \"ftp://x/y\"", "http or https"),
        ("system = \"prod\"\nwebhook = \"http://example.org/y\"", "in the clear"),
        ("system = \"prod\"\nminimize = { scenario = \"x\" }", "build = true"),
        (
            "system = \"prod\"\nbuild = true\nminimize = { scenario = \"nowhere.toml\" }",
            "nowhere.toml: cannot be read",
        ),
        (
            "system = \"prod\"\n[monitors.o]\nsystem = \"prod\"\ninvariants = \"x\"",
            "is watched by [monitors.m] already",
        ),
    ] {
        let (status, said) = validate(monitor);
        assert!(status == Some(2) && said.contains(why), "{monitor}: {said}");
    }
    invariants("lenght(log) > 1");
    let (status, said) = validate("system = \"prod\"");
    assert!(status == Some(2) && said.contains("lenght") && said.contains("i.toml"), "{said}");
}
