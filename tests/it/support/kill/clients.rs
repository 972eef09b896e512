//! Clients over TCP, HTTP and OTLP that send again what was not acknowledged.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::daemon::Addresses;
use super::record;

pub struct Clients {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(String, u64)>>,
    flooded: Arc<AtomicU64>,
}

impl Clients {
    pub fn start(addresses: Addresses, tcp: usize, http: usize, otlp: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |name: String, send: fn(SocketAddr, &str, u64) -> bool, kind: &'static str| {
            let (stop, addresses) = (stop.clone(), addresses.clone());
            thread::spawn(move || {
                // All of it is acknowledged before the client ends: what the daemon said it has, it is never sent again.
                let mut acked = 0;
                while !stop.load(Ordering::Relaxed) {
                    acked += deliver(&addresses, kind, &name, acked, send);
                    thread::sleep(Duration::from_millis(10));
                }
                (name, acked)
            })
        };
        let mut threads: Vec<_> = (0..tcp).map(|n| spawn(format!("tcp-{n}"), send_tcp, "tcp")).collect();
        threads.extend((0..http).map(|n| spawn(format!("http-{n}"), send_http, "http")));
        threads.extend((0..otlp).map(|n| spawn(format!("otlp-{n}"), send_otlp, "otlp")));
        Clients { stop, threads, flooded: Arc::default() }
    }

    /// Sends large records until the spool has no room, or for some seconds.
    pub fn flood(&self, addresses: &Addresses) {
        let end = Instant::now() + Duration::from_secs(20);
        let wide = "y".repeat(900_000);
        while Instant::now() < end {
            let seq = self.flooded.load(Ordering::Relaxed) + 1;
            let body =
                format!("{{\"actor\":\"flood\",\"seq\":{seq},\"kind\":\"state\",\"payload\":\"{wide}\"}}\n");
            match addresses.get("http").and_then(|address| post(address, "/v1/events", &body)) {
                Some(200) => {
                    self.flooded.store(seq, Ordering::Relaxed);
                }
                Some(503) => return,
                other => panic!("unexpected answer {other:?}"),
            }
        }
        panic!("the spool never was full");
    }

    /// Ends the clients; says how many records each had acknowledged.
    pub fn finish(self) -> BTreeMap<String, u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all: BTreeMap<String, u64> = self.threads.into_iter().map(|t| t.join().unwrap()).collect();
        let flooded = self.flooded.load(Ordering::Relaxed);
        if flooded > 0 {
            // The one that was refused may have come in all the same; it is sent for good below.
            all.insert("flood".to_owned(), flooded);
        }
        all
    }
}

/// Sends the next records until they are acknowledged; gives back how many.
fn deliver(
    addresses: &Addresses,
    kind: &str,
    name: &str,
    acked: u64,
    send: fn(SocketAddr, &str, u64) -> bool,
) -> u64 {
    let count = 1 + acked % 20;
    let text: String = (acked + 1..=acked + count).map(|n| record(name, n)).collect();
    loop {
        if addresses.get(kind).is_some_and(|address| send(address, &text, count)) {
            return count;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    Some(stream)
}

fn send_tcp(address: SocketAddr, text: &str, lines: u64) -> bool {
    let Some(stream) = connect(address) else { return false };
    if (&stream).write_all(text.as_bytes()).is_err() {
        return false;
    }
    let last = format!("{{\"acknowledged\":{lines}}}");
    BufReader::new(stream).lines().map_while(Result::ok).any(|answer| answer == last)
}

fn send_http(address: SocketAddr, text: &str, _: u64) -> bool {
    post(address, "/v1/events", text) == Some(200)
}

/// Event records in the bodies of log records, as collectors ship lines.
fn send_otlp(address: SocketAddr, text: &str, _: u64) -> bool {
    let body = |line: &str| serde_json::json!({ "body": { "stringValue": line } });
    let records: Vec<serde_json::Value> = text.lines().map(body).collect();
    let request = serde_json::json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": records }] }] });
    post(address, "/v1/logs", &request.to_string()) == Some(200)
}

/// Status of the answer, if there was one.
fn post(address: SocketAddr, path: &str, body: &str) -> Option<u16> {
    let mut stream = connect(address)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}
