//! What is deleted is gone for good, is not missing, and does not come back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::kill::daemon::Daemon;
use crate::support::run::{demi, output};
use assert_cmd::Command;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// A record of an actor on a day of January, or of none.
fn line(actor: &str, seq: u64, day: Option<u32>) -> String {
    let mut record =
        json!({ "actor": actor, "seq": seq, "kind": "start", "payload": format!("{actor} says {seq}") });
    if let Some(day) = day {
        record["time"] = format!("2026-01-{day:02}T12:00:00Z").into();
    }
    format!("{record}\n")
}

/// Actor, events, missing ones, first and last sequence number.
fn complete(store: &str, system: &str) -> Vec<(String, u64, u64, u64, u64)> {
    let (code, told, _) = output(&["ingest", "status", "--store", store, "--system", system, "--json"]);
    if code != 0 {
        return Vec::new();
    }
    let status: Value = serde_json::from_str(&told).unwrap();
    let row = |row: &Value| {
        let number = |name: &str| row[name].as_u64().unwrap();
        let actor = row["actor"].as_str().unwrap().to_owned();
        (actor, number("events"), number("missing"), number("first_seq"), number("last_seq"))
    };
    status["completeness"].as_array().unwrap().iter().map(row).collect()
}

/// All bytes of the data files of a store.
fn bytes_of(folder: &Path, all: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true if path.ends_with("_delta_log") => {}
            true => bytes_of(&path, all),
            false => all.extend(fs::read(&path).unwrap()),
        }
    }
}

#[test]
fn any_deletion_leaves_the_rest_and_stays() {
    let actors = prop::sample::select(vec!["a", "b", "c"]);
    let day = prop::option::weighted(0.9, 1..20_u32);
    let events = prop::collection::vec((actors.clone(), 1..30_u64, day), 1..60);
    let deletions = prop::collection::vec((prop::option::of(actors), prop::option::of(1..20_u32)), 1..4);
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    let check = |events: Vec<(&str, u64, Option<u32>)>, deletions: Vec<(Option<&str>, Option<u32>)>| {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut there: Vec<(&str, u64, Option<u32>)> = Vec::new();
        for event in events {
            if !there.iter().any(|e| (e.0, e.1) == (event.0, event.1)) {
                there.push(event);
            }
        }
        let log: String = there.iter().map(|e| line(e.0, e.1, e.2)).collect();
        fs::write(at("log.jsonl"), log).unwrap();
        let load = ["ingest", "load", "--store", &at("store"), "--system", "s", &at("log.jsonl"), "--json"];
        demi(&load);
        let known = there.clone();
        let all: BTreeSet<(&str, u64)> = there.iter().map(|e| (e.0, e.1)).collect();
        for (actor, before) in deletions {
            if there.is_empty() || (actor.is_none() && before.is_none()) {
                continue;
            }
            let goes = |e: &(&str, u64, Option<u32>)| {
                let day = before.is_none_or(|before| e.2.is_some_and(|day| day < before));
                actor.is_none_or(|actor| e.0 == actor) && day
            };
            let mut arguments = vec!["ingest", "delete", "--store"];
            let (store, day) = (at("store"), format!("2026-01-{:02}", before.unwrap_or(1)));
            arguments.extend([store.as_str(), "--system", "s", "--json"]);
            actor.into_iter().for_each(|actor| arguments.extend(["--actor", actor]));
            before.into_iter().for_each(|_| arguments.extend(["--before", day.as_str()]));
            let done = demi(&arguments);
            let gone = there.iter().filter(|e| goes(e)).count() as u64;
            there.retain(|e| !goes(e));
            assert_eq!((&done[0]["events"], &done[0]["kept"]), (&gone.into(), &(there.len() as u64).into()));
        }
        // What is missing is what never was.
        let expected = |actor: &str| {
            let seqs: Vec<u64> = there.iter().filter(|e| e.0 == actor).map(|e| e.1).collect();
            let last = known.iter().filter(|e| e.0 == actor).map(|e| e.1).max()?;
            let missing = (1..=last).filter(|seq| !all.contains(&(actor, *seq))).count() as u64;
            let (first, last) = (seqs.iter().min()?, seqs.iter().max()?);
            Some((actor.to_owned(), seqs.len() as u64, missing, *first, *last))
        };
        let expected: Vec<_> = ["a", "b", "c"].into_iter().filter_map(expected).collect();
        assert_eq!(complete(&at("store"), "s"), expected);
        assert_eq!(demi(&load)["added"], 0, "what was deleted came back");
        assert_eq!(complete(&at("store"), "s"), expected);
    };
    TestRunner::new(config)
        .run(&(events, deletions), |(events, deletions)| {
            check(events, deletions);
            Ok(())
        })
        .unwrap();
}

