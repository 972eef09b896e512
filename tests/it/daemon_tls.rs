//! The daemon over TLS: who is served, who is refused and counted, and certificates that change while it runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;
use crate::support::tls;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use kill::daemon::Daemon;
use predicates::str::contains;
use tls::{Authority, Client, Identity};

struct Case {
    dir: tempfile::TempDir,
    daemon: Daemon,
    ours: Authority,
}

impl Case {
    /// A daemon with a source `mutual` (lines over TCP, clients need certificates) and a source `token` (HTTP).
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ours = Authority::new();
        ours.write(&dir.path().join("clients.pem"));
        ours.sign().write(dir.path(), "server");
        fs::write(dir.path().join("tokens"), "right\n").unwrap();
        let mut daemon = Daemon::with_config(dir.path(), &config(dir.path(), "127.0.0.1:0"));
        daemon.start();
        Case { dir, daemon, ours }
    }

    fn connect(&self, source: &str, trusted: &Authority, own: Option<&Identity>) -> Client {
        Client::connect(self.daemon.addresses().get(source).unwrap(), trusted, own)
    }

    fn refused(&self, source: &str, reason: &str) -> u64 {
        self.daemon.metric(&format!("demi_refused_total{{source=\"{source}\",reason=\"{reason}\"}} "))
    }

    fn wait_until(&self, what: &str, mut done: impl FnMut(&Case) -> bool) {
        self.daemon.wait_until(what, || done(self));
    }

    /// Proves that clients with a certificate and clients with a token are served.
    fn still_serves(&self, seq: u64) {
        let own = self.ours.sign();
        let mut client = self.connect("mutual", &self.ours, Some(&own));
        client.stream.write_all(record("mutual", seq).as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&mut client.stream).read_line(&mut answer).unwrap();
        assert_eq!(answer, "{\"acknowledged\":1}\n");
        let answer = self.post("authorization: Bearer right\r\n", record("token", seq).as_bytes());
        assert!(answer.contains("{\"acknowledged\":1}"), "{answer}");
    }

    fn post(&self, headers: &str, body: &[u8]) -> String {
        let mut client = self.connect("token", &self.ours, None);
        client.exchange(&request(headers, body)).unwrap()
    }
}

fn config(dir: &Path, listen: &str) -> String {
    let d = dir.display();
    format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n\
         [limits]\nline_bytes = 1000\nbody_bytes = 5000\nread_secs = 1\nidle_secs = 2\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nlog = \"info\"\n\
         [sources.mutual]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"{listen}\"\n\
         tls_cert = \"{d}/server.pem\"\ntls_key = \"{d}/server.key\"\ntls_client_ca = \"{d}/clients.pem\"\n\
         [sources.token]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"{listen}\"\n\
         tls_cert = \"{d}/server.pem\"\ntls_key = \"{d}/server.key\"\ntoken_file = \"{d}/tokens\"\n\
         [sources.spans]\ntype = \"otlp\"\nsystem = \"s\"\nlisten = \"{listen}\"\ntls_client_ca = \"{d}/clients.pem\"\n\
         tls_cert = \"{d}/server.pem\"\ntls_key = \"{d}/server.key\"\ntoken_file = \"{d}/tokens\"\n"
    )
}

fn record(actor: &str, seq: u64) -> String {
    format!("{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"start\"}}\n")
}

