//! A store on object storage: an S3 server on this machine, and what becomes of a store when its answers are lost.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// An S3 server, of the Python package `moto`.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts one; nothing where Python has none.
fn server() -> Option<Server> {
    let python = std::env::var("DEMI_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import moto.server"]).stderr(Stdio::null()).status();
    if !has.is_ok_and(|status| status.success()) {
        println!("skipped: no Python with moto (set DEMI_PYTHON)");
        return None;
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let child = Command::new(&python)
        .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &free.port().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { child, address: free };
    let began = Instant::now();
    while TcpStream::connect(free).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "the server does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut stream = TcpStream::connect(free).unwrap();
    write!(stream, "PUT /bucket HTTP/1.0\r\nhost: {free}\r\ncontent-length: 0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
    Some(server)
}

/// What stands before the server and fails: it answers 503, or ends the connection before a request, after it was served, or within the answer.
struct Proxy {
    address: SocketAddr,
    /// Of a thousand requests, how many fail, and what happened by kind.
    share: Arc<AtomicU64>,
    happened: Arc<[AtomicU64; 4]>,
}

impl Proxy {
    fn before(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (share, happened): (Arc<AtomicU64>, Arc<[AtomicU64; 4]>) = Default::default();
        let (share_of, happened_of) = (share.clone(), happened.clone());
        std::thread::spawn(move || {
            let state = Arc::new(AtomicU64::new(7));
            for stream in listener.incoming() {
                let (share, happened, state) = (share_of.clone(), happened_of.clone(), state.clone());
                std::thread::spawn(move || {
                    let next = |below: u64| {
                        let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
                        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                        (z ^ (z >> 27)) % below
                    };
                    let fault = (next(1000) < share.load(Ordering::Relaxed)).then(|| next(4));
                    if let Some(kind) = fault {
                        happened[kind as usize].fetch_add(1, Ordering::Relaxed);
                    }
                    // Who ends early is of no interest.
                    let _ = pass(stream.unwrap(), server, fault);
                });
            }
        });
        Proxy { address, share, happened }
    }
}

/// Passes one request on, and ends the connection.
fn pass(mut client: TcpStream, server: SocketAddr, fault: Option<u64>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            head.push_str("connection: close\r\n\r\n");
            break;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    match fault {
        Some(0) => {
            return client
                .write_all(b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        Some(1) => return client.shutdown(Shutdown::Both),
        _ => {}
    }
    let mut to = TcpStream::connect(server)?;
    to.write_all(head.as_bytes())?;
    to.write_all(&body)?;
    let mut answer = Vec::new();
    to.read_to_end(&mut answer)?;
    match fault {
        Some(2) => client.shutdown(Shutdown::Both),
        Some(_) => {
            client.write_all(&answer[..answer.len() / 2])?;
            client.shutdown(Shutdown::Both)
        }
        None => client.write_all(&answer),
    }
}

/// A machine: its own mirrors, and the server.
struct Machine<'a> {
    folder: &'a Path,
    name: &'a str,
    server: SocketAddr,
}

impl Machine<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("demi-lineage"));
        command
            .arg("-q")
            .current_dir(self.folder)
            .env("DEMI_MIRRORS", self.folder.join(self.name))
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.server))
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_ACCESS_KEY_ID", "key-of-the-test")
            .env("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
            .env("AWS_REGION", "us-east-1");
        command
    }

    fn told(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command().args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    fn done(&self, args: &[&str]) -> String {
        let (status, out, error) = self.told(args);
        assert_eq!(status, 0, "{}: {args:?}: {out}{error}", self.name);
        assert!(!error.contains("secret-of-the-test"), "{error}");
        out
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).unwrap()
    }
}

const STORE: &str = "s3://bucket/some/store";

