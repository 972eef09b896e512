//! Each task of a daemon is killed by a panic: it is told, started again, and loses nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use super::config::Config;
use super::serve::Daemon;
use super::tasks::Tasks;
use demi_store::Store;
use demi_store::completeness::status;
use demi_store::scan::scan;

/// An address that nothing listens on.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn line(actor: &str, seq: u64) -> String {
    format!("{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"local\"}}\n")
}

/// Asks over HTTP; status and body, if there was an answer.
fn ask(at: SocketAddr, head: &str, body: &str) -> Option<(u16, String)> {
    ask_as(at, head, "text/plain", body)
}

fn ask_as(at: SocketAddr, head: &str, kind: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let length = body.len();
    write!(
        stream,
        "{head} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
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
        Config::parse(&self.text(), |_| None).unwrap()
    }

    fn text(&self) -> String {
        let Case { dir, admin, tcp, http } = self;
        let dir = dir.path().display();
        format!(
            "[store]\ndir = \"{dir}/store\"\nseal_millis = 100\n[spool]\ndir = \"{dir}/spool\"\n[admin]\nlisten = \"{admin}\"\n\
             [sources.f]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{dir}/in/*.log\"]\npoll_millis = 20\nscan_millis = 50\n\
             [sources.t]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"{tcp}\"\n\
             [sources.h]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"{http}\"\n"
        )
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
            text.contains(&format!("demi_task_failures_total{{task=\"{task}\"}} {times}\n")),
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
fn parts_of_the_incident_service_that_panic_are_told_and_started_again() {
    let (case, runtime) = (Case::new(), runtime());
    let pages = free();
    let more = format!(
        "[incidents]\nlisten = \"{pages}\"\n[receivers.r]\ntype = \"webhook\"\nurl = \"http://{}/\"\n",
        free()
    );
    let config = Config::parse(&(case.text() + &more), |_| None).unwrap();
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    case.until(true, Duration::from_secs(10));
    let violation = |n: u64| format!(r#"{{"system":"s","invariant":"i","title":"{n}"}}"#);
    let open = |n: u64| {
        ask_as(pages, "POST /v1/incidents", "application/json", &violation(n)).map(|(status, _)| status)
    };
    assert_eq!(open(0), Some(201));
    // The pages look where they break when somebody asks for one.
    for (name, task) in [
        ("incidents watch", "incidents watch"),
        ("incidents worker 0", "incidents worker 0"),
        ("incidents receiver r", "incidents receiver r"),
        ("incidents", "incidents pages"),
    ] {
        daemon.tasks.break_it(name, 1);
        let _ = ask(pages, "GET /healthz", "");
        broken(&daemon.tasks, name);
        case.until(false, Duration::from_secs(1));
        case.until(true, Duration::from_secs(20));
        let text = ask(case.admin, "GET /metrics", "").unwrap().1;
        assert!(text.contains(&format!("demi_task_failures_total{{task=\"{task}\"}} 1\n")), "{task}: {text}");
    }
    assert_eq!((open(0), open(1)), (Some(200), Some(201)));
    assert!(runtime.block_on(daemon.stop()));
}

/// Violations that are told in the store: the events, sorted.
fn told(case: &Case) -> Vec<String> {
    let store = Store::open(case.dir.path().join("store")).unwrap();
    let mut told = Vec::new();
    let columns = [("actor", DataType::Utf8), ("fields", DataType::Utf8)];
    scan(&store.known_event_files("s").unwrap(), &columns, |batch| {
        let text = |i: usize| batch.column(i).as_string::<i32>();
        for row in (0..batch.num_rows()).filter(|row| text(0).value(*row) == "_monitor") {
            let fields: serde_json::Value = serde_json::from_str(text(1).value(row)).unwrap();
            let more = fields["more"].as_array().into_iter().flatten();
            told.extend(more.chain([&fields]).map(|of| of["event"].as_str().unwrap().to_owned()));
        }
        Ok(())
    })
    .unwrap();
    told.sort();
    told
}

#[test]
fn a_monitor_that_panics_goes_on_where_it_was_and_tells_all_once() {
    let (case, runtime) = (Case::new(), runtime());
    let dir = case.dir.path();
    let invariants = "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i\"\nholds = \"x <= 50\"\n";
    std::fs::write(dir.join("inv.toml"), invariants).unwrap();
    let monitor = format!(
        "[monitors.m]\nsystem = \"s\"\nquiet_secs = 0\ncpu_share = 1.0\ninvariants = \"{}/inv.toml\"\n",
        dir.display()
    );
    let config = Config::parse(&(case.text() + &monitor), |_| None).unwrap();
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    case.until(true, Duration::from_secs(10));
    let state = |n: u64, x: u64| {
        format!("{{\"actor\":\"a{n:03}\",\"seq\":{x},\"kind\":\"state\",\"state\":{{\"x\":{}}}}}\n", x * 30)
    };
    let mut sent = 0;
    let mut send = |count: u64| {
        for n in sent..sent + count {
            let body = state(n, 1) + &state(n, 2);
            while ask(case.http, "POST /v1/events", &body).is_none_or(|(status, _)| status != 200) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        sent += count;
    };
    send(3);
    for name in ["m", "alerts of m", "m", "posts of m"] {
        daemon.tasks.break_it(name, 1);
        // What is told now is told to one that breaks.
        let begin = Instant::now();
        while daemon.tasks.to_break(name) > 0 {
            send(1);
            assert!(begin.elapsed() < Duration::from_secs(20), "'{name}' never came to where it breaks");
        }
        case.until(false, Duration::from_secs(10));
        send(3);
        case.until(true, Duration::from_secs(20));
        send(3);
    }
    let text = ask(case.admin, "GET /metrics", "").unwrap().1;
    for task in ["monitor m", "alerts of monitor m"] {
        assert!(text.contains(&format!("demi_task_failures_total{{task=\"{task}\"}} 2\n")), "{task}: {text}");
    }
    let expected: Vec<String> = (0..sent).map(|n| format!("a{n:03}/2")).collect();
    let begin = Instant::now();
    while told(&case).len() < expected.len() && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(100));
    }
    let text = ask(case.admin, "GET /metrics", "").unwrap().1;
    assert!(text.contains("demi_monitor_dropped_total{monitor=\"m\"} 0\n"), "{text}");
    assert!(runtime.block_on(daemon.stop()));
    assert_eq!(told(&case), expected);
}

/// A receiver of alerts that takes none until it is told to; the invariants of those that it took.
fn receiver(takes: Arc<AtomicBool>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, taken) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let into = taken.clone();
    // It ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = BufReader::new(stream);
            let (mut length, mut line) = (0, String::new());
            while stream.read_line(&mut line).is_ok_and(|n| n > 2) {
                let lower = line.to_ascii_lowercase();
                length = lower.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
                line.clear();
            }
            let mut body = vec![0; length];
            if stream.read_exact(&mut body).is_err() {
                continue;
            }
            let status = match takes.load(Ordering::Relaxed) {
                true => {
                    let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
                    into.lock().unwrap().push(told["invariant"].as_str().unwrap().to_owned());
                    "200 OK"
                }
                false => "503 Service Unavailable",
            };
            let _ = write!(
                stream.get_mut(),
                "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
        }
    });
    (at, taken)
}

