//! Which damage a question meets: that of what it reads, and no other.

use std::path::{Path, PathBuf};

use demi_common::sealed::DAMAGED;
use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::Query;
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_sql::{OutputFormat, write};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rand::{RngCore, SeedableRng};

const EVENTS: u64 = 20_000;

/// An execution with payloads that nothing compresses, and its table of events: rows of a store that it refers to, or a copy.
fn case(copy: bool) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let mix = Mix { seed: 3, actors: 4, events: EVENTS, ids: 1.0, in_order: true, ..Mix::default() };
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
    let records = Generator::new(&mix).map(|generated| {
        let mut record = generated.record;
        let text = (0..16).map(|_| format!("{:016x}", random.next_u64())).collect::<String>();
        record.attrs.insert("random".into(), text.into());
        record
    });
    let mut records: Vec<_> = records.collect();
    records.sort_by_key(|r| (r.actor.clone(), r.incarnation, r.seq));
    let file = dir.path().join("store.parquet");
    write_store_file(&file, records).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, copy, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    let table = exec.join(if copy { "events.parquet" } else { "rows/0.parquet" });
    (dir, exec, table)
}

/// Where a column stands in a table: begin and length.
fn chunk(table: &Path, name: &str) -> (u64, u64) {
    let reader = SerializedFileReader::new(std::fs::File::open(table).unwrap()).unwrap();
    let group = reader.metadata().row_group(0);
    let column = group.columns().iter().find(|c| c.column_path().string() == name).unwrap();
    column.byte_range()
}

/// Changes one byte of a file.
fn flip(table: &Path, at: u64) {
    let mut bytes = std::fs::read(table).unwrap();
    bytes[at as usize] ^= 1;
    // The store's own file has the same content under its first name; what refers to it has a file of its own from here on.
    std::fs::remove_file(table).unwrap();
    std::fs::write(table, bytes).unwrap();
}

fn ask(exec: &Path, sql: &str) -> Result<String, String> {
    let query = Query::open(exec, false).map_err(|error| error.to_string())?;
    let mut frame = crate::select(&query, sql).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    write(&mut frame, OutputFormat::JsonLines, &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn a_question_meets_the_damage_of_what_it_reads_alone() {
    // A referred execution of a store file without digests has none to compare with.
    let (_dir, exec, table) = case(true);
    let (begin, length) = chunk(&table, "attrs");
    assert!(length > 2 << 20, "{length} bytes");
    let first = ask(&exec, "SELECT event FROM events ORDER BY \"order\" LIMIT 1").unwrap();
    let first =
        serde_json::from_str::<serde_json::Value>(&first).unwrap()["event"].as_str().unwrap().to_owned();
    let own = format!("SELECT event, attrs FROM past('{first}')");
    let whole = ask(&exec, &own).unwrap();
    assert_eq!(whole.lines().count(), 1);
    let count = "SELECT count(*) AS n FROM events";
    let counted = ask(&exec, count).unwrap();
    flip(&table, begin + length / 2);

    assert_eq!(ask(&exec, count).unwrap(), counted);
    let actors = "SELECT actor, count(*) AS n FROM events GROUP BY actor";
    assert!(ask(&exec, actors).unwrap().lines().count() > 3);
    assert_eq!(ask(&exec, &own).unwrap(), whole, "its rows stand in other stretches");
    for reads in [
        "SELECT max(attrs) AS last FROM events",
        "SELECT actor FROM events WHERE attrs = 'x'",
        "SELECT a.actor FROM events a JOIN events b ON a.attrs = b.attrs WHERE a.seq = 1",
        "SELECT count(*) AS n FROM (SELECT DISTINCT attrs FROM events)",
        "WITH t AS (SELECT * FROM events) SELECT count(*) AS n FROM t WHERE attrs LIKE '%00%'",
        "SELECT actor FROM events WHERE seq IN (SELECT seq FROM events WHERE attrs = 'x')",
        "SELECT attrs FROM events UNION ALL SELECT attrs FROM events",
        "SELECT * FROM events",
    ] {
        let told = ask(&exec, reads).expect_err(reads);
        assert!(told.contains(DAMAGED), "{reads}: {told}");
    }
}

#[test]
fn a_few_events_are_read_in_their_order_however_they_are_stored() {
    let (_dir, copied, _) = case(true);
    let (_other, referred, _) = case(false);
    for sql in [
        "SELECT * FROM past('a/500')",
        "SELECT count(*) AS n FROM past('a/500')",
        "SELECT seq FROM past('a/500') LIMIT 7",
        "SELECT event, reason, kept FROM between('a/1', 'a/500')",
        "SELECT event FROM past('a/500') WHERE actor <> 'a' AND depth > 3",
    ] {
        let actor = ask(&copied, "SELECT actor FROM actors ORDER BY events DESC LIMIT 1").unwrap();
        let actor =
            serde_json::from_str::<serde_json::Value>(&actor).unwrap()["actor"].as_str().unwrap().to_owned();
        let sql = sql.replace("'a/", &format!("'{actor}/")).replace("'a'", &format!("'{actor}'"));
        let answer = ask(&copied, &sql).unwrap();
        assert!(!answer.is_empty(), "{sql}");
        assert_eq!(answer, ask(&referred, &sql).unwrap(), "{sql}");
    }
}
