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
use demi_store::Store;
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
        Daemon::with(dir, &format!("http://{}/alerts", hook.address), more, &[])
    }

    fn with(dir: &Path, webhook: &str, more: &str, environment: &[(&str, &str)]) -> Daemon {
        let config = format!(
            "[store]\ndir = \"{0}/store\"\nseal_millis = 100\nreserve_bytes = 0\n[spool]\ndir = \"{0}/spool\"\n[admin]\n\
             listen = \"127.0.0.1:0\"\n[sources.h]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n\
             [monitors.raft]\nsystem = \"s\"\ninvariants = \"{0}/i.toml\"\ncpu_share = 1.0\n\
             webhook = \"{webhook}\"\n{more}\n",
            dir.display(),
        );
        std::fs::write(dir.join("d.toml"), config).unwrap();
        Daemon::run(dir, environment)
    }

    /// With the configuration that is there.
    fn again(dir: &Path) -> Daemon {
        Daemon::run(dir, &[])
    }

    fn run(dir: &Path, environment: &[(&str, &str)]) -> Daemon {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(["ingest", "serve"])
            .arg(dir.join("d.toml"))
            .env("DEMI_MONITOR_RAFT_TOKEN", "sesame")
            .envs(environment.iter().copied())
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
        ask(&self.http, &format!("POST /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
            .is_some_and(|answer| answer.starts_with("HTTP/1.1 2"))
    }

    fn get(&self, path: &str) -> String {
        ask(&self.admin, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
            .unwrap()
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
            let source = text("source");
            let own = |row: &usize| actor.value(*row) == "_monitor" && incarnation.value(*row) >= 1;
            for row in (0..batch.num_rows()).filter(own) {
                assert_eq!(kind.value(row), "violation");
                // The row says who wrote it.
                assert_eq!(source.value(row), "monitors.raft");
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
            .contains("demi_invariant_failures_total{monitor=\"raft\",invariant=\"OneLeader\"} 1")
    });
    let list = daemon.get("/v1/invariants");
    let list: Value = serde_json::from_str(list.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(list["raft"]["invariants"][0]["last_failure"], event);
    let mute = "POST /v1/invariants/OneLeader/mute HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
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

/// A folder with one invariant, about a number.
fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let invariants =
        "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i1\"\nname = \"Small\"\nholds = \"x <= 50\"\n";
    std::fs::write(folder.path().join("i.toml"), invariants).unwrap();
    folder
}

fn state(actor: &str, seq: u64, x: &str) -> String {
    format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"state","state":{{"x":{x}}}}}"#)
}

impl Daemon {
    /// The value of a metric of the monitor `raft`, or of its invariant.
    fn metric(&self, name: &str) -> Option<String> {
        let text = self.get("/metrics");
        let of = |line: &str| {
            line.starts_with(&format!("{name}{{")).then(|| line.split(' ').next_back().map(str::to_owned))
        };
        text.lines().find_map(of).flatten()
    }
}

impl Hook {
    /// All events that were told, of each message once.
    fn told(&self) -> Vec<Vec<String>> {
        let posts = self.posts.lock().unwrap();
        let mut keys = BTreeSet::new();
        let first = posts.iter().filter(|(key, _)| keys.insert(key.clone()));
        let events = first.map(|(_, body)| {
            let more = body["more"].as_array().cloned().unwrap_or_default();
            let all = std::iter::once(body.clone()).chain(more);
            all.map(|group| group["event"].as_str().unwrap().to_owned()).collect()
        });
        events.collect()
    }
}

/// A text where a number is due silences nobody else, and one that fails hides no other. What comes at once is told at once, the rest of
/// it together.
#[test]
fn each_that_fails_is_told_and_a_burst_in_few_messages() {
    let folder = small();
    let hook = Hook::start();
    let daemon = Daemon::start(folder.path(), &hook, "quiet_secs = 0");
    // All series are there before anything happens.
    for name in [
        "demi_invariant_failures_total",
        "demi_invariant_last_failure_timestamp_seconds",
        "demi_invariant_unjudged",
        "demi_monitor_dropped_total",
    ] {
        assert_eq!(daemon.metric(name).as_deref(), Some("0"), "{name}");
    }
    assert!(daemon.post(&[
        state("good", 1, "10"),
        state("evil", 1, "\"text\""),
        state("evil", 2, "\"more\"")
    ]));
    until("it is not said that it cannot be judged", || {
        daemon.metric("demi_invariant_unjudged").as_deref() == Some("1")
    });
    assert!(daemon.post(&[state("good", 2, "100")]));
    until("one silenced another", || hook.told() == [["good/2"]]);
    std::thread::sleep(Duration::from_millis(1100));
    let burst: Vec<String> = (0..40).map(|actor| state(&format!("b{actor}"), 1, "99")).collect();
    assert!(burst.chunks(7).all(|lines| daemon.post(lines)));
    until("not all were told", || hook.told().concat().len() == 41);
    let told = hook.told();
    assert!(told.len() <= 4, "{} messages: {told:?}", told.len());
    let all: BTreeSet<String> = told.concat().into_iter().collect();
    assert!((0..40).all(|actor| all.contains(&format!("b{actor}/1"))), "{all:?}");
    // It is over with the next value that can be judged.
    assert!(daemon.post(&[state("evil", 3, "7")]));
    until("it cannot be judged for good", || {
        daemon.metric("demi_invariant_unjudged").as_deref() == Some("0")
    });
    assert_eq!(daemon.metric("demi_invariant_failing").as_deref(), Some("41"));
    daemon.stop();
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.matches("an invariant cannot be judged here").count(), 1, "{log}");
    assert_eq!(violations(&folder.path().join("store")).len(), told.len());
}

