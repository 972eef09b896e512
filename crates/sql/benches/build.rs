//! How fast and in how much memory an execution is built, from 10^5 to 10^7 events, and how fast it is asked.
//!
//! Each size runs in a process of its own, so that peak memory is its own. `DEMI_BENCH_EVENTS=1000000` runs one size,
//! `DEMI_BENCH_ACTORS=10,1000` other numbers of actors than 100, and `DEMI_BENCH_TMP` names a folder with room for the files, which `DEMI_BENCH_KEEP` leaves there.
//! Rows come as a daemon ships them: many files, each with events of all actors. `scan` is Polars reading all columns of the same files
//! in the same process. The columns of questions are about random events, each of an index just opened, with the files in the
//! system's cache: `order` of two, and `past` of one, mean and worst in milliseconds.
//!
//! With `DEMI_BENCH_GROW` set it is measured instead how long a store that is asked directly takes to be built of all events but the last
//! 10,000, and then to be grown by these.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops at the first error"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use demi_common::sealed::SealedFile;

use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{Query, Refreshed, refresh};
use demi_lineage::{BuildOptions, build};

/// Events in the last file.
const LAST: u64 = 10_000;
/// Events in the others.
const ROWS: u64 = 500_000;
/// Questions of each sort.
const ASKED: u32 = 100;

fn files(dir: &Path, events: u64, actors: u32) -> Vec<PathBuf> {
    let mix =
        Mix { seed: 7, actors, events, environment: 0.01, timer: 0.02, forward: 0.01, ..Mix::default() };
    let mut records = Generator::new(&mix).map(|g| g.record).peekable();
    let mut files = Vec::new();
    let mut left = events.saturating_sub(LAST);
    while records.peek().is_some() {
        let path = dir.join(format!("part-{:05}.parquet", files.len()));
        let rows = if left == 0 { LAST * 2 } else { left.min(ROWS) };
        write_store_file(&path, records.by_ref().take(rows as usize)).unwrap();
        left -= rows.min(left);
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
    if std::env::var_os("DEMI_BENCH_GROW").is_some() {
        return grow(&files, &dir.join("grown"));
    }
    let started = Instant::now();
    let mut stage = (String::new(), started);
    let mut stages = String::new();
    let mut progress = |text: &str| {
        if !stage.0.is_empty() {
            stages.push_str(&format!("  {} {:.2} s", stage.0, stage.1.elapsed().as_secs_f64()));
        }
        stage = (text.to_owned(), Instant::now());
    };
    let summary = build(&sealed(&files), &BuildOptions::default(), &dir.join("exec"), &mut progress).unwrap();
    progress("");
    let seconds = started.elapsed().as_secs_f64();
    let peak = peak_mib();
    let per_event = |figure: f64| figure / summary.events as f64;
    let (order, past) = ask(&dir.join("exec"));
    let scan = scan(&files);
    println!(
        "{:>9} {:>8.2} {:>9.3} {:>9} {:>8.1} {order} {past} {scan:>7.2} {:>6.1}{stages}",
        summary.events,
        seconds,
        per_event(seconds * 1e6),
        peak,
        per_event((peak << 20) as f64),
        seconds / scan,
    );
}

/// Seconds that Polars takes to read all columns of the files.
fn scan(files: &[PathBuf]) -> f64 {
    use polars::prelude::{LazyFrame, ScanArgsParquet};
    let started = Instant::now();
    for file in files {
        let frame = LazyFrame::scan_parquet(file.to_str().unwrap().into(), ScanArgsParquet::default());
        assert!(frame.unwrap().collect().unwrap().height() > 0);
    }
    started.elapsed().as_secs_f64()
}

fn sealed(files: &[PathBuf]) -> Vec<SealedFile> {
    files.iter().cloned().map(Into::into).collect()
}

/// Builds what a store is asked with, of all files but the last, and grows it by the last.
fn grow(files: &[PathBuf], folder: &Path) {
    let update = |files: &[PathBuf]| {
        let started = Instant::now();
        let done = refresh(&sealed(files), "bench", folder, &mut |_| {}).unwrap();
        (done, started.elapsed().as_secs_f64())
    };
    let (_, built) = update(&files[..files.len() - 1]);
    let peak = peak_mib();
    let (done, grown) = update(files);
    assert_eq!(done, Refreshed::Grown);
    let events = Query::open(folder, false).unwrap().index().header().events;
    println!("{events:>9} built {built:>8.2} s, peak {peak} MiB; grown by {LAST} in {grown:.2} s");
}

/// Mean and worst time of both questions, in milliseconds.
fn ask(exec: &Path) -> (String, String) {
    let (mut orders, mut pasts) = (Vec::new(), Vec::new());
    let mut random = 12345_u64;
    for _ in 0..ASKED {
        let query = Query::open(exec, false).unwrap();
        let events = u64::from(query.index().header().events);
        let mut event = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % events) as u32
        };
        let started = Instant::now();
        query.order(event(), event()).unwrap();
        orders.push(started.elapsed().as_secs_f64() * 1e3);
        let query = Query::open(exec, false).unwrap();
        let started = Instant::now();
        query.past(event()).unwrap();
        pasts.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let show = |all: Vec<f64>| {
        let worst = all.iter().copied().fold(0.0, f64::max);
        format!("{:>7.2} {worst:>7.2}", all.iter().sum::<f64>() / all.len() as f64)
    };
    (show(orders), show(pasts))
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
    let actors = std::env::var("DEMI_BENCH_ACTORS").unwrap_or_else(|_| "100".into());
    let actors: Vec<u32> = actors.split(',').map(|n| n.trim().parse().unwrap()).collect();
    println!(
        " actors    events  seconds  us/event  peak MiB  B/event   order    worst    past   worst    scan  ratio  stages"
    );
    for (events, actors) in sizes.into_iter().flat_map(|n| actors.iter().map(move |&a| (n, a))) {
        let room = std::env::var_os("DEMI_BENCH_TMP").map_or_else(std::env::temp_dir, PathBuf::from);
        let mut dir = tempfile::Builder::new().prefix(&format!("bench-{events}-")).tempdir_in(room).unwrap();
        dir.disable_cleanup(std::env::var_os("DEMI_BENCH_KEEP").is_some());
        std::fs::create_dir(dir.path().join("store")).unwrap();
        files(&dir.path().join("store"), events, actors);
        print!("{actors:>7} ");
        let this = std::env::current_exe().unwrap();
        std::io::stdout().flush().unwrap();
        let status = std::process::Command::new(&this).env("DEMI_BENCH_DIR", dir.path()).status().unwrap();
        assert!(status.success());
    }
}
