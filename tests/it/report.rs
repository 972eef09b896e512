//! Exports and reports through the binary; the page is used in headless Chromium.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::browser::browser;
use crate::support::demo;

fn demi(args: &[&str]) -> Output {
    assert_cmd::Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(args).output().unwrap()
}

fn done(args: &[&str]) -> String {
    let output = demi(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = demi(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn drive(python: &Path, url: &str, steps: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report_page/drive.py");
    let output = Command::new(python).arg(script).args([url, "--steps", steps]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{seen}");
    if seen["axe"].is_null() {
        println!("skipped: no axe-core (`npm ci` in crates/report), so its rules were not tried on the page");
    }
    seen
}

#[test]
fn the_demo_is_exported_and_read_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let out = path(folder.path(), "demo");
    demo::copy_into(Path::new(&out));
    let (exec, min) = (format!("{out}/exec"), format!("{out}/min"));

    let events = |args: &[&str]| -> usize {
        let json: Value = serde_json::from_str(&done(args)).unwrap();
        json["events"].as_array().unwrap().len()
    };
    assert_eq!(events(&["export", &exec, "--format", "json"]), 1371);
    assert_eq!(events(&["export", &exec, "--format", "json", "--kept"]), 1364);
    let past = events(&["export", &exec, "--format", "json", "--past", "raft-member-1/40"]);
    assert!((40..1364).contains(&past), "{past}");
    assert!(events(&["export", &min, "--format", "json"]) > 22);
    let file = path(folder.path(), "slice.log");
    done(&["export", &min, "--format", "shiviz", "-o", &file]);
    let log = std::fs::read_to_string(&file).unwrap();
    assert!(log.starts_with("(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})\n\n"), "{log}");
    for format in ["dot", "graphml", "perfetto", "mermaid"] {
        assert!(!done(&["export", &min, "--format", format]).is_empty(), "{format}");
    }
    assert!(
        refused(&["export", &exec, "--format", "dot", "--past", "raft-member-9/1"]).contains("raft-member-1")
    );
    assert!(refused(&["export", &out, "--format", "dot"]).contains("what is wanted here is an execution"));
    assert!(refused(&["report", &exec]).contains("--html"));
    assert!(refused(&["report", &min, "--serve"]).contains("--html"));

    // The same folder gives the same page, and the page holds no address of elsewhere.
    let (page, again) = (format!("{out}/report.html"), path(folder.path(), "again.html"));
    done(&["report", &min, "--original", &exec, "--html", &again]);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html == std::fs::read_to_string(&again).unwrap(), "two pages of one result differ");
    for address in ["src=", "href=", "@import", "url("] {
        assert!(!html.contains(address), "{address}");
    }

    // Another schedule of a result, any two executions, and all members of the Pareto front.
    let (one, two, front) =
        (path(folder.path(), "one.html"), path(folder.path(), "two.html"), path(folder.path(), "front.html"));
    done(&["report", &format!("{min}/reduced.jsonl"), "--html", &one]);
    done(&["report", &exec, "--with", &min, "--html", &two]);
    let summary = format!("{min}/summary.json");
    let mut told: Value = serde_json::from_str(&std::fs::read_to_string(&summary).unwrap()).unwrap();
    for (steps, file) in [(99, "../exec/schedule.jsonl"), (28, "reduced.jsonl"), (28, "gone.jsonl")] {
        let other = serde_json::json!({"steps": steps, "deliveries": 24, "externals": 8, "file": file});
        told["others"].as_array_mut().unwrap().push(other);
    }
    std::fs::write(&summary, told.to_string()).unwrap();
    done(&["report", &min, "--html", &front]);
    assert!(refused(&["report", &exec, "--with", &out, "--html", &two]).contains("what is wanted here"));
    assert!(refused(&["report", &exec, "--with", &min, "--serve"]).contains("--with"));

    let Some(python) = browser() else { return };
    let names = |page: &str| -> Vec<String> {
        let seen = drive(&python, &format!("file://{page}"), "5");
        seen["traces"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&one)[..2], ["recorded", "reduced.jsonl"]);
    assert_eq!(names(&two), ["exec", "min"]);
    let front = names(&front);
    assert!(
        front[..2] == ["recorded", "minimized"] && front.last().unwrap() == "28 steps, 8 external",
        "{front:?}"
    );
    assert!(front.iter().all(|name| !name.starts_with("99 ")), "what lies elsewhere is not read: {front:?}");
    let seen = drive(&python, &format!("file://{page}"), "20");
    assert_eq!(seen["title"], "ElectionSafety:raft-member-3:raft-member-4");
    assert_eq!(seen["traces"][0]["events"], 1371);
    assert_eq!(seen["traces"][1]["name"], "minimized");
    assert!(seen["variables"].as_u64().unwrap() >= 1, "{seen}");
}

/// A server that ends with the test.
struct Server {
    process: std::process::Child,
    url: String,
}

impl Server {
    fn start(args: &[&str]) -> Server {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"));
        let mut process = command.arg("-q").args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Server { process, url: url.trim().to_owned() }
    }

    fn ask(&self, host: &str, head: &str, body: &str) -> String {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let host = if host.is_empty() { address } else { host };
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(stream, "{head} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_store_is_served_to_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (path(folder.path(), "logs.jsonl"), path(folder.path(), "store"));
    let mut text = String::new();
    for i in 0..3000_u32 {
        let (seq, id) = (i + 1, i);
        text.push_str(&format!("{{\"actor\":\"a\",\"seq\":{seq},\"kind\":\"send\",\"msg_id\":\"{id}\",\"from\":\"a\",\"to\":\"b\",\"type\":\"Ping\",\"payload\":\"</script>{i}\"}}\n"));
        text.push_str(&format!("{{\"actor\":\"b\",\"seq\":{seq},\"kind\":\"receive\",\"msg_id\":\"{id}\",\"from\":\"a\",\"to\":\"b\",\"type\":\"Ping\",\"payload\":\"</script>{i}\"}}\n"));
    }
    std::fs::write(&logs, text).unwrap();
    done(&["ingest", "load", "--store", &store, "--system", "s", &logs]);
    let html = path(folder.path(), "window.html");
    done(&["report", &store, "--last", "400", "--html", &html]);
    let around = path(folder.path(), "around.html");
    let violation = ["report", &store, "--violation", "actors:b", "--html", &around];
    done(&[&violation[..], &["--around", "b/1000", "--window", "401"]].concat());
    let whole = path(folder.path(), "whole.html");
    done(&["report", &store, "--html", &whole]);
    let size = |page: &str| std::fs::metadata(page).unwrap().len();
    assert!(size(&html) < size(&whole) && size(&around) < size(&whole), "pages of windows hold less");
    let exec = path(folder.path(), "exec");
    done(&["build", "--store", &store, "--system", "s", "--violation", "actors:b", "--out", &exec]);
    let json: Value = serde_json::from_str(&done(&[
        "export", &exec, "--format", "json", "--around", "b/1000", "--window", "21",
    ]))
    .unwrap();
    let names: Vec<&str> =
        json["events"].as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap_or_default()).collect();
    assert_eq!((names.len(), names[10]), (21, "b/1000"), "{names:?}");
    assert!(refused(&["report", &store, "--last", "0", "--html", &html]).contains("--last"));
    assert!(refused(&["report", &store, "--last", "5", "--serve"]).contains("slices are for --html"));
    let server = Server::start(&["report", &store, "--serve", "--system", "s", "--violation", "actors:b"]);
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);

    let page = server.ask("", "GET /", "");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.to_lowercase().contains("x-content-type-options: nosniff")
    );
    assert!(!page.to_lowercase().contains("access-control-allow"), "no other page may ask");
    assert!(server.ask("evil.example", "GET /", "").starts_with("HTTP/1.1 421"));
    assert!(server.ask("127.0.0.1:1", "POST /ask", r#"{"ask":"overview"}"#).starts_with("HTTP/1.1 421"));
    assert!(server.ask("", "POST /ask", r#"{"ask":"overview","x":1}"#).starts_with("HTTP/1.1 4"));
    assert!(server.ask("", "PUT /ask", "{}").starts_with("HTTP/1.1 405"));
    let answer = |question: &str| -> Value {
        let answer = server.ask("", "POST /ask", question);
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1)
            .unwrap_or_else(|e| panic!("{e}: {answer}"))
    };
    let b = answer(r#"{"ask":"named","name":"b/2000"}"#)["event"].as_u64().unwrap();
    assert_eq!(answer(&format!(r#"{{"ask":"past","of":{b}}}"#))["size"], 4000);
    let found = answer(r#"{"ask":"search","patterns":[[{"tests":[{"text":"script>2999"}]}]],"after":null}"#);
    assert_eq!((found["events"].as_array().unwrap().len(), &found["total"]), (2, &Value::from(2)));
    let all =
        answer(r#"{"ask":"search","patterns":[[{"tests":[{"key":"type","text":"ping"}]}]],"after":999}"#);
    assert_eq!((all["events"].as_array().unwrap().len(), &all["total"]), (5000, &Value::from(5000)));
    assert_eq!(answer(r#"{"ask":"past","of":4294967295}"#)["event"], Value::Null);
    assert_eq!(
        answer(r#"{"ask":"events","from":4294967290,"to":4294967295}"#)["columns"]["actor"],
        Value::Array(vec![])
    );

    let Some(python) = browser() else { return };
    let seen = drive(&python, &server.url, "10");
    assert_eq!(seen["traces"][0]["events"], 6000);
}

/// Two workers that both hold a lock for a moment.
fn two_holders() -> String {
    let mut text = String::new();
    let mut seqs = [0, 0];
    let mut tell = |worker: usize, rest: &str| {
        seqs[worker] += 1;
        text.push_str(&format!("{{\"actor\":\"w-{worker}\",\"seq\":{},{rest}}}\n", seqs[worker]));
    };
    for i in 0..40 {
        let holds = i == 20;
        tell(0, r#""kind":"timer_fire","type":"Tick""#);
        tell(0, &format!(r#""kind":"state","state":{{"holds":{holds},"turn":{i}}}"#));
        tell(0, &format!(r#""kind":"send","to":"w-1","from":"w-0","type":"Turn","msg_id":"{i}""#));
        tell(1, &format!(r#""kind":"receive","to":"w-1","from":"w-0","type":"Turn","msg_id":"{i}""#));
        tell(1, &format!(r#""kind":"state","state":{{"holds":{holds},"turn":{i}}}"#));
    }
    text
}

#[test]
fn a_page_tells_which_invariants_fail_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let (logs, store) = (path(folder.path(), "logs.jsonl"), path(folder.path(), "store"));
    std::fs::write(&logs, two_holders()).unwrap();
    done(&["ingest", "load", "--store", &store, "--system", "s", &logs]);
    let invariants = path(folder.path(), "invariants.toml");
    let text = "schema = \"demi-invariants/1\"\n\
        [[invariant]]\nholds = \"turn >= prev.turn\"\nbits = 40.5\nepisodes = 41\n\
        [[invariant]]\nid = \"x\"\nname = \"one <b>holder</b>\"\nholds = \"WHERE holds = true HAVING count(*) <= 1\"\n\
        [[invariant]]\nholds = \"nobody.told = 1\"\n";
    std::fs::write(&invariants, text).unwrap();
    let html = path(folder.path(), "page.html");
    let page = ["report", &store, "--violation", "actors:w-0", "--html", &html, "--invariants"];
    done(&[&page[..], &[&invariants]].concat());
    std::fs::write(&logs, "schema = \"demi-invariants/1\"\n[[invariant]]\nholds = \"turn >> 1\"\n").unwrap();
    assert!(refused(&[&page[..], &[&logs]].concat()).contains("the invariant 'turn >> 1'"));
    let Some(python) = browser() else { return };
    let seen = drive(&python, &format!("file://{html}"), "20");
    let expected = serde_json::json!([["fails", "w-1/42"], ["nothing told", ""], ["holds", ""]]);
    assert_eq!(seen["invariants"], expected);
    let server = Server::start(&[
        "report",
        &store,
        "--serve",
        "--violation",
        "actors:w-0",
        "--invariants",
        &invariants,
    ]);
    assert_eq!(drive(&python, &server.url, "20")["invariants"], expected);
}