/// What cannot be judged is as before after invariants are read again, and after a restart: told once, no failure, over with the next value
/// that can be judged; and a violation of another actor is told all the while.
#[test]
fn what_cannot_be_judged_stays_so_through_a_reload_and_a_restart() {
    let folder = small();
    let hook = Hook::start();
    let mut daemon = Daemon::start(folder.path(), &hook, "quiet_secs = 0");
    let unjudged = |daemon: &Daemon| {
        let text = daemon.get("/metrics");
        let of =
            |line: &str| line.starts_with("demi_invariant_unjudged{") && line.contains("invariant=\"i1\"");
        text.lines().find(|line| of(line)).and_then(|line| line.split(' ').next_back()).map(str::to_owned)
    };
    assert!(daemon.post(&[state("evil", 1, "\"text\""), state("good", 1, "1")]));
    until("it is judged", || unjudged(&daemon).as_deref() == Some("1"));
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    // The file of invariants gets one more, so that it can be seen that it was read again.
    let invariants = std::fs::read_to_string(folder.path().join("i.toml")).unwrap();
    std::fs::write(
        folder.path().join("i.toml"),
        format!("{invariants}\n[[invariant]]\nid = \"another\"\nholds = \"x >= 0\"\n"),
    )
    .unwrap();
    let hup = Command::new("kill").args(["-HUP", &daemon.child.id().to_string()]).status().unwrap();
    assert!(hup.success());
    until("it was not read again", || daemon.get("/metrics").contains("invariant=\"another\""));
    until("it is judged after a reload", || unjudged(&daemon).as_deref() == Some("1"));
    assert!(daemon.post(&[state("good", 2, "100")]));
    until("a reload silenced another", || hook.told() == [["good/2"]]);
    // What is known is written at the end; the next process begins with it.
    daemon.stop();
    daemon = Daemon::again(folder.path());
    until("it is judged after a restart", || unjudged(&daemon).as_deref() == Some("1"));
    assert!(daemon.post(&[state("other", 1, "100")]));
    until("a restart silenced another", || hook.told() == [vec!["good/2"], vec!["other/1"]]);
    assert!(daemon.post(&[state("evil", 2, "7")]));
    until("it cannot be judged for good", || unjudged(&daemon).as_deref() == Some("0"));
    assert!(daemon.post(&[state("evil", 3, "70")]));
    until("its own failure is not told", || hook.told().concat().contains(&"evil/3".to_owned()));
    daemon.stop();
    let of_first = |line: &&str| line.contains("cannot be judged here") && !line.contains("another");
    assert_eq!(log().lines().filter(of_first).count(), 1, "{}", log());
}

