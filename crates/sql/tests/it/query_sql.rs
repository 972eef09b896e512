//! SQL over executions against the closure of the partial order, computed here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::Query;
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::{EventRecord, Kind};
use demi_sql::{Around, OutputFormat, write};

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
    build_case(Generator::new(&mix(environment)).map(|g| g.record).collect())
}

fn build_case(records: Vec<EventRecord>) -> Case {
    build_with(records, false)
}

fn build_with(records: Vec<EventRecord>, copy: bool) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.parquet");
    write_store_file(&file, records).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, copy, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    Case { _dir: dir, exec }
}

fn jsonl(query: &Query, sql: &str) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    write(&mut crate::select(query, sql).unwrap(), OutputFormat::JsonLines, &mut out).unwrap();
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

/// Events with stamps of clocks that differ, some absent and some that cannot be read, in a system with an environment.
fn stamped(seed: u64, known: u64) -> Case {
    let mix = Mix { seed, events: 120, ..mix(0.2) };
    let mut records: Vec<EventRecord> = Generator::new(&mix).map(|g| g.record).collect();
    for (place, record) in records.iter_mut().enumerate() {
        let skew = record.actor.bytes().map(u64::from).sum::<u64>() % 7 * 5;
        let second = place as u64 + skew;
        record.time = match (place as u64 * 31 + seed) % 10 {
            n if n < known => Some(format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60).into()),
            n if n % 2 == 0 => Some(format!("half past/{second}").into()),
            _ => None,
        };
    }
    build_case(records)
}

#[test]
fn a_cut_by_time_has_what_is_not_later_and_what_that_rests_on() {
    let (mut with, mut without) = (0, 0);
    for (seed, known) in [(1, 10), (2, 8), (3, 5), (4, 2), (5, 0)] {
        let case = stamped(seed, known);
        let query = open(&case.exec);
        let past = closure(&query);
        let time = |row: &serde_json::Value| row["time"].as_str().map(str::to_owned);
        let times: BTreeMap<String, Option<String>> = jsonl(&query, "SELECT event, time FROM events")
            .iter()
            .map(|row| (row["event"].as_str().unwrap().to_owned(), time(row)))
            .collect();
        for limit in
            ["2025-12-31T00:00:00Z", "2026-01-01T00:00:30Z", "2026-01-01T00:01:10Z", "2027-01-01T00:00:00Z"]
        {
            let is = |event: &String, wanted: bool| {
                times[event].as_deref().is_some_and(|t| t.contains('T') && (t > limit) == wanted)
            };
            let allowed = |e: &String| !is(e, true) && past[e].iter().all(|p| !is(p, true));
            let mut expected: BTreeSet<String> = BTreeSet::new();
            for event in past.keys().filter(|e| is(e, false) && allowed(e)) {
                expected.insert(event.clone());
                expected.extend(past[event].iter().cloned());
            }
            let sql = format!("SELECT event FROM cut('{limit}')");
            assert_eq!(names(&query, &sql), expected, "{seed}: {limit}");
            with += expected.iter().filter(|e| times[*e].is_none()).count();
            without += times.iter().filter(|(e, t)| t.is_none() && !expected.contains(*e)).count();
            let notes = demi_sql::select(&query, &sql, &Around::default()).unwrap().notes;
            let absent = times.values().filter(|t| t.is_none()).count();
            let unread = times.values().flatten().filter(|t| t.contains('/')).count();
            let note = notes.join("\n");
            assert_eq!(note.contains(&format!("{absent} events have no time")), absent > 0, "{note}");
            assert_eq!(
                note.contains(&format!("{unread} events have a time that cannot be read")),
                unread > 0,
                "{note}"
            );
        }
    }
    assert!(with > 10 && without > 10, "events without a time are inside {with} times, outside {without}");
}

/// Sets of more stretches than are scanned one by one.
#[test]
fn sets_of_many_stretches_are_those_of_the_closure() {
    let mut records = Vec::new();
    for i in 0..1400_u64 {
        let to = if i % 2 == 0 { "a" } else { "b" };
        for (actor, kind, seq) in [("_environment", Kind::Send, i + 1), (to, Kind::Receive, i / 2 + 1)] {
            let mut record = EventRecord::new(actor, seq, kind);
            record.msg_id = Some(i.to_string());
            (record.from, record.to) = (Some("deadLetters".into()), Some(to.into()));
            records.push(record);
        }
    }
    for copy in [true, false] {
        let case = build_with(records.clone(), copy);
        let query = open(&case.exec);
        let even = |n: u64| (0..n).map(|i| format!("_environment/{}", 2 * i + 1)).collect::<BTreeSet<_>>();
        let mut expected = even(700);
        expected.extend((1..=700).map(|seq| format!("a/{seq}")));
        assert_eq!(names(&query, "SELECT event FROM past('a/700')"), expected);
        let mut expected = even(10);
        expected.extend((1..=10).map(|seq| format!("a/{seq}")));
        assert_eq!(names(&query, "SELECT event FROM past('a/10')"), expected);
        let rows = jsonl(&query, "SELECT count(*) AS n, sum(seq) AS s FROM concurrent('a/700')");
        // The other half: what b received, and what was sent to it.
        assert_eq!(rows[0]["n"], 1400);
        assert_eq!(rows[0]["s"], (1..=700_u64).map(|i| i + 2 * i).sum::<u64>());
    }
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
