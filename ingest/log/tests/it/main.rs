//! What is written is what was logged; what is lost is told.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use demi_log::{Builder, Guard, Layer, LogError, MsgId};
use demi_schemas::{EventRecord, Kind};
use serde_json::{Value, json};
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

fn dispatch(layer: Layer) -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(layer))
}

fn logged(layer: Layer, guard: Guard, f: impl FnOnce()) {
    tracing::dispatcher::with_default(&dispatch(layer), f);
    guard.close().unwrap();
}

fn records(path: &Path) -> Vec<EventRecord> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| EventRecord::parse(line.as_bytes()).unwrap()).collect()
}

#[test]
fn every_kind_of_event_is_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (layer, guard) = Builder::new().without_time().to_file(&path).unwrap();
    let mut ids = Vec::new();
    logged(layer, guard, || {
        demi_log::start!("a", host = "h7");
        ids.push(demi_log::send!("a", "b", "Vote", payload = ?Some("x\"\n"), external = true));
        demi_log::receive!("b", "a", "Vote", ids[0], fields = %r#"{"term":
            3}"#);
        demi_log::send!("b", "c", "Ack", id: "own-7");
        ids.push(demi_log::timer_set!("b", "election"));
        demi_log::timer_fire!("b", "election", ids[1]);
        demi_log::timer_cancel!("b", "election");
        demi_log::state!("b", term = 3_u64, role = "leader", ok = true, load = 0.5, log = ?[1, 2]);
        demi_log::local!("b", "compacted", seq = 9);
        demi_log::crash!("b");
        demi_log::restart!("b");
        demi_log::stop!("b");
        demi_log::violation!("one leader", fields = %json!({"fingerprints": ["f"], "affected": ["b"]}));
        tracing::info!("not an event record");
        tracing::info!(target: "demi_log", "neither");
    });
    let records = records(&path);
    let brief: Vec<String> =
        records.iter().map(|r| format!("{} {}", r.id(), serde_json::to_value(r.kind).unwrap())).collect();
    insta_like(
        &brief,
        r#"a/1 "start"
a/2 "send"
b/1 "receive"
b/2 "send"
b/3 "timer_set"
b/4 "timer_fire"
b/5 "timer_cancel"
b/6 "state"
b/7 "local"
b/8 "crash"
b/1/1 "restart"
b/1/2 "stop"
_monitor/1 "violation""#,
    );
    let (send, receive) = (&records[1], &records[2]);
    assert_eq!(send.msg_id.as_deref(), Some(ids[0].to_string().as_str()));
    assert_eq!((&send.msg_id, send.to.as_deref()), (&receive.msg_id, Some("b")));
    assert_eq!((send.payload.as_deref(), send.external), (Some("Some(\"x\\\"\\n\")"), Some(true)));
    assert_eq!((receive.from.as_deref(), &receive.fields), (Some("a"), &Some(json!({"term": 3}))));
    assert_eq!(records[3].msg_id.as_deref(), Some("own-7"));
    assert_eq!(records[4].msg_id, records[5].msg_id);
    let state = json!({"term": 3, "role": "leader", "ok": true, "load": 0.5, "log": "[1, 2]"});
    assert_eq!(records[7].state, Some(state));
    assert_eq!(records[8].attrs["logged_seq"], 9);
    assert_eq!(records[0].attrs["host"], "h7");
    assert_eq!(records[12].fields.as_ref().unwrap()["affected"], json!(["b"]));
}

fn insta_like(lines: &[String], expected: &str) {
    assert_eq!(lines.join("\n"), expected);
}

/// A sink that takes nothing until it is told to.
struct Stuck {
    go: Receiver<()>,
    open: bool,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.open {
            self.open = self.go.recv().is_ok();
        }
        // In small pieces, as a pipe may.
        let part = &bytes[..bytes.len().min(11)];
        self.written.lock().unwrap().extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn operations_on_threads_are_numbered_over_all_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (layer, guard) = Builder::new().to_file(&path).unwrap();
    let shared = Mutex::new(Vec::new());
    let dispatch = dispatch(layer);
    std::thread::scope(|scope| {
        for name in ["ann", "bob"] {
            let (shared, dispatch) = (&shared, dispatch.clone());
            scope.spawn(move || {
                tracing::dispatcher::with_default(&dispatch, || {
                    for _ in 0..50 {
                        let mut order = shared.lock().unwrap();
                        demi_log::operation!(name, "lock", "order");
                        order.push(name);
                        demi_log::operation!(name, "unlock", "order", waited = false);
                    }
                });
            });
        }
    });
    drop(dispatch);
    drop(guard);
    let mut records = records(&path);
    records.sort_by_key(|record| record.attrs["operation"].as_u64());
    let locks = records.iter().filter(|record| record.type_.as_deref() == Some("lock"));
    let order: Vec<&str> = locks.map(|record| &*record.actor).collect();
    assert_eq!(order, *shared.lock().unwrap(), "the numbers are in the order in which the lock was taken");
    assert!(
        records.chunks(2).all(|pair| pair[0].actor == pair[1].actor),
        "nobody comes between lock and unlock"
    );
    assert_eq!(records[0].payload.as_deref(), Some("order"));
}