/// Where no certificates are installed a webhook over http works, and one over https waits until it can.
#[test]
fn a_webhook_needs_no_certificates_it_does_not_use() {
    let folder = small();
    let hook = Hook::start();
    let none = folder.path().join("no.pem").display().to_string();
    std::fs::write(&none, "").unwrap();
    let environment = [("SSL_CERT_FILE", none.as_str()), ("SSL_CERT_DIR", "/nonexistent")];
    let daemon = Daemon::with(folder.path(), &format!("http://{}/alerts", hook.address), "", &environment);
    assert!(daemon.post(&[state("a", 1, "100")]));
    until("it was not posted", || hook.told() == [["a/1"]]);
    until("it is not taken", || hook.posts.lock().unwrap().len() >= 2);
    daemon.stop();
    let daemon = Daemon::with(folder.path(), &format!("https://{}/alerts", hook.address), "", &environment);
    assert!(daemon.post(&[state("b", 1, "100")]));
    let failed = |daemon: &Daemon| {
        daemon.metric("demi_monitor_posts_failed_total").and_then(|n| n.parse::<u64>().ok())
    };
    until("a post that cannot be made counts as one", || failed(&daemon) >= Some(2));
    daemon.stop();
    // It is posted by the next that can.
    let daemon = Daemon::start(folder.path(), &hook, "");
    until("it was forgotten", || hook.told() == [["a/1"], ["b/1"]]);
    daemon.stop();
}

/// A proxy of the environment reads nothing of what is posted on this machine, the token included, even where a proxy is allowed.
#[test]
fn a_proxy_of_the_environment_reads_no_token() {
    let folder = small();
    let (hook, proxy) = (Hook::start(), Hook::start());
    let address = format!("http://{}", proxy.address);
    let environment = [("http_proxy", address.as_str()), ("HTTP_PROXY", &address), ("ALL_PROXY", &address)];
    let to = format!("http://{}/alerts", hook.address);
    let daemon = Daemon::with(folder.path(), &to, "proxy = true", &environment);
    assert!(daemon.post(&[state("a", 1, "100")]));
    until("it was not posted", || hook.told() == [["a/1"]]);
    assert!(proxy.posts.lock().unwrap().is_empty());
    daemon.stop();
}

/// An execution that could not be built is tried again, also by the next process.
#[test]
fn a_build_that_failed_is_tried_again() {
    let folder = small();
    let hook = Hook::start();
    let daemon = Daemon::start(folder.path(), &hook, "build = true");
    // Nothing can be made there.
    let violations = folder.path().join("store/violations");
    std::fs::write(&violations, "in the way").unwrap();
    assert!(daemon.post(&[state("a", 1, "100")]));
    until("it did not fail", || daemon.metric("demi_monitor_builds_failed_total").as_deref() == Some("1"));
    daemon.kill();
    let daemon = Daemon::start(folder.path(), &hook, "build = true");
    until("the next process did not try", || {
        daemon.metric("demi_monitor_builds_failed_total").as_deref() == Some("1")
    });
    std::fs::remove_file(&violations).unwrap();
    let built = || {
        std::fs::read_dir(&violations)
            .is_ok_and(|mut all| all.any(|e| e.unwrap().path().join("execution").is_dir()))
    };
    until("it was not tried again", built);
    assert_eq!(daemon.metric("demi_monitor_builds_given_up_total").as_deref(), Some("0"));
    daemon.stop();
}

/// A monitor whose checkpoint is damaged begins anew; the daemon takes everything in, and what it tells is recorded.
#[test]
fn a_damaged_checkpoint_is_set_aside() {
    let folder = small();
    let hook = Hook::start();
    let daemon = Daemon::start(folder.path(), &hook, "");
    assert!(daemon.post(&[state("a", 1, "100")]));
    until("it was not told", || hook.told().len() == 1);
    daemon.stop();
    let checkpoint = folder.path().join("spool/monitor-raft.json.zst");
    let whole = std::fs::read(&checkpoint).unwrap();
    let mut number = 0;
    for at in [3, whole.len() / 3, whole.len() / 2, whole.len() - 2] {
        let mut bytes = std::fs::read(&checkpoint).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 1;
        std::fs::write(&checkpoint, &bytes).unwrap();
        let daemon = Daemon::start(folder.path(), &hook, "");
        assert_eq!(daemon.metric("demi_monitor_began_anew").as_deref(), Some("1"));
        number += 1;
        let actor = format!("b{number}");
        assert!(daemon.post(&[state(&actor, 1, "100")]));
        until("nothing is told any more", || hook.told().concat().contains(&format!("{actor}/1")));
        until("it is not in the store", || violations(&folder.path().join("store")).len() == 1 + number);
        daemon.stop();
        let aside = folder.path().join(format!("spool/monitor-raft.json.zst.damaged-{number}"));
        assert_eq!(std::fs::read(aside).unwrap(), bytes);
    }
    // Each is a record of its own.
    let store = Store::open(folder.path().join("store")).unwrap();
    assert!(demi_store::quarantined(&store, Some("s")).unwrap().is_empty());
}