/// A log in which each of some actors sends to the next and receives.
fn log(path: &Path, rounds: u64) {
    let mut text = String::new();
    for actor in 0..3 {
        for round in 0..rounds {
            let (from, to) = ((actor + 2) % 3, (actor + 1) % 3);
            let seq = 2 * round + 1;
            text.push_str(&format!(
                "{{\"actor\":\"a{actor}\",\"seq\":{seq},\"kind\":\"send\",\"msg_id\":\"{actor}-{round}\",\"to\":\"a{to}\"}}\n\
                 {{\"actor\":\"a{actor}\",\"seq\":{},\"kind\":\"receive\",\"msg_id\":\"{from}-{round}\",\"from\":\"a{from}\"}}\n",
                seq + 1
            ));
        }
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_store_on_object_storage_is_what_a_folder_is() {
    let Some(server) = server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let machine = |name: &'static str| Machine { folder: dir.path(), name, server: server.address };
    let (one, two) = (machine("one"), machine("two"));
    let (status, _, error) = one.told(&["query", STORE, "stats"]);
    assert!(status == 2 && error.contains("no event store"), "{error}");
    log(&dir.path().join("some.jsonl"), 5);
    log(&dir.path().join("all.jsonl"), 8);
    one.done(&["ingest", "load", "some.jsonl", "--store", STORE, "--system", "ring"]);
    // Another machine reads it and adds to it, and both answer as a folder does.
    let loaded = two.json(&["ingest", "load", "all.jsonl", "--store", STORE, "--system", "ring", "--json"]);
    assert_eq!((&loaded["added"], &loaded["duplicates"]), (&18.into(), &30.into()), "{loaded}");
    one.done(&["ingest", "load", "all.jsonl", "--store", "folder", "--system", "ring"]);
    for question in [
        &["past", "a0/9"][..],
        &["order", "a0/1", "a2/9"],
        &["--sql", "SELECT actor, count(*) FROM events GROUP BY actor ORDER BY actor"],
    ] {
        let of = |machine: &Machine<'_>, store: &str| machine.done(&[&["query", store], question].concat());
        let folder = of(&one, "folder");
        assert_eq!((of(&one, STORE), of(&two, STORE)), (folder.clone(), folder), "{question:?}");
    }
    two.done(&["build", "--store", STORE, "--violation", "event:a0/9", "--out", "exec"]);
    one.done(&["build", "--store", "folder", "--violation", "event:a0/9", "--out", "own"]);
    let kept = |name: &str| std::fs::read(dir.path().join(name).join("kept.jsonl")).unwrap_or_default();
    assert_eq!(kept("exec"), kept("own"));
    two.done(&["ingest", "delete", "--store", STORE, "--system", "ring", "--actor", "a1"]);
    let rows = one.done(&["query", STORE, "--sql", "SELECT DISTINCT actor FROM events ORDER BY actor"]);
    assert!(rows.contains("a0") && rows.contains("a2") && !rows.contains("a1"), "{rows}");
    for (url, says) in [
        ("s3://bucket/none", "no event store"),
        ("s3://nowhere/store", "nowhere"),
        ("s3://user:secret@bucket/store", "credentials come from the environment"),
        ("ftp://bucket/store", "stores are folders"),
    ] {
        let (status, _, error) = one.told(&["query", url, "stats"]);
        assert!(status == 2 && error.contains(says), "{url}: {error}");
    }
}

#[test]
fn a_daemon_writes_to_object_storage_that_fails_and_nothing_is_lost_or_doubled() {
    let Some(server) = server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::before(server.address);
    let (one, two) = (
        Machine { folder: dir.path(), name: "one", server: proxy.address },
        Machine { folder: dir.path(), name: "two", server: server.address },
    );
    std::fs::create_dir(dir.path().join("logs")).unwrap();
    let path = dir.path().display();
    let config = format!(
        "[store]\ndir = \"{STORE}\"\nseal_millis = 100\ncompact_files = 4\n[spool]\ndir = \"{path}/spool\"\n\
         [sources.logs]\ntype = \"files\"\nsystem = \"ring\"\npaths = [\"{path}/logs/*\"]\nscan_millis = 50\n"
    );
    std::fs::write(dir.path().join("demi.toml"), config).unwrap();
    let mut daemon = one
        .command()
        .args(["ingest", "serve", "demi.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")));
    proxy.share.store(300, Ordering::Relaxed);
    let rounds = 60;
    for part in 0..6 {
        log(&dir.path().join("whole.jsonl"), rounds);
        let whole = std::fs::read_to_string(dir.path().join("whole.jsonl")).unwrap();
        let some: String = whole
            .lines()
            .enumerate()
            .filter(|(at, _)| at % 6 == part)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        std::fs::write(dir.path().join(format!("logs/{part}.jsonl")), some).unwrap();
        std::thread::sleep(Duration::from_millis(400));
    }
    let began = Instant::now();
    let stats = loop {
        let (status, out, _) = two.told(&["ingest", "status", "--store", STORE, "--json"]);
        let found: Option<Value> = (status == 0).then(|| serde_json::from_str(&out).ok()).flatten();
        let events = |found: &Value| {
            let rows = found["completeness"].as_array().cloned().unwrap_or_default();
            rows.iter().filter_map(|row| row["events"].as_u64()).sum::<u64>()
        };
        if let Some(found) = found.filter(|found| events(found) == 3 * 2 * rounds) {
            break found;
        }
        assert!(began.elapsed() < Duration::from_secs(240), "{out}");
        std::thread::sleep(Duration::from_millis(500));
    };
    for row in stats["completeness"].as_array().unwrap() {
        assert_eq!((&row["missing"], &row["conflicts"]), (&0.into(), &0.into()), "{row}");
    }
    let _ = daemon.kill();
    let _ = daemon.wait();
    let happened: Vec<u64> = proxy.happened.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert!(happened.iter().sum::<u64>() > 3, "{happened:?}");
}

/// Asks a server over a connection of its own: the status and the body.
fn ask(to: SocketAddr, line: &str, body: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(to).unwrap();
    let length = body.len();
    write!(stream, "{line} HTTP/1.0\r\nhost: {to}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let at = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..at]).into_owned();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), answer.split_off(at))
}

/// What object storage answers, which takes any signature.
fn stored(server: SocketAddr, path: &str) -> Vec<u8> {
    let signed =
        "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let mut stream = TcpStream::connect(server).unwrap();
    write!(stream, "GET /bucket{path} HTTP/1.0\r\nhost: {server}\r\nauthorization: {signed}\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let at = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.starts_with(b"HTTP/1.") && answer[8..].starts_with(b" 200 "), "{path}");
    answer.split_off(at)
}

/// The names of objects below a folder of the store.
fn objects(server: SocketAddr, folder: &str) -> Vec<String> {
    let prefix = format!("some/store/{folder}/");
    let text = String::from_utf8(stored(server, &format!("?list-type=2&prefix={prefix}"))).unwrap();
    let keys = text.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap());
    keys.map(|key| key.strip_prefix("some/store/").unwrap().to_owned()).collect()
}

/// All entries of the incidents' journal, by their numbers, as they are in the bucket.
fn entries(server: SocketAddr) -> Vec<Value> {
    let mut found = std::collections::BTreeMap::new();
    for name in objects(server, "incidents/pack").into_iter().chain(objects(server, "incidents/journal")) {
        let body = stored(server, &format!("/some/store/{name}"));
        let body = if name.ends_with(".zst") { zstd::decode_all(&*body).unwrap() } else { body };
        for line in String::from_utf8(body).unwrap().lines().step_by(2) {
            let entry: Value = serde_json::from_str(line).unwrap();
            found.entry(entry["n"].as_u64().unwrap()).or_insert(entry);
        }
    }
    assert_eq!(found.last_key_value().map(|(n, _)| *n), Some(found.len() as u64), "a number is missing");
    found.into_values().collect()
}

/// Events of a kind, in a journal.
fn events<'a>(entries: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let all = entries.iter().flat_map(|entry| entry["events"].as_array().unwrap());
    all.filter(|event| event["e"] == kind).collect()
}

/// Pages that are served until this goes.
struct Pages(Child, SocketAddr);

impl Pages {
    fn of(machine: &Machine<'_>) -> Pages {
        let mut serve = machine.command();
        serve.args(["incident", "serve", "--store", STORE, "--listen", "127.0.0.1:0"]);
        let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.trim().trim_start_matches("http://").trim_end_matches('/').parse();
        Pages(child, at.unwrap())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A log with a violation in it.
fn violating(path: &Path, rounds: u64) {
    log(path, rounds);
    let record = r#"{"actor":"_test","seq":1,"kind":"violation","fields":{"fingerprints":["I:a0"],"affected":["a0"]}}"#;
    let text = std::fs::read_to_string(path).unwrap() + record + "\n";
    std::fs::write(path, text).unwrap();
}

#[test]
fn incidents_are_everybodys_who_has_the_store() {
    let Some(server) = server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let machine = |name: &'static str| Machine { folder: dir.path(), name, server: server.address };
    let (one, two, three) = (machine("one"), machine("two"), machine("three"));
    violating(&dir.path().join("ring.jsonl"), 5);
    violating(&dir.path().join("zebra.jsonl"), 7);
    // One that somebody brings, and one of a record in the store.
    let brought = one.done(&["incident", "open", "zebra.jsonl", "--store", STORE, "--system", "zebra7"]);
    one.done(&["ingest", "load", "ring.jsonl", "--store", STORE, "--system", "ring"]);
    two.done(&["incident", "work", "--once", "--settle", "0", "--store", STORE]);
    let list = three.command().args(["incident", "list", "--incidents", "--json", "--store", STORE]).output();
    let list: Value = serde_json::from_slice(&list.unwrap().stdout).unwrap();
    let of =
        |source: &str| list.as_array().unwrap().iter().find(|one| one["source"] == source).unwrap().clone();
    assert_eq!(list.as_array().unwrap().len(), 2, "{list}");
    assert_eq!(
        (&of("record")["result"], &of("command")["result"]),
        (&"unmodelled".into(), &"unmodelled".into())
    );
    // Each machine reads what another made.
    let shown = three.done(&["incident", "show", brought.trim(), "--store", STORE]);
    let page = shown.lines().find_map(|line| line.strip_prefix("page: ")).unwrap();
    assert!(page.contains("three") && std::fs::read_to_string(page).unwrap().contains("<html"), "{shown}");
    three.done(&["incident", "bundle", brought.trim(), "--store", STORE, "--out", "bundle.tar.zst"]);
    for machine in [&one, &two, &three] {
        let verified = machine.done(&["incident", "verify", "--store", STORE]);
        assert!(verified.contains("2 incidents") && verified.contains("nothing is missing"), "{verified}");
    }
    let pages = Pages::of(&one);
    let id = of("record")["id"].as_str().unwrap().to_owned();
    let (status, page) = ask(pages.1, &format!("GET /i/{id}/page"), "");
    assert!(status == 200 && page.windows(5).any(|part| part == b"<html"));
    // What somebody says on one machine is read on another.
    two.done(&["incident", "note", "B-1", "seen", "--store", STORE]);
    let (_, bug) = ask(pages.1, "GET /b/1", "");
    assert!(String::from_utf8(bug).unwrap().contains("seen"));
    // What is forgotten on one is nowhere, once others make room.
    let data = objects(server.address, "incidents/data");
    assert!(data.iter().any(|name| name.contains(brought.trim())), "{data:?}");
    let told = three.done(&["incident", "purge", "--actor", "zebra7", "--store", STORE]);
    assert!(told.contains("1 incidents are forgotten"), "{told}");
    let left =
        [objects(server.address, "incidents/data"), objects(server.address, "incidents/uploads")].concat();
    assert!(!left.is_empty() && left.iter().all(|name| name.contains(&id)), "{left:?}");
    assert!(!entries(server.address).iter().any(|entry| entry.to_string().contains("zebra7")));
    two.done(&["incident", "sweep", "--space", "1GiB", "--store", STORE]);
    let own = std::fs::read_dir(dir.path().join("two")).unwrap().next().unwrap().unwrap().path();
    let kept: Vec<_> = std::fs::read_dir(own.join("incidents/data")).unwrap().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[test]
fn workers_on_object_storage_that_fails_lose_and_double_nothing() {
    let Some(server) = server() else { return };
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::before(server.address);
    let direct = Machine { folder: dir.path(), name: "direct", server: server.address };
    let incidents = if std::env::var_os("DEMI_LONG").is_some() { 40 } else { 6 };
    let ids: Vec<String> = (0..incidents)
        .map(|n| {
            let file = format!("log-{n}.jsonl");
            violating(&dir.path().join(&file), 3 + n);
            direct.done(&["incident", "open", &file, "--store", STORE, "--system", "s"]).trim().to_owned()
        })
        .collect();
    proxy.share.store(200, Ordering::Relaxed);
    let work = |name: &'static str| {
        let mut command = Machine { folder: dir.path(), name, server: proxy.address }.command();
        command.args(["incident", "work", "--once", "--lease", "20", "--store", STORE]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let names = ["one", "two", "three"];
    let mut workers = names.map(work);
    let began = Instant::now();
    let done = || {
        let list =
            direct.command().args(["incident", "list", "--incidents", "--json", "--store", STORE]).output();
        let list: Value = serde_json::from_slice(&list.unwrap().stdout).unwrap();
        let ended = |one: &&Value| one["work"] == "done" || one["work"] == "parked";
        list.as_array().unwrap().iter().filter(ended).count() as u64
    };
    while done() < incidents {
        // Whoever gave up begins again, as a service does.
        for (worker, name) in workers.iter_mut().zip(names) {
            if worker.try_wait().unwrap().is_some() {
                *worker = work(name);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(600), "{} of {incidents}", done());
        std::thread::sleep(Duration::from_millis(500));
    }
    for mut worker in workers {
        let _ = worker.kill();
        let _ = worker.wait();
    }
    // Entries come through pages as well, until some are packed. Who is told that it was written finds it, once.
    proxy.share.store(50, Ordering::Relaxed);
    let pages = Pages::of(&Machine { folder: dir.path(), name: "pages", server: proxy.address });
    let (mut taken, mut tries) = (Vec::new(), 0);
    while taken.len() < 250 {
        tries += 1;
        let text = format!("note {tries}");
        let (status, _) = ask(pages.1, "POST /v1/bugs/B-1/note", &format!("{{\"text\":\"{text}\"}}"));
        assert!(status == 202 || status == 503, "{status}");
        if status == 202 {
            taken.push(text);
        }
        assert!(began.elapsed() < Duration::from_secs(1200), "{} notes", taken.len());
    }
    drop(pages);
    let verified = direct.done(&["incident", "verify", "--store", STORE]);
    assert!(verified.contains("nothing is missing"), "{verified}");
    assert!(!objects(server.address, "incidents/pack").is_empty());
    let entries = entries(server.address);
    for kind in ["opened", "done"] {
        let mut of: Vec<&str> =
            events(&entries, kind).iter().map(|event| event["id"].as_str().unwrap()).collect();
        let all = of.len();
        of.sort_unstable();
        of.dedup();
        assert_eq!(of.len(), all, "{kind} twice");
        assert!(kind == "done" || ids.iter().all(|id| of.contains(&id.as_str())));
    }
    let notes = events(&entries, "noted");
    for text in &taken {
        assert_eq!(notes.iter().filter(|note| note["text"] == text.as_str()).count(), 1, "{text}");
    }
    let happened: Vec<u64> = proxy.happened.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert!(happened.iter().sum::<u64>() > 10, "{happened:?}");
    println!("{} entries, faults {happened:?}", entries.len());
}
