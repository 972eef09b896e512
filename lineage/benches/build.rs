//! How fast and in how much memory an execution is built, from 10^5 to 10^7 events.
//!
//! Each size runs in a process of its own, so that peak memory is its own. `DEMI_BENCH_EVENTS=1000000` runs one size. Rows
//! come as a daemon ships them: many files, each with events of all actors.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops at the first error"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::{BuildOptions, build};

fn files(dir: &Path, events: u64) -> Vec<PathBuf> {
    let mix =
        Mix { seed: 7, actors: 100, events, environment: 0.01, timer: 0.02, forward: 0.01, ..Mix::default() };
    let mut records = Generator::new(&mix).map(|g| g.record).peekable();
    let mut files = Vec::new();
    while records.peek().is_some() {
        let path = dir.join(format!("part-{:05}.parquet", files.len()));
        write_store_file(&path, records.by_ref().take(500_000)).unwrap();
        files.push(path);
    }
    files
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn measure(dir: &Path) {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir.join("store")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let started = Instant::now();
    let mut stage = (String::new(), started);
    let mut stages = String::new();
    let mut progress = |text: &str| {
        if !stage.0.is_empty() {
            stages.push_str(&format!("  {} {:.2} s", stage.0, stage.1.elapsed().as_secs_f64()));
        }
        stage = (text.to_owned(), Instant::now());
    };
    let summary = build(&files, &BuildOptions::default(), &dir.join("exec"), &mut progress).unwrap();
    progress("");
    let seconds = started.elapsed().as_secs_f64();
    let per_event = seconds * 1e6 / summary.events as f64;
    println!(
        "{:>9} {:>8} {:>8.2} {:>9.3} {:>9}{stages}",
        summary.events,
        summary.kept,
        seconds,
        per_event,
        peak_mib()
    );
}

fn main() {
    if let Some(dir) = std::env::var_os("DEMI_BENCH_DIR") {
        measure(Path::new(&dir));
        return;
    }
    let sizes = match std::env::var("DEMI_BENCH_EVENTS").ok().and_then(|n| n.parse().ok()) {
        Some(n) => vec![n],
        None => vec![100_000, 1_000_000, 10_000_000],
    };
    println!("   events     kept  seconds  us/event  peak MiB  stages");
    for events in sizes {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("store")).unwrap();
        files(&dir.path().join("store"), events);
        let this = std::env::current_exe().unwrap();
        for _ in 0..if events < 1_000_000 { 3 } else { 1 } {
            let status =
                std::process::Command::new(&this).env("DEMI_BENCH_DIR", dir.path()).status().unwrap();
            assert!(status.success());
        }
    }
}
