//! Each task of a daemon is killed by a panic: it is told, started again, and loses nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::config::Config;
use super::serve::Daemon;
use super::tasks::Tasks;
use crate::Store;
use crate::completeness::status;

/// An address that nothing listens on.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn line(actor: &str, seq: u64) -> String {
    format!("{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"local\"}}\n")
}

/// Asks over HTTP; status and body, if there was an answer.
fn ask(at: SocketAddr, head: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let length = body.len();
    write!(
        stream,
        "{head} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.get(9..12)?.parse().ok()?, body.to_owned()))
}

/// A daemon's addresses and folder.
struct Case {
    dir: tempfile::TempDir,
    admin: SocketAddr,
    tcp: SocketAddr,
    http: SocketAddr,
}

impl Case {
    fn new() -> Self {
        Case { dir: tempfile::tempdir().unwrap(), admin: free(), tcp: free(), http: free() }
    }

    fn config(&self) -> Config {
        let Case { dir, admin, tcp, http } = self;
        let dir = dir.path().display();
        let text = format!(
            "[store]\ndir = \"{dir}/store\"\nseal_millis = 100\n[spool]\ndir = \"{dir}/spool\"\n[admin]\nlisten = \"{admin}\"\n\
             [sources.f]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{dir}/in/*.log\"]\npoll_millis = 20\nscan_millis = 50\n\
             [sources.t]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"{tcp}\"\n\
             [sources.h]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"{http}\"\n"
        );
        Config::parse(&text, |_| None).unwrap()
    }

    fn is_ready(&self) -> bool {
        ask(self.admin, "GET /readyz", "").is_some_and(|(status, _)| status == 200)
    }

    /// How long until it is ready, or not, as asked.
    fn until(&self, ready: bool, most: Duration) -> Duration {
        let begin = Instant::now();
        while self.is_ready() != ready {
            assert!(begin.elapsed() < most, "not {ready} in {most:?}");
            thread::sleep(Duration::from_millis(5));
        }
        begin.elapsed()
    }

    /// Events in the store, of each actor: how many, and how many are missing.
    fn stored(&self) -> Vec<(String, u64, u64)> {
        let store = Store::open(self.dir.path().join("store")).unwrap();
        let rows = status(&store, Some("s")).unwrap().into_iter();
        rows.map(|row| (row.counts.actor, row.counts.events, row.counts.missing)).collect()
    }
}

/// Sends lines by all sources, each until it is acknowledged.
struct Senders {
    stop: Arc<AtomicBool>,
    sent: Arc<[AtomicU64; 3]>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Senders {
    fn start(case: &Case) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sent: Arc<[AtomicU64; 3]> = Arc::default();
        let (tcp, http) = (case.tcp, case.http);
        let folder = case.dir.path().join("in");
        std::fs::create_dir_all(&folder).unwrap();
        let mut file = File::create(folder.join("a.log")).unwrap();
        let run = |number: usize, mut send: Box<dyn FnMut(u64) -> bool + Send>| {
            let (stop, sent) = (stop.clone(), sent.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let seq = sent[number].load(Ordering::Relaxed) + 1;
                    while !send(seq) {
                        thread::sleep(Duration::from_millis(20));
                    }
                    sent[number].store(seq, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(3));
                }
            })
        };
        let by_file = move |seq| file.write_all(line("file", seq).as_bytes()).is_ok();
        let by_http = move |seq| {
            ask(http, "POST /v1/events", &line("http", seq)).is_some_and(|(status, _)| status == 200)
        };
        let mut open: Option<BufReader<TcpStream>> = None;
        let by_tcp = move |seq| {
            let mut once = || {
                let stream = match &mut open {
                    Some(stream) => stream,
                    None => open.insert(BufReader::new(TcpStream::connect(tcp).ok()?)),
                };
                stream.get_ref().set_read_timeout(Some(Duration::from_secs(5))).ok()?;
                stream.get_mut().write_all(line("tcp", seq).as_bytes()).ok()?;
                let mut answer = String::new();
                stream.read_line(&mut answer).ok()?;
                answer.contains("acknowledged").then_some(())
            };
            let done = once().is_some();
            if !done {
                open = None;
            }
            done
        };
        let threads = vec![run(0, Box::new(by_file)), run(1, Box::new(by_http)), run(2, Box::new(by_tcp))];
        Senders { stop, sent, threads }
    }

    /// Stops; what was sent of each actor, in the order of the actors.
    fn stop(self) -> Vec<(String, u64, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let sent = self.sent.iter().map(|sent| sent.load(Ordering::Relaxed));
        ["file", "http", "tcp"]
            .into_iter()
            .zip(sent)
            .map(|(actor, sent)| (actor.to_owned(), sent, 0))
            .collect()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Waits until the task has panicked.
fn broken(tasks: &Tasks, name: &str) {
    let begin = Instant::now();
    while tasks.to_break(name) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20), "'{name}' never came to where it breaks");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_task_that_panics_is_told_and_started_again_and_nothing_is_lost() {
    let (case, runtime) = (Case::new(), runtime());
    let daemon = runtime.block_on(Daemon::start(&case.config())).unwrap();
    case.until(true, Duration::from_secs(10));
    let senders = Senders::start(&case);
    for name in ["spool", "committer", "reader", "parser", "events", "f", "t", "h", "admin"] {
        daemon.tasks.break_it(name, 1);
        broken(&daemon.tasks, name);
        case.until(false, Duration::from_secs(1));
        case.until(true, Duration::from_secs(20));
    }
    let text = ask(case.admin, "GET /metrics", "").unwrap().1;
    for (task, times) in
        [("spool", 1), ("committer", 4), ("source f", 1), ("source t", 1), ("source h", 1), ("admin", 1)]
    {
        assert!(
            text.contains(&format!("task_failures_total{{task=\"{task}\"}} {times}\n")),
            "{task}: {text}"
        );
    }
    // What the sources did before goes on after all of it.
    thread::sleep(Duration::from_millis(300));
    let sent = senders.stop();
    thread::sleep(Duration::from_secs(1));
    assert!(runtime.block_on(daemon.stop()));
    assert!(sent.iter().all(|(_, sent, _)| *sent > 10), "{sent:?}");
    assert_eq!(case.stored(), sent);
}

