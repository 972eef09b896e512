use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use demi_schemas::{EventRecord, Kind};

use super::super::table::Gone;
use super::*;
use crate::Store;
use crate::columns::{EventColumns, EventRow};
use crate::scan::scan;
use demi_common::sealed::SealedFile;

/// Rows of a commit.
const BATCH: u64 = 7;

const FEW: SmallFiles = SmallFiles { bytes: 1 << 20, count: 5 };
const KEEP: Duration = Duration::from_secs(3600);
/// Name under which the number of the last commit is kept.
const APPLICATION: &str = "test";

fn events(dir: &Path) -> TableWriter {
    Store::create(dir).unwrap().events_writer().unwrap()
}

/// The `n`-th commit: the next records of two systems, one day each.
fn commit(table: &mut TableWriter, n: u64) {
    for (system, date) in [("s", 20_000), ("other", 20_001)] {
        let mut columns = EventColumns::default();
        for seq in n * BATCH + 1..=(n + 1) * BATCH {
            let record = EventRecord::new("a".to_owned(), seq, Kind::Local);
            columns
                .push(&record, &EventRow { system, date: Some(date), source: "f", offset: seq, digest: seq });
        }
        table.write(columns.finish().unwrap()).unwrap();
    }
    table.commit(&[(APPLICATION.to_owned(), n + 1)], Gone::Nothing).unwrap();
}

/// Sequence numbers that a reader finds who opens the store now, in the order of the files.
fn read(dir: &Path, system: &str) -> Vec<u64> {
    let files = Store::open(dir).unwrap().event_files(system).unwrap_or_default();
    sequence_numbers(&files)
}

fn sequence_numbers(files: &[SealedFile]) -> Vec<u64> {
    let mut found = Vec::new();
    scan(files, &[("seq", DataType::Int64)], |batch| {
        found.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().map(|seq| *seq as u64));
        Ok(())
    })
    .unwrap();
    found
}

fn data_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.join("events")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "parquet")
                && !path.to_string_lossy().contains("_delta_log")
            {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn small_commits_are_merged_and_readers_never_see_half_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = events(dir.path());
    commit(&mut table, 0);
    let stop = AtomicBool::new(false);
    let (merged, looks) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut before, mut looks) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                let found = read(dir.path(), "s");
                let count = found.len() as u64;
                // Whole commits, all that were there before, in the order in which they were made.
                assert_eq!(count % BATCH, 0);
                assert!(count >= before, "{before} rows, then {count}");
                assert_eq!(found, (1..=count).collect::<Vec<_>>());
                (before, looks) = (count, looks + 1);
            }
            looks
        });
        let mut merged = 0;
        for n in 1..50 {
            commit(&mut table, n);
            merged += merge(&mut table, FEW).unwrap().files;
        }
        stop.store(true, Ordering::Relaxed);
        (merged, reader.join().unwrap())
    });
    assert!(looks > 3, "{looks}");
    // Both systems were merged, again and again: the merged files are small too.
    assert!(merged >= 90, "{merged} of 100 files");
    for system in ["s", "other"] {
        assert_eq!(read(dir.path(), system), (1..=50 * BATCH).collect::<Vec<_>>());
        let files = Store::open(dir.path()).unwrap().event_files(system).unwrap();
        assert!(files.len() <= 5, "{} files", files.len());
    }
    // What is known of the spool outlives the merging.
    assert_eq!(events(dir.path()).progress(APPLICATION).unwrap(), Some(50));
}

#[test]
fn large_files_and_few_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = events(dir.path());
    for n in 0..4 {
        commit(&mut table, n);
    }
    assert_eq!(merge(&mut table, FEW).unwrap().files, 0, "four are not five");
    commit(&mut table, 4);
    let large = SmallFiles { bytes: 10, ..FEW };
    assert_eq!(merge(&mut table, large).unwrap().files, 0);
    assert_eq!(merge(&mut table, FEW).unwrap().files, 5);
}