/// The files below a folder in which a text stands, also where it is packed.
fn files_with(folder: &Path, text: &str, found: &mut Vec<PathBuf>) {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_with(&path, text, found);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let unpacked = zstd::decode_all(bytes.as_slice()).unwrap_or_default();
        let in_rows = || {
            let file = std::fs::File::open(&path).unwrap();
            let Ok(rows) = ParquetRecordBatchReaderBuilder::try_new(file) else { return false };
            rows.build().unwrap().any(|batch| {
                format!("{:?}", batch.unwrap().columns().iter().map(shown).collect::<Vec<_>>()).contains(text)
            })
        };
        if has(&bytes) || has(&unpacked) || in_rows() {
            found.push(path);
        }
    }
}

/// The texts of a column.
fn shown(column: &arrow_array::ArrayRef) -> Vec<String> {
    match column.as_string_opt::<i32>() {
        Some(texts) => texts.iter().flatten().map(str::to_owned).collect(),
        None => Vec::new(),
    }
}

fn secret(actor: &str, seq: u64, x: u64) -> String {
    format!(
        r#"{{"actor":"{actor}","seq":{seq},"kind":"state","payload":"{actor} says TOPSECRET","state":{{"x":{x},"y":"{actor}-TOPSECRET"}}}}"#
    )
}

