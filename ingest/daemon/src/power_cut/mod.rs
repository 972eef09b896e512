//! Power cuts: a load and a daemon run on a simulated disk, the power is cut between any two calls, and what was
//! acknowledged must be there once.
//!
//! `DEMI_POWER_CUTS` is the number of cuts of each.

mod disk;
mod faults;
mod record;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use bytes::Bytes;

use self::disk::{Disk, Random};
use self::record::{Deaf, Fast, Op, Recorder};
use crate::{Batch, Config, Content, Daemon, Origin, verify};
use demi_formats::Sources;
use demi_store::completeness::{completeness, status};
use demi_store::scan::scan;
use demi_store::{LoadOptions, Store, StoreError};

fn cuts() -> usize {
    std::env::var("DEMI_POWER_CUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// A line of an event record.
fn event(seq: u64) -> String {
    format!(
        "{{\"actor\":\"a\",\"seq\":{seq},\"kind\":\"local\",\"time\":\"2026-01-0{}T00:00:00Z\"}}\n",
        1 + seq % 3
    )
}

/// Where to cut: before and after the first call of each kind, and elsewhere as chosen by a seed, `cuts` in all.
fn places(kinds: &[String], cuts: usize) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        if seen.insert(kind) {
            places.extend([at, at + 1]);
        }
    }
    let mut random = Random::new(1);
    for cut in places.len()..cuts {
        // Most of them in the beginning, where stores used to be lost.
        let end = if cut % 8 == 0 { kinds.len() } else { kinds.len() / 10 };
        places.push(random.below(end + 1));
    }
    places
}

/// Cuts at all places; gives what went wrong.
fn cut_all(
    recorder: &Recorder,
    cuts: usize,
    check: impl Fn(&Path, u64) -> Result<(), String>,
) -> Vec<String> {
    let (ops, kinds) = recorder.log();
    let mut failures = Vec::new();
    for (seed, place) in places(&kinds, cuts).into_iter().enumerate() {
        let disk = Disk::after(&ops[..place]);
        let dir = tempfile::tempdir().unwrap();
        disk.cut(&mut Random::new(seed as u64 + 1), dir.path());
        if let Err(error) = check(dir.path(), disk.acknowledged) {
            let near = kinds.get(place).map_or("the end", String::as_str);
            failures.push(format!("cut {place} ({near}), seed {seed}: {error}"));
        }
    }
    failures
}

/// Sequence numbers in the store, sorted, and the quarantined lines, sorted. Nothing of either where there is no store.
fn content(dir: &Path) -> Result<(Vec<u64>, Vec<Vec<u8>>), String> {
    let store = match Store::open(dir) {
        Ok(store) => store,
        Err(StoreError::NoStore { .. }) => return Ok((Vec::new(), Vec::new())),
        Err(error) => return Err(error.to_string()),
    };
    let text = |error: StoreError| error.to_string();
    let (mut seqs, mut lines) = (Vec::new(), Vec::new());
    let files = store.known_event_files("s").map_err(text)?;
    scan(&files, &[("seq", DataType::Int64)], |batch| {
        seqs.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().map(|n| *n as u64));
        Ok(())
    })
    .map_err(text)?;
    scan(&store.quarantine_files("s").map_err(text)?, &[("raw", DataType::Binary)], |batch| {
        lines.extend(batch.column(0).as_binary::<i32>().iter().flatten().map(<[u8]>::to_vec));
        Ok(())
    })
    .map_err(text)?;
    store.systems().and_then(|_| completeness(&store)).map_err(text)?;
    seqs.sort_unstable();
    lines.sort_unstable();
    Ok((seqs, lines))
}

/// All of the first `acknowledged` are there, and nothing twice. Gives how many events and quarantined lines there are.
fn once(dir: &Path, acknowledged: u64) -> Result<(u64, u64), String> {
    let (seqs, mut lines) = content(dir)?;
    let twice = seqs.windows(2).any(|w| w[0] == w[1]);
    let missing = (1..=acknowledged).filter(|seq| seqs.binary_search(seq).is_err()).count();
    let count = lines.len();
    lines.dedup();
    if twice || missing > 0 || lines.len() < count {
        return Err(format!("{missing} of {acknowledged} missing, twice: {twice}, {count} quarantined"));
    }
    Ok((seqs.len() as u64, count as u64))
}

const FILES: u64 = 3;
const EVENTS: u64 = 90;

fn load(
    store: &Path,
    logs: &Path,
    files: Arc<dyn demi_store::fs::FileSystem>,
    file: u64,
) -> Result<(), String> {
    let path = logs.join(format!("{file}.jsonl"));
    let mut text: String = (file * EVENTS + 1..=(file + 1) * EVENTS).map(event).collect();
    text.push_str(&format!("no record {file}\n"));
    std::fs::write(&path, text).unwrap();
    let mut store = Store::create_on(store, files).map_err(|e| e.to_string())?;
    let sources = Sources::plan(&[path.to_str().unwrap().to_owned()]).unwrap();
    let options = LoadOptions { commit_rows: 20, ..LoadOptions::new("s") };
    demi_store::load(&mut store, sources, &options, |_| {}).map_err(|e| e.to_string())?;
    Ok(())
}