/// Where nothing is left of a system, a log of it is looked through like any other, also one whose numbers run backwards.
#[test]
fn a_log_of_what_was_deleted_can_be_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("log.jsonl"), line("c", 12, Some(1)) + &line("c", 1, Some(1))).unwrap();
    let load = ["ingest", "load", "--store", &at("store"), "--system", "s", &at("log.jsonl"), "--json"];
    assert_eq!(demi(&load)["added"], 2);
    let delete = ["ingest", "delete", "--store", &at("store"), "--system", "s", "--actor", "c", "--json"];
    assert_eq!(demi(&delete)[0]["events"], 2);
    let again = demi(&load);
    assert_eq!((&again["added"], &again["deleted"]), (&0.into(), &2.into()));
}

/// What was deleted is not called missing by questions of the store, and by what is built of it; what is missing is.
#[test]
fn what_was_deleted_is_not_missing_in_answers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let log = [line("c", 1, None), line("c", 2, Some(1)), line("c", 3, Some(20)), line("d", 2, Some(20))];
    fs::write(at("log.jsonl"), log.concat()).unwrap();
    demi(&["ingest", "load", "--store", &at("store"), "--system", "s", &at("log.jsonl"), "--json"]);
    let delete =
        ["ingest", "delete", "--store", &at("store"), "--system", "s", "--before", "2026-01-10", "--json"];
    assert_eq!(demi(&delete)[0]["events"], 1);
    let warned = |args: &[&str]| {
        let output = Command::cargo_bin("demi-lineage").unwrap().args(args).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let store = at("store");
    let query = ["query", &store, "past", "c/3"];
    let told = warned(&query);
    assert!(told.contains("(d: 1)") && !told.contains("c: 1"), "{told}");
    let told = warned(&["build", "--store", &store, "--violation", "none", "--out", &at("exec")]);
    assert!(told.contains("(d: 1)") && !told.contains("c: 1"), "{told}");
    let remove = ["ingest", "delete", "--store", &store, "--system", "s", "--actor", "d", "--json"];
    demi(&remove);
    assert_eq!(output(&["query", &store, "--refuse-incomplete", "past", "c/3"]).0, 0, "nothing is missing");
}

