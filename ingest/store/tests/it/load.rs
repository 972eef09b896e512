//! Loads into real stores in temporary directories, read back with Parquet alone.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use demi_formats::{Source, Sources};
use demi_store::{LoadOptions, LoadReport, Store, StoreError, load};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn stream(name: &str, text: impl Into<Vec<u8>>) -> Source {
    Source::stream(name, Box::new(Cursor::new(text.into())))
}

fn put(store: &mut Store, sources: Vec<Source>) -> LoadReport {
    load(store, Sources(sources), &LoadOptions::new("s"), |_| {}).unwrap()
}

fn rows(files: &[impl AsRef<Path>]) -> Vec<RecordBatch> {
    files
        .iter()
        .flat_map(|f| {
            ParquetRecordBatchReaderBuilder::try_new(File::open(f).unwrap()).unwrap().build().unwrap()
        })
        .map(Result::unwrap)
        .collect()
}

fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    let mut out = Vec::new();
    for batch in batches {
        let values = batch.column_by_name(column).unwrap().as_string::<i32>().clone();
        out.extend(values.iter().map(|v| v.map(str::to_owned)));
    }
    out
}

fn longs(batches: &[RecordBatch], column: &str) -> Vec<i64> {
    batches
        .iter()
        .flat_map(|b| b.column_by_name(column).unwrap().as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

/// (actor, incarnation, seq) in the order of the store.
fn keys(store: &Store, system: &str) -> Vec<(String, i32, i64)> {
    let mut keys = Vec::new();
    for batch in rows(&store.event_files(system).unwrap()) {
        let actors = batch.column_by_name("actor").unwrap().as_string::<i32>().clone();
        let lives = batch.column_by_name("incarnation").unwrap().as_primitive::<Int32Type>().clone();
        let seqs = batch.column_by_name("seq").unwrap().as_primitive::<Int64Type>().clone();
        keys.extend(
            (0..batch.num_rows()).map(|i| (actors.value(i).to_owned(), lives.value(i), seqs.value(i))),
        );
    }
    keys
}

/// Code, offset and raw bytes of what is in quarantine.
fn quarantine(store: &Store) -> Vec<(String, i64, Vec<u8>)> {
    let mut found = Vec::new();
    for batch in rows(&store.quarantine_files("s").unwrap()) {
        let codes = batch.column_by_name("code").unwrap().as_string::<i32>().clone();
        let offsets = batch.column_by_name("offset").unwrap().as_primitive::<Int64Type>().clone();
        let raw = batch.column_by_name("raw").unwrap().as_binary::<i32>().clone();
        found.extend(
            (0..batch.num_rows())
                .map(|i| (codes.value(i).to_owned(), offsets.value(i), raw.value(i).to_vec())),
        );
    }
    found
}

fn log(actor: &str, from: u64, to: u64) -> String {
    (from..=to)
        .map(|n| format!("{{\"actor\":\"{actor}\",\"seq\":{n},\"kind\":\"start\",\"n\":{n}}}\n"))
        .collect()
}

fn new_store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path()).unwrap();
    (dir, store)
}