/// What is deleted is in no file any more: store, spool, what monitors know, executions and results.
#[test]
fn what_is_deleted_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let invariants = "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i1\"\nholds = \"x <= 50\"\n\
        [[invariant]]\nid = \"i2\"\nholds = \"EVER GROUP BY y HAVING count(DISTINCT x) <= 90\"\n";
    std::fs::write(at.join("i.toml"), invariants).unwrap();
    let hook = Hook::start();
    let daemon = Daemon::start(at, &hook, "build = true");
    for actor in ["alice", "bob"] {
        let lines: Vec<String> = (1..=60).map(|seq| secret(actor, seq, seq)).collect();
        assert!(daemon.post(&lines));
    }
    let built = || {
        let all = std::fs::read_dir(at.join("store/violations"));
        all.is_ok_and(|all| {
            all.filter(|e| e.as_ref().unwrap().path().join("execution").is_dir()).count() == 2
        })
    };
    until("no executions were built", built);
    // One elsewhere, and one more of which nobody knows whose it is.
    assert!(words(at, "build --store store --system s --violation event:bob/60 --out mine -q"));
    std::fs::create_dir(at.join("store/violations/other")).unwrap();
    let left = |stdout: &[u8]| {
        let done: Value = serde_json::from_slice(stdout).unwrap();
        let left = done[0]["left"].as_array().unwrap().iter().map(|l| l["path"].as_str().unwrap().to_owned());
        (done[0].clone(), left.collect::<Vec<_>>())
    };
    let delete = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demi-lineage"));
        command.args([
            "-q", "ingest", "delete", "--store", "store", "--system", "s", "--actor", "alice", "--json",
        ]);
        command.current_dir(at).output().unwrap()
    };
    let refused = delete();
    assert_eq!(refused.status.code(), Some(2), "a daemon writes it");
    daemon.stop();
    let done = delete();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (told, left) = left(&done.stdout);
    let expected: Vec<String> = ["mine", "store/violations/other"]
        .iter()
        .map(|p| at.join(p).canonicalize().unwrap().display().to_string())
        .collect();
    let whole: Vec<String> =
        left.iter().map(|p| at.join(p).canonicalize().unwrap().display().to_string()).collect();
    assert_eq!(whole, expected);
    assert_eq!((&told["events"], &told["removed"].as_array().unwrap().len()), (&60.into(), &2));
    let mut found = Vec::new();
    for place in ["store", "spool"] {
        files_with(&at.join(place), "alice says", &mut found);
        files_with(&at.join(place), "alice-TOPSECRET", &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
    files_with(&at.join("store"), "bob says", &mut found);
    assert!(!found.is_empty());
    // All goes on, and says the same when it is done again.
    let daemon = Daemon::start(at, &hook, "");
    assert!(daemon.post(&[secret("alice", 3, 3), secret("bob", 61, 9)]));
    until("it does not go on", || {
        daemon.get("/metrics").contains("demi_events_written_total{system=\"s\"} 1\n")
    });
    daemon.stop();
    assert!(delete().status.success());
    let mut found = Vec::new();
    files_with(&at.join("spool"), "alice says", &mut found);
    assert!(found.is_empty(), "{found:?}");
}

/// What was minimized of a violation goes with the execution, and what somebody else put beside them stays and is named.
#[test]
fn what_was_minimized_is_deleted_with_its_execution() {
    let (folder, lines) = recorded(3);
    let at = folder.path();
    let hook = Hook::start();
    let more =
        format!("build = true\nminimize = {{ scenario = \"{}/bug.toml\", budget = \"300r\" }}", at.display());
    let daemon = Daemon::start(at, &hook, &more);
    assert!(daemon.post(&lines));
    let of_violation = || -> Vec<PathBuf> {
        let all = std::fs::read_dir(at.join("store/violations")).into_iter().flatten();
        all.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    };
    until("nothing was minimized", || {
        of_violation().first().is_some_and(|one| one.join("minimized/trace.md").is_file())
    });
    daemon.stop();
    let violation = of_violation().remove(0);
    let foreign = violation.join("minimized/my notes");
    std::fs::write(&foreign, "mine").unwrap();
    let delete = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demi-lineage"));
        command.args([
            "-q",
            "ingest",
            "delete",
            "--store",
            "store",
            "--system",
            "s",
            "--before",
            "2100-01-01",
        ]);
        let done = command.args(["--actor", "nobody", "--json"]).current_dir(at).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice::<Value>(&done.stdout).unwrap()[0].clone()
    };
    let first = delete();
    let left: Vec<&str> =
        first["left"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert!(left.len() == 1 && left[0].ends_with("minimized"), "{first}");
    assert!(foreign.is_file() && !violation.join("execution").exists());
    std::fs::remove_file(&foreign).unwrap();
    let second = delete();
    assert_eq!(
        (second["left"].as_array().unwrap().len(), second["removed"].as_array().unwrap().len()),
        (0, 1)
    );
    assert!(!violation.exists());
}

/// What waits in the spool when the daemon was killed is deleted there, and is not taken in by the next.
#[test]
fn what_waits_is_deleted_too() {
    let folder = small();
    let hook = Hook::start();
    let at = folder.path();
    let daemon = Daemon::start(at, &hook, "");
    assert!(daemon.post(&[secret("alice", 1, 1), secret("bob", 1, 1)]));
    until("it is not in the store", || {
        daemon.get("/metrics").contains("demi_events_written_total{system=\"s\"} 2\n")
    });
    daemon.stop();
    // This one writes nothing into the store.
    let config = std::fs::read_to_string(at.join("d.toml")).unwrap();
    std::fs::write(at.join("d.toml"), config.replace("seal_millis = 100", "seal_millis = 3600000")).unwrap();
    let daemon = Daemon::again(at);
    assert!(daemon.post(&[secret("alice", 2, 2), secret("bob", 2, 2), secret("alice", 3, 3)]));
    daemon.kill();
    assert!(words(at, "ingest delete --store store --system s --actor alice -q"));
    let mut found = Vec::new();
    files_with(at, "alice says", &mut found);
    assert!(found.is_empty(), "{found:?}");
    std::fs::write(at.join("d.toml"), config).unwrap();
    let daemon = Daemon::again(at);
    until("it is not taken in", || {
        daemon.get("/metrics").contains("demi_events_written_total{system=\"s\"} 1\n")
    });
    // Sent again, it is known as deleted.
    assert!(daemon.post(&[secret("alice", 2, 2)]));
    until("it is not known", || {
        daemon.get("/metrics").contains("demi_events_duplicate_total{system=\"s\"} 1\n")
    });
    daemon.stop();
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