#[test]
fn nothing_of_a_deleted_actor_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let mut log = String::new();
    (1..=50).for_each(|seq| log += &(line("ada", seq, Some(3)) + &line("bob", seq, None)));
    log += &line("ada", 7, None).replace("says", "denies");
    log += "no record\n";
    fs::write(at("log.jsonl"), log).unwrap();
    demi(&["ingest", "load", "--store", &at("store"), "--system", "s", &at("log.jsonl"), "--json"]);
    let says = |who: &str| {
        let mut bytes = Vec::new();
        bytes_of(&folder.path().join("store/events"), &mut bytes);
        bytes_of(&folder.path().join("store/quarantine"), &mut bytes);
        bytes.windows(who.len()).any(|window| window == who.as_bytes())
    };
    assert!(says("ada") && says("bob"));
    // What a question made holds a copy.
    assert_eq!(output(&["query", &at("store"), "past", "bob/50"]).0, 0);
    let copies = || fs::read_dir(folder.path().join("store/orders")).unwrap().count();
    assert_eq!(copies(), 1);
    let done =
        demi(&["ingest", "delete", "--store", &at("store"), "--system", "s", "--actor", "ada", "--json"]);
    let expected = json!([{ "system": "s", "events": 50, "kept": 50, "quarantined": 1, "quarantined_kept": 1, "spooled": 0,
            "removed": [], "incidents": [], "left": [] }]);
    assert_eq!(done, expected);
    assert!(!says("ada") && says("bob"));
    assert_eq!(copies(), 0);
    assert_eq!(output(&["query", &at("store"), "past", "bob/50"]).0, 0);
    assert_eq!(output(&["query", &at("store"), "past", "ada/50"]).0, 2);
    let (code, _, error) =
        output(&["ingest", "delete", "--store", &at("store"), "--system", "t", "--actor", "a"]);
    assert!(code == 2 && error.contains("'s'"), "{error}");
    assert_eq!(output(&["ingest", "delete", "--store", &at("store"), "--system", "s"]).0, 2);
    assert_eq!(output(&["ingest", "delete", "--store", &at("store"), "--actor", "bob"]).0, 2);
    // Before a day, of all systems.
    fs::write(at("more.jsonl"), line("c", 1, Some(2)) + &line("c", 2, Some(9))).unwrap();
    demi(&["ingest", "load", "--store", &at("store"), "--system", "t", &at("more.jsonl"), "--json"]);
    let done = demi(&["ingest", "delete", "--store", &at("store"), "--before", "2026-01-05", "--json"]);
    let counts: Vec<_> = done.as_array().unwrap().iter().map(|d| (&d["events"], &d["kept"])).collect();
    assert_eq!(counts, [(&json!(0), &json!(50)), (&json!(1), &json!(1))]);
    assert_eq!(complete(&at("store"), "t"), [("c".to_owned(), 1, 0, 2, 2)]);
}

#[test]
fn a_daemon_does_not_bring_back_what_was_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path().display();
    let config = format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*\"]\npoll_millis = 20\nscan_millis = 50\n"
    );
    fs::create_dir_all(folder.path().join("logs")).unwrap();
    let log: String = (1..=20).map(|seq| line("ada", seq, None) + &line("bob", seq, None)).collect();
    fs::write(folder.path().join("logs/1.jsonl"), &log).unwrap();
    let mut daemon = Daemon::with_config(folder.path(), &config);
    daemon.start();
    daemon.wait_for(40);
    let store = format!("{d}/store");
    let delete = ["ingest", "delete", "--store", &store, "--system", "s", "--actor", "ada", "--json"];
    let (code, _, error) = output(&delete);
    assert!(code == 2 && error.contains("another load or a daemon is writing"), "{error}");
    daemon.stop();
    assert_eq!(demi(&delete)[0]["events"], 20);
    let table = |store: &str| {
        let opened = demi_store::Store::open(store).unwrap();
        let rows = demi_store::completeness(&opened).unwrap();
        rows.into_iter().map(|row| (row.counts.actor, row.counts.events)).collect::<Vec<_>>()
    };
    assert_eq!(table(&store), [("bob".to_owned(), 20)], "the table of completeness is right at once");
    // The same lines under another name, and one that is new.
    fs::write(folder.path().join("logs/2.jsonl"), format!("{}{log}", line("bob", 21, None))).unwrap();
    daemon.start();
    daemon.wait_for(21);
    daemon.wait_until("all lines", || daemon.metric("demi_events_duplicate_total{system=\"s\"} ") >= 40);
    daemon.stop();
    assert_eq!(complete(&store, "s"), [("bob".to_owned(), 21, 0, 1, 21)]);
    assert_eq!(table(&store), [("bob".to_owned(), 21)]);
}