#[test]
fn a_slow_sink_holds_nobody_up_and_what_is_lost_is_told() {
    let (go, waiting) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Stuck { go: waiting, open: false, written: written.clone() };
    let builder = Builder::new().buffer_bytes(16 * 4096).flush_every(Duration::from_millis(1));
    let (layer, guard) = builder.to_writer(sink).unwrap();
    let dispatch = dispatch(layer);
    let begin = Instant::now();
    tracing::dispatcher::with_default(&dispatch, || {
        for n in 0..2000_u64 {
            demi_log::local!("a", "work", n = n);
            demi_log::local!("b", "work", n = n);
        }
    });
    assert!(begin.elapsed() < Duration::from_secs(20), "the sink takes nothing, and nobody waits for it");
    assert!(guard.dropped() > 3000, "{}", guard.dropped());
    go.send(()).unwrap();
    // When there is room again the loss is told before the next event of the actor, the other's at the end.
    let (mut dropped, mut tries) = (guard.dropped(), 0);
    loop {
        tries += 1;
        tracing::dispatcher::with_default(&dispatch, || demi_log::local!("a", "after"));
        if guard.dropped() == dropped {
            break;
        }
        dropped = guard.dropped();
        std::thread::sleep(Duration::from_millis(5));
    }
    guard.close().unwrap();
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let mut by_actor: BTreeMap<String, Vec<EventRecord>> = BTreeMap::new();
    for line in text.lines() {
        let record = EventRecord::parse(line.as_bytes()).unwrap();
        by_actor.entry(record.actor.clone()).or_default().push(record);
    }
    let mut told = 0;
    for (actor, mut records) in by_actor {
        records.sort_by_key(|r| r.seq);
        let mut expected = 1;
        for record in &records {
            let is_note = record.type_.as_deref() == Some("demi_log.dropped");
            if is_note {
                let fields = record.fields.as_ref().unwrap();
                let (first, last) = (fields["first"].as_u64().unwrap(), fields["last"].as_u64().unwrap());
                told += fields["dropped"].as_u64().unwrap();
                assert_eq!((first, last + 1), (expected, record.seq), "exactly what is missing is told");
                assert_eq!(fields["dropped"], last - first + 1);
            } else {
                assert_eq!(record.seq, expected, "{actor}");
            }
            expected = record.seq + 1;
        }
        let notes = records.iter().filter(|r| r.type_.as_deref() == Some("demi_log.dropped")).count() as u64;
        let logged = if actor == "a" { 2000 + tries } else { 2000 };
        assert_eq!(expected - 1, logged + notes, "{actor}");
        let last = records.last().unwrap().type_.clone().unwrap();
        assert_eq!(last, if actor == "a" { "after" } else { "demi_log.dropped" });
    }
    assert_eq!(told, dropped);
}

#[test]
fn many_threads_lose_nothing_and_each_actor_keeps_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (layer, guard) = Builder::new().buffer_bytes(256 << 20).to_file(&path).unwrap();
    let dispatch = dispatch(layer);
    std::thread::scope(|scope| {
        for t in 0..8_u64 {
            let dispatch = &dispatch;
            scope.spawn(move || {
                tracing::dispatcher::with_default(dispatch, || {
                    let own = format!("own-{t}");
                    for n in 0..2000_u64 {
                        demi_log::local!(own.as_str(), "work", n = n);
                        demi_log::local!("shared", "work", n = n);
                    }
                });
            });
        }
    });
    assert_eq!(guard.dropped(), 0);
    guard.close().unwrap();
    let mut seqs: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for record in records(&path) {
        let n = record.attrs["n"].as_u64().unwrap();
        seqs.entry(record.actor).or_default().push((record.seq, n));
    }
    assert_eq!(seqs.len(), 9);
    for (actor, mut seqs) in seqs {
        seqs.sort_unstable();
        let all = if actor == "shared" { 16_000 } else { 2000 };
        assert!(seqs.iter().map(|s| s.0).eq(1..=all), "{actor}");
        if actor != "shared" {
            assert!(seqs.iter().all(|(seq, n)| *seq == n + 1), "in the order of logging");
        }
    }
}

