//! What is plain and breaks daemons: odd names, pages in a browser, names of others, the daemon's own files, holes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kill::check::told;
use kill::daemon::Daemon;

fn config(dir: &Path, more: &str) -> String {
    let d = dir.display();
    let listen = "system = \"s\"\nlisten = \"127.0.0.1:0\"";
    format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [daemon]\nlog = \"warn\"\n\
         [sources.otlp]\ntype = \"otlp\"\n{listen}\n[sources.http]\ntype = \"http\"\n{listen}\n[sources.tcp]\ntype = \"tcp\"\n{listen}\n\
         [sources.files]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/in/*.log\"]\npoll_millis = 20\nscan_millis = 50\n{more}"
    )
}

fn start(dir: &Path) -> Daemon {
    fs::create_dir_all(dir.join("in")).unwrap();
    let mut daemon = Daemon::with_config(dir, &config(dir, ""));
    daemon.start();
    daemon
}

fn line(actor: &str, seq: u64, rest: &str) -> String {
    format!("{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"local\"{rest}}}\n")
}

/// The status of a request, and its body.
fn ask(at: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.get(9..12).unwrap_or_default().to_owned(), body.to_owned())
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demi-lineage"));
    command.args(args);
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn a_page_of_elsewhere_reads_nothing_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = start(dir.path());
    let at = |name: &str| daemon.addresses().get(name).unwrap();
    let record = line("page", 1, "");
    let json = "{\"resourceLogs\":[]}";
    for (name, method, path, kind, body) in [
        ("admin", "GET", "/metrics", "", ""),
        ("admin", "GET", "/readyz", "", ""),
        ("admin", "POST", "/v1/invariants/x/mute", "", ""),
        ("http", "POST", "/v1/events", "content-type: text/plain\r\n", record.as_str()),
        ("otlp", "POST", "/v1/logs", "content-type: application/json\r\n", json),
    ] {
        for (headers, status) in [
            ("host: evil.example\r\n", "421"),
            ("host: 127.0.0.1.evil.example:80\r\n", "421"),
            ("host: localhost\r\norigin: http://evil.example\r\n", "403"),
            ("host: localhost\r\norigin: null\r\n", "403"),
        ] {
            let got = ask(at(name), method, path, &format!("{headers}{kind}"), body);
            assert_eq!(got.0, status, "{name} {path} {headers}: {got:?}");
        }
    }
    // A page's request is sent to any port that it names.
    let mut stream = TcpStream::connect(at("tcp")).unwrap();
    let length = record.len();
    write!(stream, "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{record}").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.contains("http_request") && !answer.contains("acknowledged"), "{answer}");
    // Who asks for this machine by its name is served.
    assert_eq!(ask(at("http"), "POST", "/v1/events", "host: localhost\r\n", &line("own", 1, "")).0, "200");
    assert_eq!(
        ask(at("otlp"), "POST", "/v1/logs", "host: [::1]:9\r\ncontent-type: application/json\r\n", json).0,
        "200"
    );
    let refused = daemon.get("/metrics");
    for counted in [
        "source=\"http\",reason=\"foreign_host\"} 2",
        "source=\"otlp\",reason=\"foreign_origin\"} 2",
        "source=\"tcp\",reason=\"http_request\"} 1",
    ] {
        assert!(refused.contains(counted), "{counted}: {refused}");
    }
    daemon.wait_for(1);
    daemon.stop();
    assert_eq!(told(&dir.path().join("store")).keys().collect::<Vec<_>>(), ["own"]);
}

#[test]
fn nobody_but_the_daemon_writes_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = start(dir.path());
    let at = |name: &str| daemon.addresses().get(name).unwrap();
    // From 1 on the incarnations are the daemon's.
    let own = |seq| line("_monitor", seq, "").replace("}\n", ",\"incarnation\":1}\n");
    let theirs = line("_monitor", 7, "");
    assert_eq!(ask(at("http"), "POST", "/v1/events", "host: localhost\r\n", &(own(1) + &theirs)).0, "200");
    fs::write(dir.path().join("in/a.log"), own(2) + &line("file", 1, "")).unwrap();
    let mut stream = TcpStream::connect(at("tcp")).unwrap();
    stream.write_all(own(3).replace(":1}", ":2}").as_bytes()).unwrap();
    let log = own(4).trim().replace('"', "\\\"");
    let logs = format!(
        "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{{\"stringValue\":\"{log}\"}}}}]}}]}}]}}"
    );
    assert_eq!(
        ask(at("otlp"), "POST", "/v1/logs", "host: localhost\r\ncontent-type: application/json\r\n", &logs).0,
        "200"
    );
    daemon.wait_for_metric("demi_events_rejected_total{reason=\"reserved\"} ", 4);
    daemon.wait_for(2);
    daemon.stop();
    let found = told(&dir.path().join("store"));
    assert_eq!(
        found.iter().map(|(actor, all)| (actor.as_str(), all.len())).collect::<Vec<_>>(),
        [("_monitor", 1), ("file", 1)]
    );
    let bad = config(dir.path(), "").replace("[sources.http]", "[sources.\"monitors.m\"]");
    fs::write(dir.path().join("bad.toml"), bad).unwrap();
    let refused = command(&["ingest", "validate"]).arg(dir.path().join("bad.toml")).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("'monitors.m' is a name of the daemon's own"), "{}", text(&refused));
}

