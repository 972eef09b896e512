//! Calls to the file system that fail, fail half done, are done and say that they failed, or take long: a daemon that meets them, is stopped
//! and started in between, and whose senders send again what was not acknowledged, has every record once in the end.
//!
//! `DEMI_FAULTS` is the number of faults, `DEMI_FAULTS_SEED` the first seed.

#![allow(clippy::print_stdout, reason = "a test says what it did")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::disk::Random;
use super::record::Fast;
use super::{event, once};
use crate::{Batch, Config, Content, Daemon, Origin, verify};
use demi_store::fs::{FileSystem, OpenFile};

/// One call in so many meets a fault.
const RATE: usize = 60;
/// Batches of a run.
const BATCHES: u64 = 40;

#[derive(Clone, Debug)]
struct Faulty(Arc<State>);

#[derive(Debug)]
struct State {
    on: AtomicBool,
    random: std::sync::Mutex<Random>,
    met: AtomicU64,
}

/// What a call meets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It is not done.
    Not,
    /// Part of it is done, where that is possible.
    Half,
    /// It is done, and says that it was not.
    Done,
    Slow,
}

impl Faulty {
    fn new(seed: u64) -> Faulty {
        let random = std::sync::Mutex::new(Random::new(seed));
        Faulty(Arc::new(State { on: AtomicBool::new(true), random, met: AtomicU64::new(0) }))
    }

    fn met(&self) -> u64 {
        self.0.met.load(Ordering::Relaxed)
    }

    fn below(&self, bound: usize) -> usize {
        self.0.random.lock().unwrap().below(bound)
    }

    fn next(&self) -> Option<(Fault, io::Error)> {
        if !self.0.on.load(Ordering::Relaxed) || self.below(RATE) > 0 {
            return None;
        }
        self.0.met.fetch_add(1, Ordering::Relaxed);
        let fault = [Fault::Not, Fault::Half, Fault::Done, Fault::Slow][self.below(4)];
        // Input/output error, no space, too many open files, quota.
        let error = io::Error::from_raw_os_error([5, 28, 24, 122][self.below(4)]);
        Some((fault, error))
    }

    fn call<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.next() {
            None => call(),
            Some((Fault::Slow, _)) => {
                std::thread::sleep(Duration::from_millis(3));
                call()
            }
            Some((Fault::Done, error)) => call().and(Err(error)),
            Some((Fault::Not | Fault::Half, error)) => Err(error),
        }
    }
}

impl FileSystem for Faulty {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.call(|| Fast.create_dir(path))
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = self.call(|| Fast.create(path))?;
        Ok(Box::new(Handle { file, faults: self.clone() }))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = self.call(|| Fast.open(path))?;
        Ok(Box::new(Handle { file, faults: self.clone() }))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|| Fast.link(from, to))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|| Fast.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(|| Fast.remove(path))
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.call(|| Ok(()))
    }
}

#[derive(Debug)]
struct Handle {
    file: Box<dyn OpenFile>,
    faults: Faulty,
}

impl OpenFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.faults.next() {
            Some((Fault::Half, error)) => {
                let part = self.faults.below(bytes.len() + 1);
                self.file.append(&bytes[..part])?;
                Err(error)
            }
            Some((Fault::Not, error)) => Err(error),
            Some((Fault::Done, error)) => self.file.append(bytes).and(Err(error)),
            Some((Fault::Slow, _)) => {
                std::thread::sleep(Duration::from_millis(3));
                self.file.append(bytes)
            }
            None => self.file.append(bytes),
        }
    }
    fn sync(&mut self) -> io::Result<()> {
        self.faults.call(|| Ok(()))
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        let file = &mut self.file;
        self.faults.call(|| file.cut(len))
    }
}

fn config(disk: &Path) -> Config {
    let text = format!(
        "[store]\ndir = \"{0}/store\"\nseal_rows = 5\nseal_millis = 0\ncompact_files = 4\nreserve_bytes = 4096\n\
         [spool]\ndir = \"{0}/spool\"\nsegment_bytes = 4096\n[daemon]\ndrain_secs = 1\n\
         [sources.in]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n",
        disk.display()
    );
    Config::parse(&text, |_| None).unwrap()
}

/// Hands over all batches; gives the faults that were met.
async fn run(disk: &Path, seed: u64) -> Result<u64, String> {
    let (config, faults) = (config(disk), Faulty::new(seed));
    let origin = Origin { source: "in".into(), system: "s".into() };
    let mut daemon = None;
    for n in 0..BATCHES {
        let lines: String = (n * 5 + 1..=n * 5 + 5).map(event).chain([format!("no record {n}\n")]).collect();
        loop {
            let Some(up) = &daemon else {
                daemon = Daemon::start_on(&config, Arc::new(faults.clone())).await.ok();
                continue;
            };
            let content = Content::Lines { offset: n * 1000, line: 0, bytes: Bytes::from(lines.clone()) };
            let batch = Batch { origin: origin.clone(), stream: "x".into(), content, positions: Vec::new() };
            // Whoever hears nothing sends again.
            if up.intake.submit(batch, Duration::from_millis(200)).await.is_ok() {
                break;
            }
        }
        if faults.below(16) == 0
            && let Some(up) = daemon.take()
        {
            up.stop().await;
        }
    }
    let met = faults.met();
    faults.0.on.store(false, Ordering::Relaxed);
    if let Some(up) = daemon.take() {
        up.stop().await;
    }
    let last = Daemon::start_on(&config, Arc::new(Fast)).await.map_err(|e| e.to_string())?;
    let goal = last.metrics.durable_lsn.get();
    // What an earlier process made durable is so still.
    if goal < BATCHES as i64 {
        return Err(format!("{goal} of {BATCHES} batches are told to be durable"));
    }
    for _ in 0..24_000 {
        if last.metrics.committed_lsn.get() >= goal {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let committed = last.metrics.committed_lsn.get();
    let failures = last.metrics.commit_failures.get();
    match last.stop().await {
        true => Ok(met),
        false => Err(format!("not drained: {committed} of {goal} committed, {failures} commits failed")),
    }
}

/// Every record is there once.
fn check(disk: &Path) -> Result<(), String> {
    let (events, quarantined) = once(&disk.join("store"), BATCHES * 5)?;
    if (events, quarantined) != (BATCHES * 5, BATCHES) {
        return Err(format!("{events} events, {quarantined} quarantined"));
    }
    let found = verify(&disk.join("store"), &disk.join("spool")).map_err(|e| e.to_string())?;
    if found.losses.is_empty() { Ok(()) } else { Err(found.losses.join("; ")) }
}

#[test]
fn a_daemon_outlives_faults_of_the_disk() {
    let wanted = std::env::var("DEMI_FAULTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let first = std::env::var("DEMI_FAULTS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut met, mut seed) = (0, first);
    while met < wanted {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().canonicalize().unwrap();
        let done = runtime.block_on(run(&disk, seed));
        runtime.shutdown_background();
        match done.and_then(|faults| check(&disk).map(|()| faults)) {
            Ok(faults) => met += faults,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        seed += 1;
    }
    println!("{met} faults in {} runs", seed - first);
    assert!(met / (seed - first) >= 5, "{met} faults in {} runs", seed - first);
}