fn request(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn only_clients_with_a_certificate_of_the_authority_are_served() {
    let case = Case::start();
    case.still_serves(1);
    let line = record("stranger", 1);
    // Without a certificate.
    let answer = case.connect("mutual", &case.ours, None).exchange(line.as_bytes());
    assert!(answer.is_err(), "{answer:?}");
    case.wait_until("it is counted", |case| case.refused("mutual", "bad_handshake") == 1);
    // With one of another authority.
    let theirs = Authority::new();
    let answer = case.connect("mutual", &case.ours, Some(&theirs.sign())).exchange(line.as_bytes());
    assert!(answer.is_err(), "{answer:?}");
    case.wait_until("it is counted", |case| case.refused("mutual", "bad_handshake") == 2);
    // A client that does not trust the daemon goes away.
    let own = case.ours.sign();
    let answer = case.connect("mutual", &theirs, Some(&own)).exchange(line.as_bytes());
    assert!(answer.unwrap_err().to_string().contains("invalid peer certificate"));
    case.wait_until("it is counted", |case| case.refused("mutual", "bad_handshake") == 3);
    case.still_serves(2);
    // Nothing of what the strangers sent was taken.
    case.wait_until("the others' records are stored", |case| {
        case.daemon.get("/metrics").contains("demi_events_written_total{system=\"s\"} 4")
    });
}

#[test]
fn telemetry_over_tls_needs_a_certificate_and_a_token() {
    let case = Case::start();
    let own = case.ours.sign();
    let ask = |own: Option<&Identity>, token: &str| {
        let body = record("spans", 1).trim_end().replace('"', "\\\"");
        let body = format!(
            "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{{\"stringValue\":\"{body}\"}}}}]}}]}}]}}"
        );
        let headers = format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        let bytes =
            String::from_utf8(request(&headers, body.as_bytes())).unwrap().replace("/v1/events", "/v1/logs");
        case.connect("spans", &case.ours, own).exchange(bytes.as_bytes())
    };
    assert!(ask(None, "right").is_err());
    case.wait_until("it is counted", |case| case.refused("spans", "bad_handshake") == 1);
    assert!(ask(Some(&own), "wrong").unwrap().starts_with("HTTP/1.1 401"));
    assert!(ask(Some(&own), "right").unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(case.refused("spans", "wrong_token"), 1);
    let mut plain = TcpStream::connect(case.daemon.addresses().get("spans").unwrap()).unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    case.wait_until("it is counted", |case| case.refused("spans", "plain_text") == 1);
    case.wait_until("it is stored once", |case| {
        case.daemon.get("/metrics").contains("demi_events_written_total{system=\"s\"} 1")
    });
}

#[test]
fn what_does_not_belong_on_a_tls_port_is_refused_and_counted() {
    let case = Case::start();
    let address = case.daemon.addresses().get("token").unwrap();
    // Plain text is closed without an answer.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    plain.write_all(&request("authorization: Bearer right\r\n", record("plain", 1).as_bytes())).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    case.wait_until("it is counted", |case| case.refused("token", "plain_text") == 1);
    // Something that only begins like TLS.
    let mut noise = TcpStream::connect(address).unwrap();
    noise.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
    case.wait_until("it is counted", |case| case.refused("token", "bad_handshake") == 1);
    // Handshakes that do not go on are cut off; meanwhile others are served.
    let mut slow: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"\x16").unwrap());
    case.still_serves(1);
    case.wait_until("they are counted", |case| case.refused("token", "too_slow") == 5);
    // Inside of TLS the same limits hold as outside.
    let line = record("x", 1);
    assert!(case.post("", line.as_bytes()).starts_with("HTTP/1.1 401"));
    assert!(case.post("authorization: Bearer wrong\r\n", line.as_bytes()).starts_with("HTTP/1.1 401"));
    let right = "authorization: Bearer right\r\n";
    assert!(case.post(right, &[b'x'; 6000]).starts_with("HTTP/1.1 413"));
    assert_eq!((case.refused("token", "wrong_token"), case.refused("token", "body_too_large")), (2, 1));
    let own = case.ours.sign();
    let answer = case.connect("mutual", &case.ours, Some(&own)).exchange(&[b'z'; 100_000]);
    assert!(!answer.is_ok_and(|answer| answer.contains("acknowledged")));
    let mut trickle = case.connect("mutual", &case.ours, Some(&own));
    let answer = trickle.exchange(b"{\"actor\":").unwrap();
    assert_eq!(answer, "{\"error\":\"too_slow\"}\n");
    case.wait_until("both are counted", |case| {
        (case.refused("mutual", "line_too_long"), case.refused("mutual", "too_slow")) == (1, 1)
    });
    case.still_serves(2);
}

