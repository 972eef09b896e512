//! Telemetry that reaches the daemon: OTLP over HTTP, the OpenTelemetry SDK for Python.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

use crate::support::kill;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kill::check::told;
use kill::daemon::Daemon;
use serde_json::Value;

const SHOP: &str = include_str!("../../ingest/formats/tests/otlp/shop.json");

struct Case {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

impl Case {
    fn start(source: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().display();
        let config = format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n\
             [limits]\nread_secs = 2\n[admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nlog = \"info\"\n\
             [sources.in]\nsystem = \"s\"\n{source}\n"
        );
        let mut daemon = Daemon::with_config(dir.path(), &config);
        daemon.start();
        Case { dir, daemon }
    }

    fn post(&self, path: &str, content_type: &str, body: &[u8], headers: &str) -> String {
        let mut stream = TcpStream::connect(self.daemon.addresses().get("in").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {content_type}\r\n{headers}\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The summary of `build`, and the folder it wrote.
    fn build(&self) -> (Value, PathBuf) {
        let (store, out) = (self.dir.path().join("store"), self.dir.path().join("exec"));
        let output = assert_cmd::Command::cargo_bin("demi-lineage")
            .unwrap()
            .args(["-q", "build", "--system", "s", "--violation", "actors:mail", "--json", "--store"])
            .arg(store)
            .arg("--out")
            .arg(&out)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (serde_json::from_slice(&output.stdout).unwrap(), out)
    }
}

const WRITTEN: &str = "demi_events_written_total{system=\"s\"} ";
const DUPLICATE: &str = "demi_events_duplicate_total{system=\"s\"} ";

#[test]
fn a_request_is_stored_once_however_often_it_is_sent() {
    let case = Case::start("type = \"otlp\"\nlisten = \"127.0.0.1:0\"");
    for _ in 0..2 {
        let answer = case.post("/v1/traces", "application/json", SHOP.as_bytes(), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!answer.contains("rejectedSpans"), "{answer}");
    }
    case.daemon.wait_for_metric(WRITTEN, 14);
    case.daemon.wait_for_metric(DUPLICATE, 14);
    let bad = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00","spanId":"01"}]}]}]}"#;
    let answer = case.post("/v1/traces", "application/json", bad, "");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"rejectedSpans\":"), "{answer}");
    for (content_type, body, status) in [
        ("application/json", &b"{"[..], "400"),
        ("application/x-protobuf", b"\xff\xff", "400"),
        ("text/plain", b"x", "415"),
    ] {
        let answer = case.post("/v1/logs", content_type, body, "");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{content_type}: {answer}");
    }
    assert_eq!(case.daemon.metric("demi_refused_total{source=\"in\",reason=\"bad_request\"} "), 2);
    let (summary, _) = case.build();
    assert_eq!(summary["events"], 14, "{summary}");
}

#[test]
fn a_token_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens");
    fs::write(&tokens, "right\n").unwrap();
    let source = format!("type = \"otlp\"\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"", tokens.display());
    let case = Case::start(&source);
    let ask = |headers: &str| case.post("/v1/traces", "application/json", SHOP.as_bytes(), headers);
    assert!(ask("").starts_with("HTTP/1.1 401"));
    assert!(ask("authorization: Bearer wrong\r\n").starts_with("HTTP/1.1 401"));
    assert!(ask("authorization: Bearer right\r\n").starts_with("HTTP/1.1 200"));
    assert_eq!(case.daemon.metric("demi_refused_total{source=\"in\",reason=\"wrong_token\"} "), 2);
}

#[test]
fn requests_that_are_too_large_or_too_slow_are_refused_and_others_are_served() {
    let case = Case::start("type = \"otlp\"\nlisten = \"127.0.0.1:0\"");
    let address = case.daemon.addresses().get("in").unwrap();
    // A small body that is large when it is unpacked, and one that is large.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![b' '; 20 << 20]).unwrap();
    let bomb = bomb.finish().unwrap();
    let answer = case.post("/v1/logs", "application/json", &bomb, "content-encoding: gzip\r\n");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    let answer = case.post("/v1/logs", "application/json", &vec![b' '; 17 << 20], "");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    case.daemon.wait_for_metric("demi_refused_total{source=\"in\",reason=\"body_too_large\"} ", 2);
    // A body that does not come, a head that does not end, HTTP/2 without a request, nothing at all.
    let begun: [&[u8]; 4] = [
        b"POST /v1/logs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
        b"POST /v1/logs HTTP/1.1\r\nhost",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"",
    ];
    let slow: Vec<TcpStream> = begun
        .into_iter()
        .map(|bytes| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream
        })
        .collect();
    let answer = case.post("/v1/traces", "application/json", SHOP.as_bytes(), "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for mut stream in slow {
        let mut rest = Vec::new();
        // Closed by the daemon, with or without a word.
        assert!(!stream.read_to_end(&mut rest).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock));
    }
    case.daemon.wait_for_metric("demi_refused_total{source=\"in\",reason=\"too_slow\"} ", 4);
    case.daemon.wait_for_metric(WRITTEN, 14);
}