#[test]
fn a_task_that_always_fails_ends_the_daemon_and_nothing_is_lost() {
    let (case, runtime) = (Case::new(), runtime());
    let daemon = runtime.block_on(Daemon::start(&case.config())).unwrap();
    let acknowledged = ask(case.http, "POST /v1/events", &line("http", 1)).unwrap();
    daemon.tasks.break_it("parser", 1000);
    let more = ask(case.http, "POST /v1/events", &line("http", 2)).unwrap();
    assert_eq!((acknowledged.0, more.0), (200, 200));
    let given_up = runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(30), daemon.given_up()).await.unwrap() });
    assert_eq!(given_up.task, "committer");
    let begin = Instant::now();
    runtime.block_on(daemon.stop());
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    // A process that begins anew finds what was acknowledged.
    let daemon = runtime.block_on(Daemon::start(&case.config())).unwrap();
    assert!(runtime.block_on(daemon.stop()));
    assert_eq!(case.stored(), [("http".to_owned(), 2, 0)]);
}

#[test]
fn a_name_of_any_bytes_is_followed_beside_others_and_known_again() {
    let (case, runtime) = (Case::new(), runtime());
    let folder = case.dir.path().join("in");
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &[u8], actor: &str, seqs: std::ops::RangeInclusive<u64>| {
        let path = folder.join(Path::new(std::ffi::OsStr::from_bytes(name)));
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        seqs.for_each(|seq| file.write_all(line(actor, seq).as_bytes()).unwrap());
    };
    put(b"good.log", "good", 1..=3);
    put(b"\xff\xfe.log", "odd", 1..=4);
    put(b"\xfe\xff.log", "other", 1..=5);
    let count = || {
        ask(case.admin, "GET /metrics", "").map_or(0, |(_, text)| {
            let found =
                text.lines().find_map(|line| line.strip_prefix("events_written_total{system=\"s\"} "));
            found.and_then(|n| n.parse().ok()).unwrap_or(0)
        })
    };
    let until = |events: u64| {
        let begin = Instant::now();
        while count() < events {
            assert!(begin.elapsed() < Duration::from_secs(20), "{} of {events}", count());
            thread::sleep(Duration::from_millis(20));
        }
    };
    let daemon = runtime.block_on(Daemon::start(&case.config())).unwrap();
    until(12);
    assert!(case.is_ready() && runtime.block_on(daemon.stop()));
    // Where it was is known by the name's bytes: what comes next is read, and nothing twice.
    put(b"\xff\xfe.log", "odd", 5..=6);
    let daemon = runtime.block_on(Daemon::start(&case.config())).unwrap();
    until(2);
    let text = ask(case.admin, "GET /metrics", "").unwrap().1;
    assert!(!text.contains("events_duplicate_total{system=\"s\"} 1"), "{text}");
    assert!(runtime.block_on(daemon.stop()));
    let expected = [("good", 3, 0), ("odd", 6, 0), ("other", 5, 0)];
    assert_eq!(case.stored(), expected.map(|(actor, events, missing)| (actor.to_owned(), events, missing)));
}