#[test]
fn every_field_is_kept_and_leads_back_to_its_line() {
    let (_dir, mut store) = new_store();
    let first = concat!(
        r#"{"actor":"a","incarnation":2,"seq":1,"kind":"send","msg_id":"m","from":"a","to":"b","via":"forward","#,
        r#""type":"T","payload":"p","fingerprint":"f","external":true,"fields":{"z":1,"a":[2]},"#,
        r#""state":{"x":null},"time":"2024-05-15T23:30:00-02:00","host":"h","source":"own","offset":5,"system":"s"}"#
    );
    let second = r#"{"actor":"t","seq":1,"kind":"timer_set","timer":{"name":"n","repeat":false,"q":1}}"#;
    let report = put(&mut store, vec![stream("dir/f.jsonl", format!("\n{first}\r\n  \n{second}"))]);
    assert_eq!((report.summary.lines, report.summary.added, report.summary.sources), (2, 2, 1));
    let batches = rows(&store.event_files("s").unwrap());
    let text = |column: &str| texts(&batches, column).into_iter().flatten().collect::<Vec<_>>().join("|");
    for (column, expected) in [
        ("actor", "a|t"),
        ("kind", "send|timer_set"),
        ("msg_id", "m"),
        ("from", "a"),
        ("to", "b"),
        ("via", "forward"),
        ("type", "T"),
        ("payload", "p"),
        ("fingerprint", "f"),
        ("fields", r#"{"z":1,"a":[2]}"#),
        ("state", r#"{"x":null}"#),
        ("time", "2024-05-15T23:30:00-02:00"),
        ("timer", r#"{"name":"n","repeat":false,"q":1}"#),
        ("source", "dir/f.jsonl|dir/f.jsonl"),
        ("attrs", r#"{"host":"h","logged_offset":5,"logged_source":"own"}"#),
    ] {
        assert_eq!(text(column), expected, "{column}");
    }
    assert_eq!(longs(&batches, "offset"), [1, 1 + first.len() as i64 + 2 + 3]);
    let files: String =
        store.event_files("s").unwrap().iter().map(|f| f.path().display().to_string() + "\n").collect();
    assert!(
        files.contains("date=2024-05-16") && files.contains("date=__HIVE_DEFAULT_PARTITION__"),
        "{files}"
    );
}

#[test]
fn files_are_zstd_with_the_version_and_page_indexes() {
    use parquet::file::reader::FileReader;
    let (_dir, mut store) = new_store();
    put(&mut store, vec![stream("f", log("a", 1, 9) + "bad\n")]);
    for file in [store.event_files("s").unwrap(), store.quarantine_files("s").unwrap()].concat() {
        let reader = parquet::file::serialized_reader::SerializedFileReader::new(File::open(file).unwrap());
        let reader = reader.unwrap();
        let file = reader.metadata().file_metadata();
        let version = file.key_value_metadata().unwrap().iter().find(|k| k.key == "demi.schema");
        assert_eq!(version.unwrap().value.as_deref(), Some("demi-tables/3"));
        for column in reader.metadata().row_group(0).columns() {
            assert!(matches!(column.compression(), parquet::basic::Compression::ZSTD(_)));
            assert!(column.column_index_offset().is_some(), "{}", column.column_path());
        }
    }
}

#[test]
fn loading_twice_adds_nothing() {
    let (dir, mut store) = new_store();
    let input = log("a", 1, 3000) + &log("b", 5, 9) + "garbage\n" + &log("a", 7, 8);
    let sources = || vec![stream("one", input.clone()), stream("two", log("b", 8, 20))];
    let report = put(&mut store, sources()).summary;
    assert_eq!((report.added, report.duplicates, report.quarantined), (3000 + 5 + 11, 2 + 2, 1));
    let version = store.version();
    let first = keys(&store, "s");
    for fresh in [false, true] {
        if fresh {
            store = Store::open(dir.path()).unwrap();
        }
        let again = put(&mut store, sources()).summary;
        assert_eq!((again.added, again.duplicates, again.quarantined), (0, report.lines - 1, 0));
        assert_eq!(again.already_quarantined, 1);
        assert_eq!(store.version(), version, "nothing was committed");
        let b = again.actors.iter().find(|a| a.actor == "b").unwrap();
        assert_eq!((b.first_seq, b.last_seq, b.events, b.missing), (5, 20, 16, 4));
        assert_eq!((b.gaps.clone(), b.duplicates), (vec![(1, 4)], 5 + 13));
    }
    assert_eq!(keys(&store, "s"), first);
    let expected: Vec<i64> = (1..=3000).collect();
    let a: Vec<i64> = first.iter().filter(|k| k.0 == "a").map(|k| k.2).collect();
    assert_eq!(a, expected, "rows keep the order of the input");
}

#[test]
fn a_conflict_is_quarantined_once_and_names_both_sides() {
    let (_dir, mut store) = new_store();
    put(&mut store, vec![stream("first.jsonl", log("a", 1, 4))]);
    let other = r#"{"actor":"a","seq":3,"kind":"stop"}"#;
    for (round, source) in [(0, "second.jsonl"), (1, "second.jsonl"), (2, "moved.jsonl")] {
        let summary = put(&mut store, vec![stream(source, format!("{other}\n{other}\n"))]).summary;
        assert_eq!((summary.added, summary.conflicts), (0, 2));
        assert_eq!(summary.quarantined, u64::from(round == 0));
        assert_eq!(summary.actors[0].conflicts, 2);
    }
    assert_eq!(quarantine(&store), [("conflict".to_owned(), 0, other.as_bytes().to_vec())]);
    let reason = texts(&rows(&store.quarantine_files("s").unwrap()), "reason").remove(0).unwrap();
    let offset = 2 * log("a", 1, 1).len();
    assert!(
        reason.contains("event a/3 ") && reason.contains(&format!("first.jsonl at byte {offset}")),
        "{reason}"
    );
    assert_eq!(keys(&store, "s").len(), 4, "the first one stays");
}

#[test]
fn bad_lines_go_to_quarantine_with_their_place_and_stop_nothing() {
    let (_dir, mut store) = new_store();
    let good = log("a", 1, 1);
    let bad: [(&[u8], &str); 9] = [
        (b"\xff\xfe{}", "not_utf8"),
        (br#"{"actor":"a","seq":-4,"kind":"start"}"#, "rule"),
        (br#"{"actor":"a","seq":0,"kind":"start"}"#, "rule"),
        (br#"{"actor":"a","seq":2,"kind":"sned"}"#, "unknown_kind"),
        (br#"{"actor":"a","seq":2,"kind":"start""#, "not_json"),
        (br#"{"actor":"a","seq":2,"kind":"start","system":"other"}"#, "rule"),
        (br#"{"actor":"a","seq":2,"kind":"start","incarnation":3000000000}"#, "rule"),
        (b"\0\0\0", "not_json"),
        (b"[1,2]", "not_json"),
    ];
    let mut input = good.clone().into_bytes();
    let mut expected = Vec::new();
    for (line, code) in bad {
        expected.push((code.to_owned(), input.len() as i64, line.to_vec()));
        input.extend_from_slice(line);
        input.extend_from_slice(b"\n");
    }
    input.extend_from_slice(log("a", 2, 2).as_bytes());
    let summary = put(&mut store, vec![stream("f", input)]).summary;
    assert_eq!((summary.added, summary.lines, summary.quarantined), (2, 11, 9));
    let codes: BTreeMap<String, u64> = [("not_json", 3), ("not_utf8", 1), ("rule", 4), ("unknown_kind", 1)]
        .map(|(c, n)| (c.to_owned(), n))
        .into();
    assert_eq!(summary.quarantine_reasons, codes);
    assert_eq!(quarantine(&store), expected);
    let found = rows(&store.quarantine_files("s").unwrap());
    assert_eq!(longs(&found, "line"), (2..=10).collect::<Vec<_>>());
    let reasons = texts(&found, "reason");
    assert!(reasons[5].as_ref().unwrap().contains("'other'"), "{reasons:?}");
}

#[test]
fn an_overlong_line_is_cut_and_reading_goes_on() {
    let (_dir, mut store) = new_store();
    let long = vec![b'x'; 300_000];
    let input = [log("a", 1, 1).as_bytes(), &long, b"\n", log("a", 2, 2).as_bytes()].concat();
    let mut options = LoadOptions::new("s");
    options.max_line_bytes = 100_000;
    for added in [2, 0] {
        let sources = Sources(vec![stream("f", input.clone())]);
        let summary = load(&mut store, sources, &options, |_| {}).unwrap().summary;
        assert_eq!((summary.added, summary.lines), (added, 3));
    }
    let found = quarantine(&store);
    assert_eq!((found.len(), found[0].0.as_str(), found[0].2.len()), (1, "too_long", 64 * 1024));
    let length = longs(&rows(&store.quarantine_files("s").unwrap()), "raw_length");
    assert_eq!(length, [300_000]);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_cut_off_archive_gives_what_came_before_and_says_so() {
    let text = log("a", 1, 50_000);
    let whole = zstd::encode_all(text.as_bytes(), 3).unwrap();
    for (name, packed) in [("f.zst", whole), ("f.gz", gzip(text.as_bytes()))] {
        let (_dir, mut store) = new_store();
        let cut = packed[..packed.len() * 2 / 3].to_vec();
        for round in 0..2 {
            let report = put(&mut store, vec![stream(name, cut.clone()), stream("g", log("b", 1, 5))]);
            let a = report.summary.actors.iter().find(|a| a.actor == "a").unwrap();
            assert!(a.events > 0 && a.events < 50_000 && a.missing == 0, "{a:?}");
            assert_eq!(report.summary.actors.iter().find(|a| a.actor == "b").unwrap().events, 5);
            assert_eq!(report.damaged.len(), 1);
            assert_eq!(report.damaged[0].source_name, name);
            assert_eq!(report.summary.quarantined, u64::from(round == 0));
        }
        let found = quarantine(&store);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "truncated"));
        let before = keys(&store, "s").len() - 5;
        let offset = log("a", 1, before as u64).len();
        assert_eq!(found[0].1, offset as i64, "the entry begins where the last record ended");
        let report = put(&mut store, vec![stream(name, packed)]);
        assert_eq!(report.summary.added, 50_000 - before as u64, "the whole file brings the rest");
    }
}

#[test]
fn a_killed_load_can_be_run_again() {
    let (dir, mut store) = new_store();
    let garbage: String = (0..50).map(|n| format!("garbage {n}\n")).collect();
    let other = "{\"actor\":\"a\",\"seq\":7,\"kind\":\"stop\"}\n";
    let input = log("a", 1, 5000) + other + &garbage + &log("b", 1, 6000) + &garbage;
    let sources = || Sources(vec![stream("f", input.clone())]);
    let mut options = LoadOptions::new("s");
    options.commit_rows = 3000;
    options.stop_after_commits = Some(2);
    let error = load(&mut store, sources(), &options, |_| {}).unwrap_err();
    assert!(matches!(error, StoreError::Stopped { commits: 2 }));
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(keys(&store, "s").len(), 6000);
    options.stop_after_commits = None;
    let summary = load(&mut store, sources(), &options, |_| {}).unwrap().summary;
    assert_eq!((summary.added, summary.duplicates, summary.conflicts), (5000, 6000, 1));
    assert_eq!(summary.quarantined + summary.already_quarantined, 101);
    let mut expected: Vec<_> = (1..=5000).map(|n| ("a".to_owned(), 0, n)).collect();
    expected.extend((1..=6000).map(|n| ("b".to_owned(), 0, n)));
    assert_eq!(keys(&store, "s"), expected, "order holds across commits");
    assert_eq!(quarantine(&store).len(), 101);
}

#[test]
fn the_one_that_was_stored_first_stays_across_loads() {
    let (_dir, mut store) = new_store();
    put(&mut store, vec![stream("f", log("a", 1, 2000))]);
    // Out of order, with gaps, and against a store that was not in order either.
    let backwards: String = (2001..=4000).rev().map(|n| log("a", n, n)).collect();
    put(&mut store, vec![stream("g", backwards.clone())]);
    let changed = backwards.replace("\"kind\":\"start\",\"n\":2500}", "\"kind\":\"stop\",\"n\":2500}");
    let summary = put(&mut store, vec![stream("h", changed)]).summary;
    assert_eq!((summary.added, summary.duplicates, summary.conflicts), (0, 1999, 1));
}

#[test]
fn systems_of_any_name_stay_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let mut store = Store::create(&root).unwrap();
    let names = [
        "plain",
        "../../up",
        "..",
        "a/b",
        "a b",
        "k=v",
        "50%",
        "%2F",
        "système-β",
        "a:b?*|\"<>",
        "/abs",
        "-",
    ];
    for (n, name) in names.iter().enumerate() {
        let sources = Sources(vec![stream("f", log("a", 1, n as u64 + 1))]);
        load(&mut store, sources, &LoadOptions::new(*name), |_| {}).unwrap();
    }
    let mut sorted: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    sorted.sort();
    let store = Store::open(&root).unwrap();
    assert_eq!(store.systems().unwrap(), sorted);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(keys(&store, name).len(), n + 1, "{name}");
        for file in store.event_files(name).unwrap() {
            let below =
                file.path().strip_prefix(root.canonicalize().unwrap().join("events")).unwrap().to_owned();
            assert_eq!(below.components().count(), 3, "{below:?}");
        }
    }
    let outside: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(outside, ["store"]);
    for bad in ["", "a\nb"] {
        let mut store = Store::open(&root).unwrap();
        let error = load(&mut store, Sources(vec![]), &LoadOptions::new(bad), |_| {}).unwrap_err();
        assert!(matches!(error, StoreError::SystemName { .. }));
    }
    let error = store.event_files("nope").unwrap_err();
    assert!(matches!(error, StoreError::UnknownSystem { known, .. } if known == sorted));
}

#[test]
fn many_dates_are_written_a_few_at_a_time() {
    let (_dir, mut store) = new_store();
    let line =
        |n: u64| format!("{{\"actor\":\"a\",\"seq\":{n},\"kind\":\"start\",\"time\":{}}}\n", n * 86_400);
    let input: String = (1..=60).map(line).collect();
    let summary = put(&mut store, vec![stream("f", input)]).summary;
    assert_eq!(summary.added, 60);
    assert_eq!(store.event_files("s").unwrap().len(), 60);
    let seqs: Vec<i64> = keys(&store, "s").into_iter().map(|k| k.2).collect();
    assert_eq!(seqs, (1..=60).collect::<Vec<_>>(), "earlier commits first");
}

#[test]
fn files_and_folders_load_by_name() {
    let (_dir, mut store) = new_store();
    let logs = tempfile::tempdir().unwrap();
    let put_file = |name: &str, bytes: &[u8]| fs::write(logs.path().join(name), bytes).unwrap();
    put_file("b.jsonl", log("b", 1, 3).as_bytes());
    put_file("a.log.gz", &[gzip(log("a", 1, 2).as_bytes()), gzip(log("a", 3, 4).as_bytes())].concat());
    put_file("c.json", &zstd::encode_all(log("c", 1, 2).as_bytes(), 1).unwrap());
    let sources = Sources::plan(&[path_text(logs.path())]).unwrap();
    let summary = load(&mut store, sources, &LoadOptions::new("s"), |_| {}).unwrap().summary;
    assert_eq!((summary.sources, summary.added, summary.quarantined), (3, 9, 0));
    let order: Vec<String> = keys(&store, "s").into_iter().map(|k| k.0).collect();
    assert_eq!(order.concat(), "aaaabbbcc");
}

fn path_text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