/// In tests eight alerts wait at most; as many more are recorded alone.
#[test]
fn beyond_the_bound_of_alerts_that_wait_they_are_recorded_alone_and_then_not_told() {
    const BOUND: usize = 8;
    let takes = Arc::new(AtomicBool::new(false));
    let (at, posted) = receiver(takes.clone());
    let (case, runtime) = (Case::new(), runtime());
    let dir = case.dir.path();
    let mut invariants = "schema = \"demi-invariants/1\"\n".to_owned();
    for n in 0..20 {
        invariants += &format!("[[invariant]]\nid = \"i{n:02}\"\nholds = \"x <= {}\"\n", n + 1);
    }
    std::fs::write(dir.join("inv.toml"), invariants).unwrap();
    let monitor = format!(
        "[monitors.m]\nsystem = \"s\"\nquiet_secs = 0\ncpu_share = 1.0\ninvariants = \"{}/inv.toml\"\nwebhook = \"http://{at}\"\n",
        dir.display()
    );
    let config = Config::parse(&(case.text() + &monitor), |_| None).unwrap();
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    case.until(true, Duration::from_secs(10));
    let send = |actor: &str, x: u64| {
        let body =
            format!("{{\"actor\":\"{actor}\",\"seq\":1,\"kind\":\"state\",\"state\":{{\"x\":{x}}}}}\n");
        assert_eq!(ask(case.http, "POST /v1/events", &body).unwrap().0, 200);
    };
    let wait_for = |what: &str, is: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !is() {
            assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    let metric = |line: &str| {
        ask(case.admin, "GET /metrics", "").is_some_and(|(_, text)| text.contains(&format!("{line}\n")))
    };
    // Twenty invariants fail at once.
    send("a", 100);
    wait_for("the records", &|| told(&case).len() == 2 * BOUND);
    wait_for("those beyond", &|| metric("demi_monitor_alerts_shed_total{monitor=\"m\"} 12"));
    assert_eq!(posted.lock().unwrap().len(), 0);
    // Those that waited are posted, and what fails then is told as before.
    takes.store(true, Ordering::Relaxed);
    wait_for("the posts", &|| posted.lock().unwrap().len() == BOUND);
    let first: Vec<String> = (0..BOUND).map(|n| format!("i{n:02}")).collect();
    assert_eq!(*posted.lock().unwrap(), first);
    send("b", 2);
    wait_for("the next", &|| posted.lock().unwrap().len() == BOUND + 1);
    assert_eq!(posted.lock().unwrap()[BOUND], "i00");
    assert!(metric("demi_monitor_alerts_shed_total{monitor=\"m\"} 12"));
    assert!(runtime.block_on(daemon.stop()));
    assert_eq!(told(&case).len(), 2 * BOUND + 1);
}

#[cfg(all(feature = "otlp", feature = "nats"))]
#[test]
fn sources_of_telemetry_that_panic_are_started_again_and_nothing_is_lost() {
    let (case, runtime, otlp) = (Case::new(), runtime(), free());
    // Nothing listens there: it tries again and again.
    let more = format!(
        "[sources.o]\ntype = \"otlp\"\nsystem = \"s\"\nlisten = \"{otlp}\"\n\
         [sources.n]\ntype = \"nats\"\nsystem = \"s\"\nurl = \"nats://{}\"\nstream = \"x\"\n",
        free()
    );
    let config = Config::parse(&(case.text() + &more), |_| None).unwrap();
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    case.until(true, Duration::from_secs(10));
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let sender = thread::spawn({
        let (stop, sent) = (stop.clone(), sent.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                let n = sent.load(Ordering::Relaxed) + 1;
                let body = format!(
                    "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"o\"}}}}]}},\
                     \"scopeSpans\":[{{\"spans\":[{{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"{n:016x}\",\
                     \"startTimeUnixNano\":\"{}\"}}]}}]}}]}}",
                    1_700_000_000_000_000_000_u64 + n * 1_000_000
                );
                let taken = ask_as(otlp, "POST /v1/traces", "application/json", &body)
                    .is_some_and(|(status, _)| status == 200);
                match taken {
                    true => sent.store(n, Ordering::Relaxed),
                    false => thread::sleep(Duration::from_millis(20)),
                }
            }
        }
    });
    for name in ["o", "n", "o"] {
        daemon.tasks.break_it(name, 1);
        broken(&daemon.tasks, name);
        case.until(false, Duration::from_secs(10));
        case.until(true, Duration::from_secs(20));
    }
    let text = ask(case.admin, "GET /metrics", "").unwrap().1;
    for (task, times) in [("source o", 2), ("source n", 1)] {
        assert!(
            text.contains(&format!("demi_task_failures_total{{task=\"{task}\"}} {times}\n")),
            "{task}: {text}"
        );
    }
    let before = sent.load(Ordering::Relaxed);
    let begin = Instant::now();
    while sent.load(Ordering::Relaxed) < before + 5 {
        assert!(begin.elapsed() < Duration::from_secs(20), "it takes nothing any more");
        thread::sleep(Duration::from_millis(20));
    }
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    assert!(runtime.block_on(daemon.stop()));
    let stored = case.stored();
    assert_eq!(stored, [("o".to_owned(), sent.load(Ordering::Relaxed), 0)]);
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
fn a_link_to_what_the_daemon_writes_is_not_followed() {
    let (case, runtime) = (Case::new(), runtime());
    let dir = case.dir.path();
    std::fs::create_dir_all(dir.join("in")).unwrap();
    for folder in ["store", "spool"] {
        std::os::unix::fs::symlink(dir.join(folder), dir.join("in").join(folder)).unwrap();
    }
    std::fs::write(dir.join("in/a.log"), line("file", 1)).unwrap();
    let text = case.text().replace("/in/*.log", "/in/**/*");
    let daemon = runtime.block_on(Daemon::start(&Config::parse(&text, |_| None).unwrap())).unwrap();
    let refused = || {
        let text = ask(case.admin, "GET /metrics", "").map_or(String::new(), |(_, text)| text);
        let line = "demi_refused_total{source=\"f\",reason=\"unreadable_file\"} ";
        text.lines().find_map(|l| l.strip_prefix(line).map(str::to_owned)).is_some_and(|n| n != "0")
    };
    let begin = Instant::now();
    while !refused() {
        assert!(begin.elapsed() < Duration::from_secs(20), "its own files are not told");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(runtime.block_on(daemon.stop()));
    assert_eq!(case.stored(), [("file".to_owned(), 1, 0)]);
    let store = Store::open(dir.join("store")).unwrap();
    assert_eq!(demi_store::quarantined(&store, None).unwrap(), []);
}

#[test]
fn a_source_brings_no_more_actors_than_it_may() {
    let (case, runtime) = (Case::new(), runtime());
    let text =
        case.text().replace("type = \"http\"", "type = \"http\"\nactors = 60") + "[limits]\nactors = 50\n";
    let config = Config::parse(&text, |_| None).unwrap();
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    case.until(true, Duration::from_secs(10));
    let by_http = |body: &str| assert_eq!(ask(case.http, "POST /v1/events", body).unwrap().0, 200);
    let by_tcp = |body: &str| {
        let mut stream = TcpStream::connect(case.tcp).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let last = format!("{{\"acknowledged\":{}}}", body.lines().count());
        BufReader::new(stream).lines().map(Result::unwrap).find(|answer| *answer == last).unwrap();
    };
    // A name of 640 bytes counts as eleven, an incarnation as one.
    by_tcp(&line(&"n".repeat(640), 1));
    by_tcp(&(0..39).map(|n| line(&format!("t{n}"), 1)).collect::<String>());
    by_tcp(&line("t0", 1).replace("\"seq\"", "\"incarnation\":9,\"seq\""));
    // Names that are known go on, those of another source too.
    by_tcp(&(0..39).map(|n| line(&format!("t{n}"), 2)).collect::<String>());
    by_http(&(0..20).map(|n| line(&format!("h{n}"), 1)).collect::<String>());
    assert!(runtime.block_on(daemon.stop()));
    let store = Store::open(case.dir.path().join("store")).unwrap();
    let refused = demi_store::quarantined(&store, Some("s")).unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    let known: Vec<_> = case.stored();
    let count = |first: char| known.iter().filter(|(actor, ..)| actor.starts_with(first)).count();
    assert_eq!((count('n'), count('t')), (1, 39));
    assert_eq!(
        (refused[0].code.as_str(), refused[0].rows as usize),
        ("too_many_actors", 1 + 20 - count('h'))
    );
    assert_eq!(count('h'), 10, "{known:?}");
    assert!(
        refused[0].reason.contains("actor 't0' (incarnation 9) is one too many: source 't'"),
        "{}",
        refused[0].reason
    );
    assert!(known.iter().filter(|(actor, ..)| actor.starts_with('t')).all(|(_, events, _)| *events == 2));
    // It starts with more than it would take, and what is known goes on.
    let config = Config::parse(&text.replace("= 60", "= 1"), |_| None).unwrap();
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    by_http(&(line("h0", 2) + &line("other", 1)));
    let until = Instant::now() + Duration::from_secs(20);
    let metric = || ask(case.admin, "GET /metrics", "").map_or(String::new(), |(_, text)| text);
    while !metric().contains("demi_events_rejected_total{reason=\"too_many_actors\"} 1\n") {
        assert!(Instant::now() < until, "{}", metric());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(metric().contains(&format!("actors{{system=\"s\"}} {}\n", known.len())), "{}", metric());
    assert!(runtime.block_on(daemon.stop()));
    let events = case.stored().into_iter().find(|(actor, ..)| actor == "h0").unwrap().1;
    assert_eq!(events, 2);
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
                text.lines().find_map(|line| line.strip_prefix("demi_events_written_total{system=\"s\"} "));
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
    assert!(!text.contains("demi_events_duplicate_total{system=\"s\"} 1"), "{text}");
    assert!(runtime.block_on(daemon.stop()));
    let expected = [("good", 3, 0), ("odd", 6, 0), ("other", 5, 0)];
    assert_eq!(case.stored(), expected.map(|(actor, events, missing)| (actor.to_owned(), events, missing)));
}

/// A pipe would hold up the start without end, a folder tells nothing by itself.
#[test]
fn what_is_no_file_in_a_spool_is_told_by_name() {
    let (case, runtime) = (Case::new(), runtime());
    let dir = case.dir.path();
    std::fs::write(
        dir.join("inv.toml"),
        "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i\"\nholds = \"x <= 50\"\n",
    )
    .unwrap();
    let monitor = format!("[monitors.m]\nsystem = \"s\"\ninvariants = \"{}/inv.toml\"\n", dir.display());
    let config = Config::parse(&(case.text() + &monitor), |_| None).unwrap();
    let spool = dir.join("spool");
    let daemon = runtime.block_on(Daemon::start(&config)).unwrap();
    assert_eq!(ask(case.http, "POST /v1/events", &line("a", 1)).unwrap().0, 200);
    assert!(runtime.block_on(daemon.stop()));
    super::positions::Positions::new().write(&crate::spool::Folder::at(&spool)).unwrap();
    let names: Vec<String> = std::fs::read_dir(&spool)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for part in ["acknowledged-", "lock", "monitor-m", "positions.json", "segment-", "spool.json"] {
        assert!(names.iter().any(|name| name.starts_with(part)), "{part}: {names:?}");
    }
    let put = |kind: &str, at: &Path| match kind {
        "folder" => std::fs::create_dir(at).unwrap(),
        "pipe" => {
            rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }
        "socket" => drop(std::os::unix::net::UnixListener::bind(at).unwrap()),
        _ => std::os::unix::fs::symlink("/not/there", at).unwrap(),
    };
    for name in &names {
        let (at, aside) = (spool.join(name), dir.join("aside"));
        for kind in ["folder", "pipe", "socket", "link"] {
            std::fs::rename(&at, &aside).unwrap();
            put(kind, &at);
            let error = runtime.block_on(Daemon::start(&config)).err().unwrap();
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
            let told: Vec<String> = causes.map(ToString::to_string).collect();
            let told = told.join(": ");
            assert!(told.contains(name.as_str()) && told.contains(&format!("it is a {kind} ")), "{told}");
            assert!(
                crate::verify(&dir.join("store"), &spool).is_err()
                    || name == "lock"
                    || name.starts_with("monitor-")
            );
            match kind {
                "folder" => std::fs::remove_dir(&at).unwrap(),
                _ => std::fs::remove_file(&at).unwrap(),
            }
            std::fs::rename(&aside, &at).unwrap();
        }
    }
}
