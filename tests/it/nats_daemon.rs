//! Queues of NATS JetStream that the daemon reads: messages are acknowledged when their events are on disk.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;
use crate::support::tls;

use std::fs;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use kill::check::told;
use kill::daemon::Daemon;
use kill::nats::Server;
use tls::Authority;

struct Case {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

impl Case {
    /// A daemon that reads the stream of the server; `more` are further settings.
    fn start(server: &Server, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().display();
        let url = server.url();
        let config = format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nlog = \"info\"\n\
             [sources.in]\nsystem = \"s\"\ntype = \"nats\"\nurl = \"{url}\"\nstream = \"EVENTS\"\n{more}\n"
        );
        let mut daemon = Daemon::with_config(dir.path(), &config);
        daemon.start();
        Case { dir, daemon }
    }
}

const WRITTEN: &str = "demi_events_written_total{system=\"s\"} ";
const DUPLICATE: &str = "demi_events_duplicate_total{system=\"s\"} ";

#[test]
fn jetstream_messages_are_acknowledged_when_they_are_stored() {
    let Some(server) = Server::start() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stream = runtime.block_on(async {
        let context = server.context().await;
        let stream = context.get_stream("EVENTS").await.unwrap();
        for n in 1..=300_u64 {
            let line = format!("{{\"actor\":\"a\",\"seq\":{n},\"kind\":\"start\"}}\n");
            // Each twice, as a producer does that did not hear the answer.
            context.publish("events.a", line.clone().into()).await.unwrap().await.unwrap();
            context.publish("events.a", line.into()).await.unwrap().await.unwrap();
        }
        context.publish("events.a", "nonsense".into()).await.unwrap().await.unwrap();
        stream
    });
    let mut case = Case::start(&server, "");
    case.daemon.wait_for_metric(WRITTEN, 300);
    case.daemon.wait_for_metric(DUPLICATE, 300);
    case.daemon.wait_for_metric("demi_events_rejected_total{reason=\"not_json\"} ", 1);
    case.daemon.kill();
    case.daemon.start();
    runtime.block_on(async {
        let consumer: async_nats::jetstream::consumer::PullConsumer =
            stream.get_consumer("demi-lineage").await.unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let mut consumer = consumer.clone();
            let info = consumer.info().await.unwrap();
            if info.num_ack_pending == 0 && info.num_pending == 0 {
                break;
            }
            assert!(Instant::now() < end, "{info:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

fn publish(server: &Server, texts: &[String]) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let context = server.context().await;
        for text in texts {
            context.publish("events.a", text.clone().into()).await.unwrap().await.unwrap();
        }
    });
}

#[test]
fn messages_are_mapped_each_by_itself() {
    let Some(server) = Server::start() else { return };
    let line = |n: u64| {
        format!("{{\"TracerIdentity\":\"a\",\"Tag\":\"T\",\"Body\":\"{n}\",\"VectorClock\":{{\"a\":{n}}}}}\n")
    };
    let texts: Vec<String> = (1..=50).map(|n| line(2 * n - 1) + &line(2 * n)).collect();
    publish(&server, &texts);
    let mut case = Case::start(&server, "mapping = \"tracing\"");
    case.daemon.wait_for_metric(WRITTEN, 100);
    case.daemon.stop();
    let found = told(&case.dir.path().join("store"));
    assert!(found["a"].iter().all(|(seq, event)| event.payload == seq.to_string()));
    assert_eq!(found["a"].len(), 100);
}

#[test]
fn a_server_with_tls_and_a_token_is_read_and_one_that_is_not_trusted_is_not() {
    // For the producer in this process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    let ours = Authority::new();
    ours.write(&files.path().join("ca.pem"));
    ours.sign().write(files.path(), "server");
    Authority::new().write(&files.path().join("other.pem"));
    fs::write(path("token"), "secret\n").unwrap();
    fs::write(path("wrong"), "guess\n").unwrap();
    let (certificate, key, ca) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let arguments = ["--tls", "--tlscert", &certificate, "--tlskey", &key, "--auth", "secret"];
    let options =
        move || ConnectOptions::with_token("secret".into()).add_root_certificates(ca.clone().into());
    let Some(server) = Server::start_with(&arguments, Box::new(options)) else { return };
    let texts: Vec<String> =
        (1..=20).map(|n| format!("{{\"actor\":\"a\",\"seq\":{n},\"kind\":\"start\"}}\n")).collect();
    publish(&server, &texts);
    for (ca, token) in [("other.pem", "token"), ("ca.pem", "wrong")] {
        let more = format!("tls_ca = \"{}\"\ntoken_file = \"{}\"", path(ca), path(token));
        let case = Case::start(&server, &more);
        let refused = "demi_refused_total{source=\"in\",reason=\"server_unreachable\"} ";
        let end = Instant::now() + Duration::from_secs(30);
        while case.daemon.metric(refused) == 0 {
            assert!(Instant::now() < end, "{ca}, {token}: {}", case.daemon.get("/metrics"));
            std::thread::sleep(Duration::from_millis(30));
        }
        assert_eq!(case.daemon.metric(WRITTEN), 0);
    }
    let more = format!("tls_ca = \"{}\"\ntoken_file = \"{}\"", path("ca.pem"), path("token"));
    let case = Case::start(&server, &more);
    case.daemon.wait_for_metric(WRITTEN, 20);
}

#[test]
fn a_server_that_goes_away_is_waited_for() {
    let Some(mut server) = Server::start() else { return };
    let text = |from: u64, to: u64| {
        (from..=to)
            .map(|n| format!("{{\"actor\":\"a\",\"seq\":{n},\"kind\":\"start\"}}\n"))
            .collect::<Vec<_>>()
    };
    publish(&server, &text(1, 30));
    let mut case = Case::start(&server, "");
    case.daemon.wait_for_metric(WRITTEN, 30);
    server.restart(Duration::from_millis(1500));
    let end = Instant::now() + Duration::from_secs(30);
    let ready = || std::net::TcpStream::connect(server.url().trim_start_matches("nats://")).is_ok();
    while !ready() {
        assert!(Instant::now() < end, "the server did not start again");
        std::thread::sleep(Duration::from_millis(30));
    }
    std::thread::sleep(Duration::from_millis(500));
    publish(&server, &text(31, 60));
    case.daemon.wait_for_metric(WRITTEN, 60);
    assert!(case.daemon.metric("demi_refused_total{source=\"in\",reason=\"server_unreachable\"} ") > 0);
    case.daemon.stop();
    let found = told(&case.dir.path().join("store"));
    assert_eq!(found["a"].keys().copied().collect::<Vec<_>>(), (1..=60).collect::<Vec<_>>());
}
