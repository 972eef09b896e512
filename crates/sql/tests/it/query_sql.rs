//! SQL over executions against the closure of the partial order, computed here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use demi_order::generate::{Generator, Mix, write_store_file};
use demi_order::query::Query;
use demi_order::{BuildOptions, ViolationSpec, build};
use demi_schemas::EventRecord;
use demi_sql::{OutputFormat, write};

struct Case {
    _dir: tempfile::TempDir,
    exec: PathBuf,
}

fn mix(environment: f64) -> Mix {
    Mix {
        seed: 7,
        actors: 5,
        events: 400,
        ids: 1.0,
        loss: 0.05,
        duplicate: 0.02,
        restart: 0.01,
        forward: 0.0,
        timer: 0.1,
        environment,
        thread: 0.0,
        in_order: true,
        contents: 4,
        ..Mix::default()
    }
}

fn case(environment: f64) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<EventRecord> = Generator::new(&mix(environment)).map(|g| g.record).collect();
    let file = dir.path().join("store.parquet");
    write_store_file(&file, records).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    Case { _dir: dir, exec }
}

fn jsonl(query: &Query, sql: &str) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    write(&mut crate::select(&query, sql).unwrap(), OutputFormat::JsonLines, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn names(query: &Query, sql: &str) -> BTreeSet<String> {
    jsonl(query, sql).iter().map(|row| row["event"].as_str().unwrap().to_owned()).collect()
}

/// The closure, from the tables: order in a log, but for the environment, and messages.
fn closure(query: &Query) -> BTreeMap<String, BTreeSet<String>> {
    let mut causes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for row in jsonl(query, "SELECT event, actor FROM events ORDER BY actor, incarnation, seq") {
        let (event, actor) = (row["event"].as_str().unwrap(), row["actor"].as_str().unwrap());
        let own = causes.entry(event.to_owned()).or_default();
        if actor != "_environment" {
            own.extend(last.insert(actor.to_owned(), event.to_owned()));
        }
    }
    for row in jsonl(query, "SELECT send, receive FROM messages WHERE status = 'matched'") {
        let (send, receive) = (row["send"].as_str().unwrap(), row["receive"].as_str().unwrap());
        causes.get_mut(receive).unwrap().insert(send.to_owned());
    }
    // Every cause stands earlier in a linear extension, which the closure of the causes is checked to be.
    let mut past: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in jsonl(query, "SELECT event FROM events ORDER BY \"order\"") {
        let event = row["event"].as_str().unwrap();
        let mut all = BTreeSet::new();
        for cause in &causes[event] {
            all.extend(past[cause].iter().cloned());
            all.insert(cause.clone());
        }
        past.insert(event.to_owned(), all);
    }
    past
}

fn open(exec: &Path) -> Query {
    Query::open(exec, false).unwrap()
}

#[test]
fn causal_tables_hold_what_the_closure_says() {
    for environment in [0.0, 0.1] {
        let case = case(environment);
        let query = open(&case.exec);
        let past = closure(&query);
        let all: BTreeSet<&String> = past.keys().collect();
        for (i, event) in past.keys().enumerate().filter(|(i, _)| i % 45 == 0) {
            let mut expected = past[event].clone();
            expected.insert(event.clone());
            assert_eq!(names(&query, &format!("SELECT event FROM past('{event}')")), expected);
            let mut after: BTreeSet<String> =
                past.iter().filter(|(_, p)| p.contains(event)).map(|(e, _)| e.clone()).collect();
            after.insert(event.clone());
            assert_eq!(names(&query, &format!("SELECT event FROM future('{event}')")), after);
            let rest: BTreeSet<String> = all
                .iter()
                .filter(|e| !expected.contains(**e) && !after.contains(**e))
                .map(|e| (*e).clone())
                .collect();
            assert_eq!(names(&query, &format!("SELECT event FROM concurrent('{event}')")), rest);
            let other = past.keys().nth((i * 31 + 11) % past.len()).unwrap();
            let mut until = past[other].clone();
            until.insert(other.clone());
            let between: BTreeSet<String> = after.intersection(&until).cloned().collect();
            assert_eq!(names(&query, &format!("SELECT event FROM between('{event}', '{other}')")), between);
            let cut: BTreeSet<String> = expected.union(&until).cloned().collect();
            assert_eq!(names(&query, &format!("SELECT event FROM cut('{event}', '{other}')")), cut);
            let count = jsonl(&query, &format!("SELECT count(*) AS n FROM past('{event}')"));
            assert_eq!(count[0]["n"], expected.len() as u64);
        }
    }
}

#[test]
fn tables_compose() {
    let case = case(0.05);
    let query = open(&case.exec);
    let some =
        jsonl(&query, "SELECT event FROM events WHERE kind = 'receive' ORDER BY \"order\" DESC LIMIT 1");
    let event = some[0]["event"].as_str().unwrap();
    let joined = jsonl(
        &query,
        &format!(
            "SELECT m.type AS type, count(*) AS n FROM messages m JOIN past('{event}') p ON m.receive = p.event GROUP BY m.type"
        ),
    );
    let total: u64 = joined.iter().map(|row| row["n"].as_u64().unwrap()).sum();
    let listed = names(
        &query,
        &format!(
            "SELECT event FROM past('{event}') WHERE event IN (SELECT receive FROM messages WHERE status = 'matched')"
        ),
    );
    assert!(total >= listed.len() as u64 && !listed.is_empty(), "{total} {}", listed.len());
    let actors = jsonl(&query, "SELECT sum(events) AS n FROM actors");
    assert_eq!(actors[0]["n"], jsonl(&query, "SELECT count(*) AS n FROM events")[0]["n"]);
    let channel = jsonl(&query, "SELECT * FROM channel('actor-00000', 'actor-00001')");
    assert!(channel.iter().all(|row| row["to"] == "actor-00001"), "{channel:?}");
}

#[test]
fn a_cut_by_time_is_consistent_and_has_nothing_later() {
    let case = case(0.05);
    let query = open(&case.exec);
    let past = closure(&query);
    let times = jsonl(&query, "SELECT event, time FROM events WHERE time IS NOT NULL ORDER BY time");
    if times.is_empty() {
        return;
    }
    let limit = times[times.len() / 2]["time"].as_str().unwrap().to_owned();
    let cut = names(&query, &format!("SELECT event FROM cut('{limit}')"));
    let later: BTreeSet<&str> = times
        .iter()
        .filter(|row| row["time"].as_str().unwrap() > limit.as_str())
        .map(|row| row["event"].as_str().unwrap())
        .collect();
    assert!(cut.iter().all(|e| !later.contains(e.as_str())));
    assert!(cut.iter().all(|e| past[e].iter().all(|p| cut.contains(p))));
}

#[test]
fn every_format_reads_back() {
    use polars::prelude::*;
    let case = case(0.0);
    let query = open(&case.exec);
    let mut frame =
        crate::select(&query, "SELECT event, seq, external FROM events ORDER BY event LIMIT 50").unwrap();
    let mut bytes = |format| {
        let mut out = Vec::new();
        write(&mut frame, format, &mut out).unwrap();
        out
    };
    let (parquet, arrow, csv) =
        (bytes(OutputFormat::Parquet), bytes(OutputFormat::Arrow), bytes(OutputFormat::Csv));
    let table = String::from_utf8(bytes(OutputFormat::Table)).unwrap();
    assert_eq!(table.lines().count(), 51);
    assert_eq!(ParquetReader::new(std::io::Cursor::new(parquet)).finish().unwrap(), frame);
    assert_eq!(IpcReader::new(std::io::Cursor::new(arrow)).finish().unwrap(), frame);
    assert_eq!(String::from_utf8(csv).unwrap().lines().count(), 51);
}

#[test]
fn what_cannot_be_answered_is_said() {
    let case = case(0.0);
    let query = open(&case.exec);
    for (sql, why) in [
        ("SELECT nothing FROM events", "nothing"),
        ("SELECT * FROM past('nobody/1')", "nobody"),
        ("SELECT * FROM past('actor-00000/99999999')", "actor-00000"),
        ("SELECT * FROM channel('a', 'b')", "'a'"),
        ("DELETE FROM", "no SQL"),
    ] {
        let error = crate::select(&query, sql).unwrap_err().to_string();
        assert!(error.contains(why), "{sql}: {error}");
    }
}