#[test]
fn what_the_daemon_keeps_is_its_owners_unless_said_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = start(dir.path());
    daemon.stop();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("store"), mode("spool")), (0o700, 0o700));
    let other = tempfile::tempdir().unwrap();
    fs::create_dir_all(other.path().join("in")).unwrap();
    let text_of = config(other.path(), "").replace("seal_millis", "mode = \"0750\"\nseal_millis");
    let mut daemon = Daemon::with_config(other.path(), &text_of);
    daemon.start();
    daemon.stop();
    assert_eq!(fs::metadata(other.path().join("store")).unwrap().permissions().mode() & 0o777, 0o750);
    // Secrets that others may write are no secrets.
    let tokens = dir.path().join("tokens");
    fs::write(&tokens, "0123456789abcdef0123456789abcdef\n").unwrap();
    let with = config(dir.path(), "")
        .replace("[daemon]", &format!("token_file = \"{}\"\n[daemon]", tokens.display()));
    fs::write(dir.path().join("with.toml"), with).unwrap();
    let validate = |mode| {
        fs::set_permissions(&tokens, fs::Permissions::from_mode(mode)).unwrap();
        command(&["ingest", "validate"]).arg(dir.path().join("with.toml")).output().unwrap()
    };
    let (written, read, own) = (validate(0o666), validate(0o644), validate(0o600));
    assert_eq!(written.status.code(), Some(2));
    assert!(text(&written).contains("can be written by every user"), "{}", text(&written));
    assert!(read.status.success() && text(&read).contains("can be read by every user"), "{}", text(&read));
    assert!(own.status.success() && !text(&own).contains("every user"), "{}", text(&own));
}

#[test]
fn a_configuration_that_cannot_work_is_told_before_it_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let validate = |from: &str, to: &str| {
        let text_of = config(dir.path(), "");
        assert!(text_of.contains(from));
        fs::write(dir.path().join("c.toml"), text_of.replace(from, to)).unwrap();
        command(&["ingest", "validate"]).arg(dir.path().join("c.toml")).output().unwrap()
    };
    let itself = validate("/in/*.log", "/**/*");
    assert_eq!(itself.status.code(), Some(2));
    assert!(text(&itself).contains("which the daemon writes itself"), "{}", text(&itself));
    let small = validate("seal_millis", "reserve_bytes = 1000000000000000000\nseal_millis");
    assert_eq!(small.status.code(), Some(2));
    assert!(text(&small).contains("reserve_bytes: the disk of"), "{}", text(&small));
    assert!(validate("/in/*.log", "/in/**/*").status.success());
    // Where its log goes is known when it is served.
    fs::create_dir_all(dir.path().join("in")).unwrap();
    let log = File::create(dir.path().join("in/own.log")).unwrap();
    fs::write(dir.path().join("c.toml"), config(dir.path(), "")).unwrap();
    let served = command(&["ingest", "serve"])
        .arg(dir.path().join("c.toml"))
        .stdout(Stdio::null())
        .stderr(log)
        .status()
        .unwrap();
    assert_eq!(served.code(), Some(2));
    let said = fs::read_to_string(dir.path().join("in/own.log")).unwrap();
    assert!(said.contains("own.log, which the daemon writes itself"), "{said}");
}

#[test]
fn what_was_never_written_is_passed_over_and_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = start(dir.path());
    let file = File::create(dir.path().join("in/a.log")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all_at(line("a", 1, "").as_bytes(), 0).unwrap();
    // Until something stands behind the hole, it may be written there.
    daemon.wait_for(1);
    file.write_all_at(line("a", 2, "").as_bytes(), line("a", 1, "").len() as u64).unwrap();
    daemon.wait_for(2);
    file.write_all_at((line("a", 3, "") + &line("a", 4, "")).as_bytes(), (1 << 40) - 4096).unwrap();
    daemon.wait_for(4);
    let zeros = File::create(dir.path().join("in/z.log")).unwrap();
    zeros.write_all_at(&vec![0; 9_000_000], 0).unwrap();
    zeros.write_all_at(line("z", 1, "").as_bytes(), 9_000_000).unwrap();
    daemon.wait_for(5);
    daemon.wait_for_metric("demi_events_rejected_total{reason=\"nuls\"} ", 2);
    let begin = Instant::now();
    daemon.stop();
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(told(&dir.path().join("store"))["a"].len(), 4);
}

#[test]
fn standard_input_and_pipes_are_loaded_by_their_paths() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let store = store.to_str().unwrap();
    let mut child = command(&["ingest", "load", "--store", store, "--system", "s", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(line("a", 1, "").as_bytes()).unwrap();
    let loaded = child.wait_with_output().unwrap();
    assert!(loaded.status.success(), "{}", text(&loaded));
    let script = format!(
        "{} ingest load --store {store} --system s <(echo '{}') <(echo '{}')",
        env!("CARGO_BIN_EXE_demi-lineage"),
        line("a", 2, "").trim(),
        line("b", 1, "").trim()
    );
    let loaded = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(loaded.status.success(), "{}", text(&loaded));
    let found = told(Path::new(store));
    assert_eq!((found["a"].len(), found["b"].len()), (2, 1));
}
