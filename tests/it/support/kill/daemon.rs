//! The daemon as a process that is started, killed and stopped.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::random::Random;

/// Where the daemon listens now; empty while it does not run.
#[derive(Clone, Default)]
pub struct Addresses(Arc<Mutex<BTreeMap<String, SocketAddr>>>);

impl Addresses {
    pub fn get(&self, name: &str) -> Option<SocketAddr> {
        self.0.lock().unwrap().get(name).copied()
    }
}

pub struct Daemon {
    dir: PathBuf,
    child: Option<Child>,
    addresses: Addresses,
    frozen: Vec<PathBuf>,
}

impl Daemon {
    /// A daemon with sources of all kinds but NATS, and what `more` configures.
    pub fn new(dir: &Path, more: &str) -> Self {
        fs::create_dir_all(dir.join("logs")).unwrap();
        fs::create_dir_all(dir.join("texts")).unwrap();
        fs::write(dir.join("map.toml"), super::MAPPING).unwrap();
        let d = dir.display();
        let config = format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 150\ncompact_files = 4\n\
             [spool]\ndir = \"{d}/spool\"\nmax_bytes = 20000000\nsegment_bytes = 1000000\n\
             [limits]\nbody_bytes = 1000000\nfull_secs = 1\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [daemon]\nlog = \"warn\"\ndrain_secs = 60\n\
             [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*.log*\"]\n\
             poll_millis = 20\nscan_millis = 60\ngone_secs = 1\n\
             [sources.texts]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/texts/*.log*\"]\n\
             mapping = \"{d}/map.toml\"\npoll_millis = 20\nscan_millis = 60\ngone_secs = 1\n\
             [sources.tcp]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n\
             [sources.http]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n\
             [sources.otlp]\ntype = \"otlp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n{more}"
        );
        Daemon::with_config(dir, &config)
    }

    /// A daemon with a configuration of its own.
    pub fn with_config(dir: &Path, config: &str) -> Self {
        fs::write(dir.join("demi.toml"), config).unwrap();
        Daemon { dir: dir.to_owned(), child: None, addresses: Addresses::default(), frozen: Vec::new() }
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    pub fn start(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.dir.join("daemon.log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(["ingest", "serve", "--config"])
            .arg(self.dir.join("demi.toml"))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut found = BTreeMap::new();
        let mut ready = false;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if line == "ready" {
                ready = true;
                break;
            }
            let (name, address) = line.split_once(' ').unwrap();
            found.insert(name.to_owned(), address.parse().unwrap());
        }
        assert!(ready, "the daemon did not start:\n{}", self.log());
        *self.addresses.0.lock().unwrap() = found;
        self.child = Some(child);
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let text = fs::read_to_string(self.dir.join("daemon.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    pub fn kill(&mut self) {
        self.addresses.0.lock().unwrap().clear();
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM, and all of it in the store.
    pub fn stop(&mut self) {
        self.addresses.0.lock().unwrap().clear();
        let mut child = self.child.take().unwrap();
        let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(killed.success());
        let end = Instant::now() + Duration::from_secs(90);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the daemon does not stop:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
        assert!(child.wait().unwrap().success(), "{}", self.log());
    }

    /// Appends what a crash of the machine can leave behind: zeros, noise, the beginning of a frame.
    pub fn tear_spool(&self, random: &mut Random) {
        let mut segments: Vec<PathBuf> = fs::read_dir(self.dir.join("spool"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "spool"))
            .collect();
        segments.sort();
        let Some(last) = segments.last() else { return };
        let bytes = fs::read(last).unwrap();
        let torn: Vec<u8> = match random.below(3) {
            0 => vec![0; random.below(5000) as usize],
            1 => (0..random.below(5000)).map(|_| random.next() as u8).collect(),
            _ => bytes.iter().skip(32).take(random.below(3000) as usize).copied().collect(),
        };
        OpenOptions::new().append(true).open(last).unwrap().write_all(&torn).unwrap();
    }

    /// Makes the tables unwritable; says whether this could be done here.
    pub fn freeze_store(&mut self) -> bool {
        for table in ["events", "quarantine", "completeness"] {
            let log = self.dir.join("store").join(table).join("_delta_log");
            if !log.is_dir() {
                continue;
            }
            // Root may write where nobody may, but not where the file system says no.
            let refused = || {
                let probe = log.join("probe");
                let refused = fs::write(&probe, "").is_err();
                let _ = fs::remove_file(probe);
                refused
            };
            let run = |program: &str, how: &str| {
                Command::new(program)
                    .arg(how)
                    .arg(&log)
                    .stderr(Stdio::null())
                    .status()
                    .is_ok_and(|s| s.success())
            };
            if run("chmod", "555") && refused() || run("chattr", "+i") && refused() {
                self.frozen.push(log);
            } else {
                run("chattr", "-i");
                run("chmod", "755");
            }
        }
        if self.frozen.is_empty() {
            eprintln!("the store cannot be made unwritable here; this fault is left out");
        }
        !self.frozen.is_empty()
    }

    pub fn thaw_store(&mut self) {
        for log in self.frozen.drain(..) {
            let _ = Command::new("chattr").arg("-i").arg(&log).stderr(Stdio::null()).status();
            assert!(Command::new("chmod").arg("755").arg(&log).status().unwrap().success());
        }
    }

    /// Body of the admin listener's answer.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.addresses.get("admin").unwrap()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    /// The number behind the name and labels of a metric; 0 where there is none.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics");
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
    }

    /// Waits until the metric is that number.
    pub fn wait_for_metric(&self, name: &str, value: u64) {
        self.wait_until(&format!("{name}{value}"), || self.metric(name) == value);
    }

    /// Waits for something, at most a minute.
    pub fn wait_until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !done() {
            assert!(Instant::now() < end, "{what}: not after a minute\n{}", self.get("/metrics"));
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// Paths of followed files, by inode, with the bytes that are durable.
    pub fn positions(&self) -> BTreeMap<u64, u64> {
        let all: serde_json::Value = serde_json::from_str(&self.get("/v1/positions")).unwrap();
        let Some(files) = all["sources"]["logs"].as_object() else { return BTreeMap::new() };
        files.values().map(|f| (f["inode"].as_u64().unwrap(), f["offset"].as_u64().unwrap())).collect()
    }

    /// Waits until so many events are in the store.
    pub fn wait_for(&self, events: u64) {
        let store = demi_store::Store::open(self.dir.join("store")).unwrap();
        drop(store);
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let mut store = demi_store::Store::open(self.dir.join("store")).unwrap();
            store.refresh().unwrap();
            // A system is there when its first events are.
            let rows = super::check::rows(&store.event_files("s").unwrap_or_default());
            if rows >= events {
                return;
            }
            assert!(Instant::now() < end, "{rows} of {events} events after two minutes:\n{}", self.log());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.thaw_store();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
