//! Connections, requests and messages whose lines are mapped, and mappings that a source cannot use.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use demi_store::Store;
use kill::check::{rows, told};
use kill::daemon::Daemon;
use predicates::str::contains;

#[test]
fn connections_and_bodies_take_mappings_that_need_no_order() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path().display();
    let config = format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n[daemon]\nlog = \"info\"\n\
         [sources.tcp]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\nmapping = \"tracing\"\n\
         [sources.http]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\nmapping = \"tracing\"\n"
    );
    let mut daemon = Daemon::with_config(dir.path(), &config);
    daemon.start();
    let line = |who: &str, n: u64| {
        format!(
            "{{\"TracerIdentity\":\"{who}\",\"Tag\":\"T\",\"Body\":\"{n}\",\"VectorClock\":{{\"{who}\":{n}}}}}\n"
        )
    };
    let text: String = (1..=300).map(|n| line("tcp", n)).collect();
    // Sent twice, as a client does that did not hear the answer.
    for _ in 0..2 {
        let mut stream = TcpStream::connect(daemon.addresses().get("tcp").unwrap()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answers = BufReader::new(&stream).lines();
        assert!(answers.any(|answer| answer.unwrap() == "{\"acknowledged\":300}"));
    }
    let mut body: String = (1..=300).map(|n| line("http", n)).collect();
    body.push_str("no JSON\n");
    let mut stream = TcpStream::connect(daemon.addresses().get("http").unwrap()).unwrap();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("{\"acknowledged\":301}"), "{answer}");
    daemon.wait_for(600);
    daemon.stop();
    let found = told(&dir.path().join("store"));
    for who in ["tcp", "http"] {
        assert_eq!(found[who].len(), 300);
        assert!(found[who].iter().all(|(seq, event)| event.payload == seq.to_string()), "{who}");
    }
    let store = Store::open(dir.path().join("store")).unwrap();
    assert_eq!(rows(&store.quarantine_files("s").unwrap()), 1, "the line that is no JSON");
}

#[test]
fn mappings_that_a_source_cannot_give_what_they_need_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("demi.toml");
    let validate = |source: &str| {
        let text =
            format!("[store]\ndir = \"s\"\n[spool]\ndir = \"p\"\n[sources.in]\nsystem = \"s\"\n{source}\n");
        fs::write(&path, text).unwrap();
        let mut command = assert_cmd::Command::cargo_bin("demi-lineage").unwrap();
        command.args(["ingest", "validate"]).arg(Path::new(&path));
        command.assert()
    };
    let files = "type = \"files\"\npaths = [\"/var/log/*.log\"]\n";
    let tcp = "type = \"tcp\"\nlisten = \"127.0.0.1:0\"\n";
    let nats = "type = \"nats\"\nurl = \"nats://h:4222\"\nstream = \"S\"\n";
    validate(&format!("{files}mapping = \"akka\"")).success();
    validate(&format!("{tcp}mapping = \"tracing\"")).success();
    validate(&format!("{nats}mapping = \"tracing\"")).success();
    for (source, mapping, reason) in [
        (files, "zipkin", "it reads whole documents"),
        (files, "akkka", "akka"),
        (files, "no/such.toml", "no/such.toml"),
        (tcp, "logfmt", "it counts sequence numbers"),
        (nats, "govector", "the first lines say how the others are read"),
    ] {
        let text = format!("{source}mapping = \"{mapping}\"");
        validate(&text).code(2).stderr(contains("[sources.in] mapping:")).stderr(contains(reason));
    }
    validate(&format!("{nats}mapping = \"tracing\"\nformat = \"otlp_json\""))
        .code(2)
        .stderr(contains("OTLP"));
}