#[test]
fn only_old_files_that_are_no_part_of_the_table_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = events(dir.path());
    for n in 0..5 {
        commit(&mut table, n);
    }
    // A reader that looked before the merging.
    let opened = Store::open(dir.path()).unwrap().event_files("s").unwrap();
    while merge(&mut table, FEW).unwrap().files > 0 {}
    // Files of commits that failed, one long ago.
    let folder = opened[0].path().parent().unwrap();
    let (old, fresh) = (folder.join("old.parquet"), folder.join("fresh.parquet"));
    for path in [&old, &fresh] {
        std::fs::copy(&opened[0], path).unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    let before = data_files(dir.path()).len();
    vacuum(&mut table, KEEP).unwrap();
    assert!(!old.exists() && fresh.exists());
    assert_eq!(data_files(dir.path()).len(), before - 1);
    assert_eq!(
        sequence_numbers(&opened).len() as u64,
        5 * BATCH,
        "whoever reads the version before can go on"
    );
    // Later, all that are not part of the table go; files of the table stay, however old.
    for path in data_files(dir.path()) {
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    std::thread::sleep(Duration::from_millis(5));
    vacuum(&mut table, Duration::ZERO).unwrap();
    assert!(opened.iter().all(|file| !file.path().exists()) && !fresh.exists());
    for system in ["s", "other"] {
        assert_eq!(read(dir.path(), system), (1..=5 * BATCH).collect::<Vec<_>>());
    }
    // The table can still be written.
    commit(&mut table, 5);
    assert_eq!(read(dir.path(), "s").len() as u64, 6 * BATCH);
}

#[test]
fn dead_files_go_early_where_they_are_most_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = events(dir.path());
    for n in 0..60 {
        commit(&mut table, n);
        while merge(&mut table, FEW).unwrap().files > 0 {}
    }
    let (live, dead) = live_and_dead(&table).unwrap();
    assert!(dead > DEAD * live, "{dead} of {live}");
    vacuum(&mut table, KEEP).unwrap();
    assert_eq!(live_and_dead(&table).unwrap(), (live, dead), "a reader may be at what is just dead");
    // The same files, some minutes later: the log says when they went, the folder when they were made.
    let (listed, now) = (data_files(dir.path()).len(), SystemTime::now());
    let log = dir.path().join("events/_delta_log");
    for entry in std::fs::read_dir(&log).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let aged = aged(&text, now - Duration::from_secs(300));
        std::fs::write(&path, aged).unwrap();
    }
    for path in data_files(dir.path()) {
        File::options().write(true).open(path).unwrap().set_modified(now - Duration::from_secs(300)).unwrap();
    }
    let mut table = events(dir.path());
    vacuum(&mut table, KEEP).unwrap();
    let (live, dead) = live_and_dead(&table).unwrap();
    assert!(dead <= DEAD * live && data_files(dir.path()).len() < listed, "{dead} of {live}");
    assert_eq!(read(dir.path(), "s"), (1..=60 * BATCH).collect::<Vec<_>>());
}

/// A commit of the log with all deletions at another time.
fn aged(text: &str, time: SystemTime) -> String {
    let millis = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    let line = |line: &str| {
        let mut action: serde_json::Value = serde_json::from_str(line).unwrap();
        // Nobody is to mistake it for damage.
        action.pointer_mut("/commitInfo").and_then(|info| info.as_object_mut()?.remove("demiSum"));
        if let Some(at) = action.pointer_mut("/remove/deletionTimestamp") {
            *at = millis.into();
        }
        format!("{action}\n")
    };
    text.lines().map(line).collect()
}

#[test]
fn merged_rows_are_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = events(dir.path());
    for n in 0..5_u64 {
        let mut columns = EventColumns::default();
        for (at, seq) in (n * 40 + 1..=(n + 1) * 40).enumerate() {
            // Logs come interleaved, and the later incarnation of one of them first.
            let actor = ["b", "a", "c"][at % 3].to_owned();
            let incarnation = if actor == "b" { 4 - n as u32 } else { 0 };
            let record = EventRecord { incarnation, ..EventRecord::new(actor, seq, Kind::Local) };
            let row = EventRow { system: "s", date: Some(20_000), source: "f", offset: seq, digest: seq };
            columns.push(&record, &row);
        }
        table.write(columns.finish().unwrap()).unwrap();
        table.commit(&[], Gone::Nothing).unwrap();
    }
    assert_eq!(merge(&mut table, FEW).unwrap().files, 5);
    let files = Store::open(dir.path()).unwrap().event_files("s").unwrap();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let metadata = builder(file).unwrap().metadata().clone();
    let group = metadata.row_group(0);
    let by = group.sorting_columns().unwrap().iter().map(|by| group.column(by.column_idx as usize));
    let by: Vec<String> = by.map(|column| column.column_path().string()).collect();
    assert_eq!(by, ["actor", "incarnation", "seq"]);
    let columns = [
        ("actor", DataType::Utf8),
        ("incarnation", DataType::Int32),
        ("seq", DataType::Int64),
        ("offset", DataType::Int64),
    ];
    let mut found = Vec::new();
    scan(&files, &columns, |batch| {
        let long = |column: usize| batch.column(column).as_primitive::<Int64Type>().values();
        let incarnation = batch.column(1).as_primitive::<arrow_array::types::Int32Type>().values();
        for row in 0..batch.num_rows() {
            let name = batch.column(0).as_string::<i32>().value(row).to_owned();
            found.push((name, incarnation[row], long(2)[row], long(3)[row]));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(found.len(), 200);
    assert!(found.is_sorted() && found.iter().all(|row| row.2 == row.3), "{found:?}");
}
