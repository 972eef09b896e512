//! The daemon as its clients and operators meet it: what it takes, what it refuses, how it stops.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

use crate::support::kill;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use demi_store::Store;
use kill::check::rows;
use kill::daemon::Daemon;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

struct Case {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

impl Case {
    /// A daemon with tight limits: lines of 1000 bytes, bodies of 5000, a second to send.
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().display();
        let config = format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n\
             [limits]\nline_bytes = 1000\nbody_bytes = 5000\nread_secs = 1\nidle_secs = 2\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nlog = \"info\"\n\
             [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*\"]\npoll_millis = 20\nscan_millis = 50\n\
             [sources.tcp]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\nmax_connections = 3\n\
             [sources.http]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n"
        );
        fs::create_dir_all(dir.path().join("logs")).unwrap();
        let mut daemon = Daemon::with_config(dir.path(), &config);
        daemon.start();
        Case { dir, daemon }
    }

    fn connect(&self, name: &str) -> TcpStream {
        let address: SocketAddr = self.daemon.addresses().get(name).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends raw bytes and gives back everything that is answered until the daemon closes.
    fn exchange(&self, name: &str, bytes: &[u8]) -> String {
        let mut stream = self.connect(name);
        // The daemon may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn post(&self, headers: &str, body: &[u8]) -> String {
        let len = body.len();
        let head = format!(
            "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len}\r\n{headers}\r\n"
        );
        self.exchange("http", &[head.as_bytes(), body].concat())
    }

    fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(name)
    }

    fn wait_until(&self, what: &str, mut done: impl FnMut(&Case) -> bool) {
        self.daemon.wait_until(what, || done(self));
    }

    /// Proves that the daemon still takes records.
    fn still_serves(&self, seq: u64) {
        let line = format!("{{\"actor\":\"probe\",\"seq\":{seq},\"kind\":\"start\"}}\n");
        assert!(self.post("", line.as_bytes()).contains("{\"acknowledged\":1}"));
        let mut tcp = self.connect("tcp");
        tcp.write_all(line.replace("probe", "tcp-probe").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&tcp).read_line(&mut answer).unwrap();
        assert_eq!(answer, "{\"acknowledged\":1}\n");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn requests_that_cannot_be_taken_are_refused_and_counted() {
    let case = Case::start();
    let line = b"{\"actor\":\"h\",\"seq\":1,\"kind\":\"start\"}\n";
    let bomb = gzip(&vec![b'x'; 4_000_000]);
    let packed = zstd::encode_all(&line[..], 3).unwrap();
    let cases: Vec<(&str, String, Vec<u8>, &str)> = vec![
        ("200", String::new(), line.to_vec(), "acknowledged\":1"),
        ("200", "content-encoding: gzip\r\n".into(), gzip(line), "acknowledged\":1"),
        ("200", "content-encoding: zstd\r\n".into(), packed.clone(), "acknowledged\":1"),
        ("200", String::new(), Vec::new(), "acknowledged\":0"),
        ("400", "content-encoding: gzip\r\n".into(), b"no gzip".to_vec(), "damaged_body"),
        ("400", "content-encoding: zstd\r\n".into(), packed[..packed.len() - 3].to_vec(), "damaged_body"),
        ("413", "content-encoding: gzip\r\n".into(), bomb, "body_too_large"),
        ("413", String::new(), vec![b'x'; 6000], "body_too_large"),
        ("415", "content-encoding: br\r\n".into(), line.to_vec(), "unknown_encoding"),
    ];
    for (status, headers, body, text) in cases {
        let answer = case.post(&headers, &body);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(text),
            "{headers}: {answer}"
        );
    }
    for (reason, n) in [("damaged_body", 2), ("body_too_large", 2), ("unknown_encoding", 1)] {
        assert_eq!(
            case.metric(&format!("demi_refused_total{{source=\"http\",reason=\"{reason}\"}} ")),
            n,
            "{reason}"
        );
    }
    assert!(
        case.exchange("http", b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .contains(" 405 ")
    );
    assert!(
        case.exchange("http", b"GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .contains(" 404 ")
    );
    assert!(case.exchange("http", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").contains(" 400 "));
    case.still_serves(1);
}

#[test]
fn slow_peers_are_cut_off_and_others_are_served() {
    let case = Case::start();
    // Heads and bodies that never end, a line that never ends.
    let mut head = case.connect("http");
    head.write_all(b"POST /v1/events HTTP/1.1\r\nhost: localhost").unwrap();
    let mut body = case.connect("http");
    body.write_all(b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"a")
        .unwrap();
    let mut line = case.connect("tcp");
    line.write_all(b"{\"actor\":").unwrap();
    case.still_serves(1);
    let rest = |stream: &mut TcpStream| {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    };
    assert!(rest(&mut body).contains("HTTP/1.1 408"));
    assert_eq!(rest(&mut line), "{\"error\":\"too_slow\"}\n");
    let _ = rest(&mut head);
    case.wait_until("slow peers are counted", |case| {
        case.metric("demi_refused_total{source=\"tcp\",reason=\"too_slow\"} ") == 1
            && case.metric("demi_refused_total{source=\"http\",reason=\"too_slow\"} ") == 2
    });
    // A peer that trickles bytes gets no more time than one that sends none.
    let mut trickle = case.connect("tcp");
    let begin = Instant::now();
    while trickle.write_all(b"x").is_ok() && begin.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(100));
    }
    assert!(begin.elapsed() < Duration::from_secs(8), "still connected after {:?}", begin.elapsed());
    case.still_serves(2);
}

#[test]
fn lines_that_are_no_records_go_to_quarantine_and_stop_nothing() {
    let mut case = Case::start();
    let long = format!("{{\"actor\":\"a\",\"seq\":9,\"kind\":\"start\",\"x\":\"{}\"}}", "y".repeat(1200));
    let mut lines: Vec<Vec<u8>> = vec![
        b"garbage".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        b"{\"actor\":\"a\",\"seq\":0,\"kind\":\"start\"}".to_vec(),
        b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"strat\"}".to_vec(),
        b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"start\",\"system\":\"other\"}".to_vec(),
        b"[]".to_vec(),
        "[".repeat(900).into_bytes(),
        long.into_bytes(),
    ];
    let bad = lines.len() as u64;
    lines.push(b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"start\"}".to_vec());
    lines.push(b"".to_vec());
    let text = [lines.join(&b'\n'), b"\n".to_vec()].concat();
    let mut tcp = case.connect("tcp");
    tcp.write_all(&text).unwrap();
    let mut answer = String::new();
    let end = format!("{{\"acknowledged\":{}}}\n", lines.len());
    let mut reader = BufReader::new(&tcp);
    while !answer.ends_with(&end) {
        assert_ne!(reader.read_line(&mut answer).unwrap(), 0, "{answer}");
    }
    assert!(case.post("", &text).contains("acknowledged"));
    fs::write(case.dir.path().join("logs/x.log"), &text).unwrap();
    case.wait_until("all three are committed", |case| {
        case.metric("demi_events_duplicate_total{system=\"s\"} ") == 2
            && case.metric("demi_events_written_total{system=\"s\"} ") == 1
    });
    case.still_serves(1);
    case.daemon.stop();
    let store = Store::open(case.dir.path().join("store")).unwrap();
    assert_eq!(rows(&store.quarantine_files("s").unwrap()), 3 * bad, "each source's own lines");
}

#[test]
fn a_line_that_never_ends_closes_the_connection() {
    let case = Case::start();
    let answer = case.exchange("tcp", &vec![b'z'; 100_000]);
    assert_eq!(answer, "{\"error\":\"line_too_long\"}\n");
    assert_eq!(case.metric("demi_refused_total{source=\"tcp\",reason=\"line_too_long\"} "), 1);
    // In a file it is one row of the quarantine, and what follows is read.
    let text =
        [vec![b'z'; 9_000_000], b"\n{\"actor\":\"f\",\"seq\":1,\"kind\":\"start\"}\n".to_vec()].concat();
    fs::write(case.dir.path().join("logs/long.log"), text).unwrap();
    case.wait_until("the line behind it is read", |case| {
        case.metric("demi_events_written_total{system=\"s\"} ") == 1
            && case.metric("demi_events_rejected_total{reason=\"too_long\"} ") == 1
    });
    case.still_serves(1);
}

#[test]
fn packed_files_and_unfinished_lines_are_read() {
    let case = Case::start();
    let record = |actor: &str, n: u64| format!("{{\"actor\":\"{actor}\",\"seq\":{n},\"kind\":\"start\"}}\n");
    let text: String = (1..=300).map(|n| record("g", n)).collect();
    fs::write(case.dir.path().join("logs/a.log.1.gz"), gzip(text.as_bytes())).unwrap();
    let text: String = (1..=300).map(|n| record("z", n)).collect();
    fs::write(case.dir.path().join("logs/b.zst"), zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    fs::write(case.dir.path().join("logs/c.log"), record("n", 1).trim_end()).unwrap();
    case.wait_until("all are read", |case| case.metric("demi_events_written_total{system=\"s\"} ") == 601);
    assert_eq!(case.metric("demi_events_duplicate_total{system=\"s\"} "), 0);
    // The plain file packed: known by its content, nothing is read again.
    let more: String = (2..=9).map(|n| record("n", n)).collect();
    fs::write(case.dir.path().join("logs/c.log"), format!("{}{more}", record("n", 1))).unwrap();
    case.wait_until("the rest is read", |case| {
        case.metric("demi_events_written_total{system=\"s\"} ") == 609
    });
    let bytes = fs::read(case.dir.path().join("logs/c.log")).unwrap();
    fs::write(case.dir.path().join("logs/c.log.gz"), gzip(&bytes)).unwrap();
    fs::remove_file(case.dir.path().join("logs/c.log")).unwrap();
    fs::write(case.dir.path().join("logs/d.log"), record("d", 1)).unwrap();
    case.wait_until("the next file is read", |case| {
        case.metric("demi_events_written_total{system=\"s\"} ") == 610
    });
    thread::sleep(Duration::from_millis(500));
    assert_eq!(
        case.metric("demi_events_duplicate_total{system=\"s\"} "),
        0,
        "{}",
        case.daemon.get("/v1/positions")
    );
    assert_eq!(case.metric("demi_events_rejected_total{reason=\"truncated\"} "), 0);
}

#[test]
fn one_daemon_a_spool_and_one_writer_a_system() {
    let mut case = Case::start();
    let config = case.dir.path().join("demi.toml");
    let serve = |config: &Path| {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args(["ingest", "serve", "--config"]).arg(config).timeout(Duration::from_secs(30));
        command
    };
    serve(&config).assert().code(2).stderr(contains("another daemon is using it"));
    let other = case.dir.path().join("other.toml");
    let text = fs::read_to_string(&config).unwrap().replace("/spool\"", "/spool-2\"");
    fs::write(&other, text).unwrap();
    serve(&other).assert().code(2).stderr(contains("another load or a daemon is writing system 's'"));
    case.still_serves(1);
    assert_eq!(case.daemon.get("/readyz"), "ready\n");
    case.daemon.stop();
    let store = case.dir.path().join("store");
    let spool = case.dir.path().join("spool");
    let verify = || {
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.args(["ingest", "verify", "--store"]).arg(&store).arg("--spool").arg(&spool);
        command
    };
    verify().assert().success().stdout(contains("a restart loses nothing and repeats nothing"));
    let mut status = Command::cargo_bin("demi-lineage").unwrap();
    status
        .args(["ingest", "status", "--store"])
        .arg(&store)
        .assert()
        .success()
        .stdout(contains("s: 2 events, 0 missing").and(contains("tcp-probe")));
    // A store from before is not written to as if it were this one.
    fs::rename(&store, case.dir.path().join("away")).unwrap();
    Store::create(&store).unwrap();
    verify().assert().success();
}

#[test]
fn stamps_that_run_backwards_are_named_as_a_load_names_them() {
    let case = Case::start();
    let record = |seq: u64, second: u64| {
        format!(
            "{{\"actor\":\"h\",\"seq\":{seq},\"kind\":\"local\",\"time\":\"2024-05-01T10:00:{second:02}Z\"}}\n"
        )
    };
    let metric = "demi_backward_stamps_total{system=\"s\"} ";
    let send = |records: &[String]| {
        let answer = case.post("", records.concat().as_bytes());
        assert!(answer.contains("\"acknowledged\""), "{answer}");
    };
    send(&[record(1, 5), record(2, 5), record(3, 1), record(4, 6)]);
    case.daemon.wait_for_metric(metric, 1);
    let noted =
        || demi_store::backward_stamps(&Store::open(case.dir.path().join("store")).unwrap(), "s").unwrap();
    // It is noted behind the commit that is counted.
    case.wait_until("the finding is noted", |_| noted().len() == 1);
    let found = &noted()[0];
    assert_eq!((found.actor.as_str(), found.events, found.most.as_str()), ("h", 1, "4 s"));
    assert_eq!(
        (found.time.as_str(), found.before.as_str()),
        ("2024-05-01T10:00:01Z", "2024-05-01T10:00:05Z")
    );
    // What is there already says nothing new, what is later does.
    send(&[record(3, 1), record(5, 2)]);
    case.daemon.wait_for_metric(metric, 2);
    case.wait_until("one finding of two events", |_| {
        noted().iter().map(|found| found.events).sum::<u64>() == 2
    });
    assert!(case.daemon.log().contains("the stamps of an actor run backwards through its log"));
}