#[test]
fn a_running_daemon_deletes_what_is_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path().display();
    fs::create_dir(folder.path().join("logs")).unwrap();
    // Days of January are long over; what has no time is of no day, and what is of the year 2100 is not over yet.
    let mut log = String::new();
    for seq in 1..=10 {
        log.push_str(&line("ada", seq, Some(seq as u32)));
        log.push_str(&line("bob", seq, None));
        log.push_str(&line("cid", seq, Some(1)).replace("2026-01-01", "2100-01-01"));
    }
    fs::write(folder.path().join("logs/1.jsonl"), &log).unwrap();
    fs::create_dir(folder.path().join("others")).unwrap();
    fs::write(folder.path().join("others/1.jsonl"), line("eve", 1, Some(1))).unwrap();
    let config = |keep: &str| {
        format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n[daemon]\nlog = \"info\"\n\
             [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*.jsonl\"]\npoll_millis = 20\nscan_millis = 60\n\
             [sources.others]\ntype = \"files\"\nsystem = \"t\"\npaths = [\"{d}/others/*.jsonl\"]\npoll_millis = 20\nscan_millis = 60\n{keep}"
        )
    };
    let mut daemon = Daemon::with_config(folder.path(), &config(""));
    daemon.start();
    daemon.wait_for(30);
    daemon.wait_until("the other system", || daemon.metric("demi_events_written_total{system=\"t\"} ") >= 1);
    daemon.stop();
    let store = format!("{d}/store");
    assert_eq!(output(&["query", &store, "--system", "s", "--sql", "SELECT count(*) FROM events"]).0, 0);
    let order = folder.path().join("store/orders/s");
    assert!(order.is_dir());
    let mut daemon = Daemon::with_config(folder.path(), &config("[systems.s]\nkeep = \"30d\"\n"));
    daemon.start();
    daemon.wait_until("old events are gone", || {
        daemon.metric("demi_events_expired_total{system=\"s\"} ") >= 10
    });
    assert!(!order.exists(), "it has a copy of them");
    // The daemon goes on, and what comes again does not come back.
    let more = format!("{}{}{log}", line("ada", 11, None), line("bob", 11, None));
    fs::write(folder.path().join("logs/2.jsonl"), more).unwrap();
    daemon.wait_until("new events are there", || {
        daemon.metric("demi_events_written_total{system=\"s\"} ") >= 2
    });
    daemon.stop();
    let of = |actor: &str, events, first, last| (actor.to_owned(), events, 0, first, last);
    assert_eq!(complete(&store, "s"), [of("ada", 1, 11, 11), of("bob", 11, 1, 11), of("cid", 10, 1, 10)]);
    assert_eq!(complete(&store, "t"), [of("eve", 1, 1, 1)], "nothing says how long these are kept");
    for day in fs::read_dir(folder.path().join("store/events/system=s")).unwrap().map(Result::unwrap) {
        let over = day.file_name().to_string_lossy().starts_with("date=2026-01-");
        assert!(
            !over || fs::read_dir(day.path()).unwrap().next().is_none(),
            "files of a day that is over: {day:?}"
        );
    }
}

#[test]
fn how_long_events_are_kept_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path().display();
    fs::create_dir(folder.path().join("logs")).unwrap();
    let path = folder.path().join("demi.toml");
    for (keep, said) in [
        (
            "[systems.s]\nkeep = \"30 days\"",
            "keep must be days or weeks, as \"30d\" or \"12w\", got '30 days'",
        ),
        ("[systems.s]\nkeep = \"0d\"", "got '0d'"),
        ("[systems.s]\nkeep = \"\u{e9}\"", "got '\u{e9}'"),
        ("[systems.s]\nkep = \"1d\"", "unknown key 'kep': did you mean 'keep'?"),
        ("[systems.t]\nkeep = \"1d\"", "no source brings events of system 't'"),
    ] {
        let config = format!(
            "[store]\ndir = \"{d}/store\"\n[spool]\ndir = \"{d}/spool\"\n\
             [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*.jsonl\"]\n{keep}\n"
        );
        fs::write(&path, config).unwrap();
        let (code, _, error) = output(&["ingest", "validate", path.to_str().unwrap()]);
        assert!(code == 2 && error.contains(said), "{keep}: {error}");
    }
}