#[test]
fn certificates_and_tokens_are_read_again_without_a_restart() {
    let case = Case::start();
    let shown = |case: &Case| case.connect("token", &case.ours, None).shown();
    let first = shown(&case);
    let own = case.ours.sign();
    let mut before = case.connect("mutual", &case.ours, Some(&own));
    before.stream.write_all(record("old", 1).as_bytes()).unwrap();
    let mut answers = BufReader::new(before.stream);
    let mut answer = String::new();
    answers.read_line(&mut answer).unwrap();
    let pid = case.daemon.id();
    // A new certificate and another token.
    let second = case.ours.sign();
    second.write(case.dir.path(), "server");
    fs::write(case.dir.path().join("tokens"), "other\n").unwrap();
    assert_eq!(shown(&case), first, "nothing is read before it is asked for");
    case.daemon.signal("HUP");
    case.wait_until("new connections see the new certificate", |case| shown(case) == second.der());
    assert_ne!(first, second.der());
    assert!(case.post("authorization: Bearer right\r\n", b"").starts_with("HTTP/1.1 401"));
    assert!(case.post("authorization: Bearer other\r\n", b"").starts_with("HTTP/1.1 200"));
    // The connection of before goes on.
    answers.get_mut().write_all(record("old", 2).as_bytes()).unwrap();
    answer.clear();
    answers.read_line(&mut answer).unwrap();
    assert_eq!(answer, "{\"acknowledged\":2}\n");
    // What cannot be used is not taken over.
    fs::write(case.dir.path().join("server.pem"), "no certificate").unwrap();
    fs::write(case.dir.path().join("tokens"), "third\n").unwrap();
    case.daemon.signal("HUP");
    case.wait_until("it is told", |case| case.daemon.log().contains("stay as they were"));
    assert_eq!(shown(&case), second.der());
    assert!(case.post("authorization: Bearer other\r\n", b"").starts_with("HTTP/1.1 200"));
    // Another authority for clients.
    let theirs = Authority::new();
    theirs.write(&case.dir.path().join("clients.pem"));
    second.write(case.dir.path(), "server");
    case.daemon.signal("HUP");
    case.wait_until("clients of before are strangers", |case| {
        case.connect("mutual", &case.ours, Some(&own)).exchange(record("old", 3).as_bytes()).is_err()
    });
    let mut known = case.connect("mutual", &case.ours, Some(&theirs.sign()));
    known.stream.write_all(record("new", 1).as_bytes()).unwrap();
    answer.clear();
    BufReader::new(&mut known.stream).read_line(&mut answer).unwrap();
    assert_eq!(answer, "{\"acknowledged\":1}\n");
    assert_eq!(case.daemon.id(), pid);
}

#[test]
fn validate_refuses_what_serve_would_refuse() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, d) = (Authority::new(), dir.path());
    let fresh = || {
        ours.write(&d.join("clients.pem"));
        ours.sign().write(d, "server");
        fs::write(d.join("tokens"), "right\n").unwrap();
    };
    let path = d.join("demi.toml");
    let run = |text: &str, args: &[&str]| {
        fs::write(&path, text).unwrap();
        let mut command = assert_cmd::Command::cargo_bin("demi-lineage").unwrap();
        command.args(args).arg(&path).timeout(Duration::from_secs(30));
        command.assert()
    };
    fresh();
    let good = config(d, "127.0.0.1:0");
    run(&good, &["ingest", "validate"]).success();
    let open = "[sources.open]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"0.0.0.0:0\"\n";
    let otlp = "[sources.open]\ntype = \"otlp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\nactor_by = []\n";
    let nats = format!(
        "[sources.q]\ntype = \"nats\"\nsystem = \"s\"\nurl = \"nats://h\"\nstream = \"S\"\ntoken_file = \"{}/no\"\n",
        d.display()
    );
    let texts = [
        (format!("{good}{open}"), "not a loopback address"),
        (format!("{good}{otlp}"), "at least one attribute"),
        (format!("{good}{nats}"), "cannot be read"),
        (
            good.replace("[admin]\nlisten = \"127.0.0.1:0\"", "[admin]\nlisten = \"0.0.0.0:0\""),
            "not a loopback",
        ),
        (good.replace("log = \"info\"", "log = \"info,=x=\""), "[daemon] log"),
        (good.replace("server.key", "nothing.key"), "nothing.key"),
    ];
    for (text, reason) in &texts {
        run(text, &["ingest", "validate"]).code(2).stderr(contains(*reason));
        run(text, &["ingest", "serve", "--config"]).code(2).stderr(contains(*reason));
    }
    for (name, content, reason) in [
        ("server.pem", "nothing", "server.pem"),
        ("server.key", "nothing", "holds no private key"),
        ("clients.pem", "", "holds no certificate"),
        ("tokens", "# none\n", "holds no token"),
    ] {
        fs::write(d.join(name), content).unwrap();
        run(&good, &["ingest", "validate"]).code(2).stderr(contains(reason));
        run(&good, &["ingest", "serve", "--config"]).code(2).stderr(contains(reason));
        fresh();
    }
    // A key that is of another certificate.
    fs::write(d.join("server.key"), ours.sign().key).unwrap();
    run(&good, &["ingest", "validate"]).code(2).stderr(contains("does not go with"));
}