fn cut_loads(deaf: Deaf, cuts: usize) -> Vec<String> {
    let (dir, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let recorder = Recorder::new(&dir.path().canonicalize().unwrap(), deaf);
    let store = dir.path().canonicalize().unwrap().join("a/b/store");
    for file in 0..FILES {
        load(&store, logs.path(), Arc::new(recorder.clone()), file).unwrap();
        recorder.acknowledge((file + 1) * EVENTS);
    }
    cut_all(&recorder, cuts, |disk, acknowledged| {
        let store = disk.join("a/b/store");
        once(&store, acknowledged)?;
        // Whoever did not hear that it is done loads again.
        for file in acknowledged / EVENTS..FILES {
            load(&store, logs.path(), Arc::new(Fast), file)?;
        }
        match once(&store, FILES * EVENTS)? {
            (events, FILES) if events == FILES * EVENTS => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
}

fn config(disk: &Path) -> Config {
    let text = format!(
        "[store]\ndir = \"{0}/a/store\"\nseal_rows = 5\nseal_millis = 0\ncompact_files = 4\n\
         [spool]\ndir = \"{0}/b/c/spool\"\nsegment_bytes = 4096\n\
         [sources.in]\ntype = \"tcp\"\nsystem = \"s\"\nlisten = \"127.0.0.1:0\"\n",
        disk.display()
    );
    Config::parse(&text, |_| None).unwrap()
}

/// Batches handed to the daemon: more than the commits between two checkpoints.
const BATCHES: u64 = 110;

fn cut_daemon(deaf: Deaf, batches: u64, cuts: usize) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().canonicalize().unwrap();
    let recorder = Recorder::new(&path, deaf);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let daemon = Daemon::start_on(&config(&path), Arc::new(recorder.clone())).await.unwrap();
        let origin = Origin { source: "in".into(), system: "s".into() };
        for n in 0..batches {
            let lines: String =
                (n * 5 + 1..=n * 5 + 5).map(event).chain([format!("no record {n}\n")]).collect();
            let content = Content::Lines { offset: n * 1000, line: 0, bytes: Bytes::from(lines) };
            let batch = Batch { origin: origin.clone(), stream: "x".into(), content, positions: Vec::new() };
            daemon.intake.submit(batch, Duration::from_secs(60)).await.unwrap();
            recorder.acknowledge((n + 1) * 5);
            while daemon.metrics.committed_lsn.get() <= n as i64 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        assert!(daemon.stop().await);
    });
    cut_all(&recorder, cuts, |disk, acknowledged| {
        let config = config(disk);
        let (store, spool) = (disk.join("a/store"), disk.join("b/c/spool"));
        // The commands work before a daemon mends anything.
        content(&store)?;
        runtime.block_on(async {
            let daemon = Daemon::start_on(&config, Arc::new(Fast)).await.map_err(|e| e.to_string())?;
            if daemon.stop().await { Ok(()) } else { Err("not drained".to_owned()) }
        })?;
        let (events, quarantined) = once(&store, acknowledged)?;
        if quarantined < acknowledged / 5 || events % 5 != 0 {
            return Err(format!("{events} events, {quarantined} quarantined of {acknowledged}"));
        }
        let found = verify(&store, &spool).map_err(|e| e.to_string())?;
        if !found.losses.is_empty() {
            return Err(found.losses.join("; "));
        }
        Store::open(&store).and_then(|store| status(&store, None)).map(|_| ()).map_err(|e| e.to_string())
    })
}

#[test]
fn a_load_outlives_any_power_cut() {
    let failures = cut_loads(Deaf::default(), cuts());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_daemon_outlives_any_power_cut() {
    let failures = cut_daemon(Deaf::default(), BATCHES, cuts());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// The simulation is worth something: it finds the losses of a program that leaves out one kind of sync.
#[test]
fn without_syncs_power_cuts_lose_records() {
    let of_files = Deaf { files: true, dirs: false };
    let of_dirs = Deaf { files: false, dirs: true };
    for deaf in [of_files, of_dirs] {
        assert!(!cut_loads(deaf, 30).is_empty(), "{deaf:?}");
    }
    assert!(!cut_daemon(of_dirs, 6, 30).is_empty());
}

#[test]
fn every_kind_of_call_up_to_the_third_commit_is_cut() {
    let (dir, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let recorder = Recorder::new(&dir.path().canonicalize().unwrap(), Deaf::default());
    load(&dir.path().canonicalize().unwrap().join("store"), logs.path(), Arc::new(recorder.clone()), 0)
        .unwrap();
    let (ops, kinds) = recorder.log();
    let commits =
        ops.iter().filter(|op| matches!(op, Op::Link(_, to) if to.starts_with("store/events"))).count();
    assert!(commits >= 4, "{commits} commits");
    for kind in [
        "mkdir store",
        "syncdir ",
        "mkdir store/events/_delta_log",
        "create store/events/_delta_log/*.json#",
        "append store/events/_delta_log/*.json#",
        "sync store/events/_delta_log/*.json#",
        "link store/events/_delta_log/*.json",
        "syncdir store/events/_delta_log",
        "rename store/events/system=s/date=*/*.zstd.parquet",
        "link store/quarantine/_delta_log/*.json",
    ] {
        assert!(kinds.iter().any(|k| k == kind), "no {kind} in {:#?}", kinds.iter().collect::<BTreeSet<_>>());
    }
}