#[test]
fn a_file_that_is_rotated_loses_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("log"), dir.path().join("log.1"));
    fs::write(&path, "{\"torn").unwrap();
    let (layer, guard) = Builder::new().flush_every(Duration::from_millis(1)).to_file(&path).unwrap();
    let dispatch = dispatch(layer);
    let log = |n: u64| tracing::dispatcher::with_default(&dispatch, || demi_log::local!("a", "w", n = n));
    log(1);
    let deadline = Instant::now() + Duration::from_secs(30);
    while !fs::read_to_string(&path).unwrap().ends_with("}\n") {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::rename(&path, &moved).unwrap();
    let mut n = 2;
    while !path.exists() {
        assert!(Instant::now() < deadline, "no new file was made");
        log(n);
        n += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    log(n);
    guard.close().unwrap();
    let text = fs::read_to_string(&moved).unwrap() + &fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("{\"torn"), "what a killed process left is a line of its own");
    let seqs: Vec<u64> = lines.map(|l| EventRecord::parse(l.as_bytes()).unwrap().seq).collect();
    assert_eq!(seqs, (1..=n).collect::<Vec<_>>());
}

#[test]
fn lives_are_counted_across_processes() {
    let dir = tempfile::tempdir().unwrap();
    let (path, lives) = (dir.path().join("log"), dir.path().join("lives"));
    let process = |restarts: usize| {
        let (layer, guard) = Builder::new().incarnation_file(&lives).to_file(&path).unwrap();
        logged(layer, guard, || {
            demi_log::start!("a");
            (0..restarts).for_each(|_| demi_log::restart!("a"));
        });
    };
    process(0);
    process(2);
    process(0);
    let names: Vec<(u32, u64)> = records(&path).iter().map(|r| (r.incarnation, r.seq)).collect();
    assert_eq!(names, [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
    fs::write(&lives, "many").unwrap();
    let error = Builder::new().incarnation_file(&lives).to_file(&path).unwrap_err();
    assert!(matches!(&error, LogError::NotANumber { text, .. } if text == "many"), "{error}");
    assert!(Builder::new().to_file(dir.path().join("no/such")).is_err());
}

#[test]
fn values_that_are_no_text_become_what_records_ask_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (layer, guard) = Builder::new().to_file(&path).unwrap();
    logged(layer, guard, || {
        demi_log::send!(7_u64, 8_u64, "n", payload = 5);
        demi_log::event!("receive", "x", from = "*", msg_id = 3, load = f64::NAN, time = 12);
        demi_log::event!("", "nobody");
        let id = MsgId::next();
        demi_log::receive!("x", 7_i64, "n", id, fields = "not { json");
    });
    let records = records(&path);
    assert_eq!(records.len(), 3);
    assert_eq!((records[0].actor.as_str(), records[0].to.as_deref()), ("7", Some("8")));
    assert_eq!((records[0].payload.as_deref(), records[0].kind), (Some("5"), Kind::Send));
    assert!(records[0].time.as_ref().unwrap().as_u64().unwrap() > 1_700_000_000_000_000_000);
    assert_eq!((records[1].msg_id.as_deref(), &records[1].time), (Some("3"), &Some(json!(12))));
    assert_eq!(records[1].attrs["load"], "NaN");
    assert_eq!(records[2].fields, Some(Value::from("not { json")));
}

#[test]
fn a_state_is_what_serde_writes() {
    #[derive(serde::Serialize)]
    struct Member {
        term: u64,
        #[serde(rename = "entries")]
        log: Vec<String>,
        #[serde(skip)]
        password: &'static str,
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (layer, guard) = Builder::new().without_time().to_file(&path).unwrap();
    logged(layer, guard, || {
        let member = Member { term: 3, log: vec!["a\n\"b\"".into()], password: "secret" };
        assert_eq!(member.password, "secret");
        demi_log::state_of!("b", member);
        demi_log::state_of!("b", BTreeMap::from([((1, 2), 3)]));
    });
    let records = records(&path);
    assert_eq!(records[0].kind, Kind::State);
    assert_eq!(records[0].state, Some(json!({"term": 3, "entries": ["a\n\"b\""]})));
    assert_eq!(records[1].state, Some(json!({"demi_log.error": "key must be a string"})));
}