/// A Python with the SDK, or nothing where it cannot be installed.
fn python() -> Option<PathBuf> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otlp_peer/requirements.txt");
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("otlp-peer");
    let python = venv.join("bin/python");
    let run = |command: &mut Command| command.output().is_ok_and(|o| o.status.success());
    let works = |python: &Path| {
        run(Command::new(python).args(["-c", "import opentelemetry.exporter.otlp.proto.http.trace_exporter"]))
    };
    if !works(&python) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "-q", "-r"]).arg(requirements));
    }
    if works(&python) {
        return Some(python);
    }
    eprintln!("skipped: the OpenTelemetry SDK for Python cannot be installed");
    None
}

#[test]
fn the_python_sdk_ships_an_order_that_is_right() {
    let Some(python) = python() else { return };
    let case = Case::start("type = \"otlp\"\nlisten = \"127.0.0.1:0\"");
    let endpoint = format!("http://{}/v1/traces", case.daemon.addresses().get("in").unwrap());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otlp_peer/program.py");
    let output = Command::new(python).arg(program).args([&endpoint, "20"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Five spans an order.
    case.daemon.wait_for_metric(WRITTEN, 100);
    let (summary, exec) = case.build();
    assert_eq!(summary["events"], 100, "{summary}");
    assert_eq!(
        summary["messages"]["matched"].as_u64().or(summary["matched"].as_u64()),
        Some(40),
        "{summary}"
    );
    let events = told(&case.dir.path().join("store"));
    // The program does five things for an order, in this order: each follows from the one before.
    let of = |actor: &str, kind: &str| -> Vec<String> {
        let all = events[actor].iter().filter(|(_, event)| event.kind == kind);
        all.map(|(seq, _)| format!("{actor}/{seq}")).collect()
    };
    let steps = [of("shop", "send"), of("billing", "receive"), of("billing", "send"), of("mail", "receive")];
    let mut pairs = Vec::new();
    for n in 0..20 {
        for (before, after) in steps.iter().zip(&steps[1..]) {
            pairs.push((before[n].clone(), after[n].clone(), "before"));
            pairs.push((after[n].clone(), before[n].clone(), "after"));
        }
        pairs.push((steps[0][n].clone(), steps[3][n].clone(), "before"));
        // Nothing that the shop does later follows from what becomes of an order, and mail tells nobody.
        if n < 19 {
            pairs.push((steps[3][n].clone(), steps[0][n + 1].clone(), "concurrent"));
            pairs.push((steps[1][n].clone(), steps[0][n + 1].clone(), "concurrent"));
        }
    }
    let file = case.dir.path().join("pairs");
    let lines: String = pairs.iter().map(|(a, b, _)| format!("{a}\t{b}\n")).collect();
    fs::write(&file, lines).unwrap();
    let output = assert_cmd::Command::cargo_bin("demi-lineage")
        .unwrap()
        .arg("query")
        .arg(&exec)
        .args(["order", "--json", "--pairs"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), pairs.len());
    for ((a, b, expected), answer) in pairs.iter().zip(&answers) {
        assert_eq!(answer["order"], *expected, "{a} and {b}: {answer}");
    }
}
