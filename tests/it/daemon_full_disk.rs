//! Spool and store on one disk that is full: what was acknowledged goes into the store, and the daemon goes on by itself when there is room.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::CommandCargoExt as _;

/// A small file system in memory, until it is dropped.
struct Disk(PathBuf);

impl Disk {
    /// `None` where this process may mount nothing.
    fn new(path: PathBuf, size: &str) -> Option<Disk> {
        std::fs::create_dir(&path).unwrap();
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).output();
        match mounted.is_ok_and(|output| output.status.success()) {
            true => Some(Disk(path)),
            false => {
                println!("skipped: nothing can be mounted here");
                None
            }
        }
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

struct Daemon {
    child: Child,
    http: String,
    admin: String,
}

impl Daemon {
    fn start(dir: &Path, disk: &Path) -> Daemon {
        let config = format!(
            "[store]\ndir = \"{0}/store\"\nseal_millis = 200\nreserve_bytes = 8388608\n[spool]\ndir = \"{0}/spool\"\n\
             segment_bytes = 2097152\nmax_bytes = 1000000000\n[limits]\nbody_bytes = 2097152\nfull_secs = 1\n[admin]\n\
             listen = \"127.0.0.1:0\"\n[sources.h]\ntype = \"http\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n",
            disk.display()
        );
        std::fs::write(dir.join("d.toml"), config).unwrap();
        let mut child = Command::cargo_bin("demi-lineage")
            .unwrap()
            .args(["ingest", "serve"])
            .arg(dir.join("d.toml"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(dir.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (mut http, mut admin) = (String::new(), String::new());
        while http.is_empty() || admin.is_empty() {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("{}", std::fs::read_to_string(dir.join("log")).unwrap()));
            let address = line.split_whitespace().last().unwrap().to_owned();
            if line.contains("admin") { admin = address } else { http = address }
        }
        Daemon { child, http, admin }
    }

    /// The status and the body of an answer.
    fn ask(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
    }

    fn send(&self, body: &str) -> u16 {
        Daemon::ask(&self.http, "POST", "/v1/events", body).0
    }

    fn metric(&self, name: &str) -> i64 {
        let (_, text) = Daemon::ask(&self.admin, "GET", "/metrics", "");
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records of an actor whose content is hardly compressible.
fn records(actor: u32) -> String {
    let mut state = u64::from(actor) + 1;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    (1..=2000)
        .map(|seq| {
            let payload: String = (0..16).map(|_| format!("{:x}", random())).collect();
            format!("{{\"actor\":\"a{actor}\",\"seq\":{seq},\"kind\":\"local\",\"payload\":\"{payload}\"}}\n")
        })
        .collect()
}

fn until(seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(seconds), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_disk_full_of_spool_is_emptied_and_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::new(dir.path().join("disk"), "24m") else { return };
    let daemon = Daemon::start(dir.path(), &disk.0);
    let (mut taken, mut refused) = (Vec::new(), 0);
    for actor in 0..300 {
        if refused == 3 {
            break;
        }
        match daemon.send(&records(actor)) {
            200 => taken.push(actor),
            503 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(taken.len() > 10 && refused == 3, "{} {refused}", taken.len());
    // All that was acknowledged is committed, though nothing was done about the disk.
    until(60, "the spool is not emptied", || daemon.metric("demi_committed_lsn") == taken.len() as i64);
    disk.resize("100m");
    until(30, "it does not go on", || daemon.send(&records(1000)) == 200);
    until(30, "it is not ready", || Daemon::ask(&daemon.admin, "GET", "/readyz", "").0 == 200);
    until(30, "what came last is not committed", || daemon.metric("demi_committed_lsn") > taken.len() as i64);
    let mut store = demi_store::Store::open(disk.0.join("store")).unwrap();
    store.refresh().unwrap();
    let files = store.event_files("s").unwrap();
    let rows = crate::support::kill::check::rows(&files);
    assert_eq!(rows, 2000 * (taken.len() as u64 + 1));
}
