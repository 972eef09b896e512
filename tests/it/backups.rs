//! Backups of stores, and what becomes of a daemon whose store is restored.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::support::kill::daemon::Daemon;
use crate::support::run::{demi, output};
use serde_json::{Value, json};

fn lines(actor: &str, seqs: std::ops::RangeInclusive<u64>) -> String {
    let line =
        |seq| json!({ "actor": actor, "seq": seq, "kind": "local", "payload": format!("{actor} {seq}") });
    seqs.map(|seq| format!("{}\n", line(seq))).collect()
}

/// A daemon that reads the logs of a folder into a store there, with further lines for its spool.
fn reader_of(folder: &Path, spool: &str) -> Daemon {
    let d = folder.display();
    fs::create_dir(folder.join("logs")).unwrap();
    let config = format!(
        "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n{spool}[admin]\nlisten = \"127.0.0.1:0\"\n\
         [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*.jsonl\"]\npoll_millis = 20\nscan_millis = 50\n"
    );
    Daemon::with_config(folder, &config)
}

/// Adds lines to a log of the folder.
fn append(folder: &Path, text: &str) {
    let path = folder.join("logs/1.jsonl");
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Makes a backup of the folder's store, and of where its spool's sources stand.
fn back_up(folder: &Path) {
    let at = |name: &str| folder.join(name).display().to_string();
    let (store, spool, backup) = (at("store"), at("spool"), at("backup"));
    demi(&["ingest", "backup", "--store", &store, "--spool", &spool, "--out", &backup, "--json"]);
}

/// All events of a store, as a question in SQL tells them.
fn events(store: &str) -> String {
    let (code, told, error) = output(&[
        "query",
        store,
        "--system",
        "s",
        "--format",
        "jsonl",
        "--sql",
        "SELECT actor, seq, payload FROM events ORDER BY actor, seq",
    ]);
    assert_eq!(code, 0, "{error}");
    told
}

#[test]
fn a_backup_is_a_store_and_grows_by_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (store, backup) = (at("store"), at("backup"));
    let load = |text: String| {
        fs::write(at("log.jsonl"), text).unwrap();
        demi(&["ingest", "load", "--store", &store, "--system", "s", &at("log.jsonl"), "--json"]);
    };
    let back_up = || demi(&["ingest", "backup", "--store", &store, "--out", &backup, "--json"]);
    load(lines("ada", 1..=50));
    let first = back_up();
    assert_eq!(first["there"], 0);
    let then = events(&store);
    assert_eq!(events(&backup), then);
    load(lines("bob", 1..=50) + "no record\n");
    let second = back_up();
    assert!(second["there"].as_u64() >= first["files"].as_u64().map(|files| files - 2), "{first} {second}");
    assert_eq!(events(&backup), events(&store));
    assert_ne!(events(&backup), then);
    // What is deleted is gone from the next backup.
    let deleted = demi(&["ingest", "delete", "--store", &store, "--system", "s", "--actor", "ada", "--json"]);
    let left = |deleted: &Value| -> Vec<String> {
        deleted[0]["left"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(left(&deleted), [backup.as_str()], "it still has what was deleted");
    assert!(back_up()["removed"].as_u64() >= Some(1));
    assert_eq!(events(&backup), events(&store));
    let status = |store: &str| output(&["ingest", "status", "--store", store, "--json"]).1.replace(store, "");
    assert_eq!(status(&backup), status(&store));
    let restored = at("restored");
    demi(&["ingest", "restore", &backup, "--store", &restored, "--json"]);
    assert_eq!((events(&restored), status(&restored)), (events(&store), status(&store)));
    assert!(!Path::new(&at("restored/backup.json")).exists());
    // A backup is none of itself, and a store that was restored knows the one that it is of.
    let delete = |store: &str| {
        demi(&["ingest", "delete", "--store", store, "--system", "s", "--actor", "bob", "--json"])
    };
    assert_eq!(left(&delete(&restored)), [backup.as_str()]);
    assert_eq!(left(&delete(&backup)), Vec::<String>::new());
}

#[test]
fn nothing_of_somebody_else_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for store in ["one", "two"] {
        fs::write(at("log.jsonl"), lines(store, 1..=3)).unwrap();
        demi(&["ingest", "load", "--store", &at(store), "--system", "s", &at("log.jsonl"), "--json"]);
    }
    let refused = |arguments: &[&str], said: &str| {
        let (code, _, error) = output(arguments);
        assert!(code == 2 && error.contains(said), "{arguments:?}: {code} {error}");
    };
    fs::create_dir(at("mine")).unwrap();
    fs::write(at("mine/thesis.txt"), "mine").unwrap();
    refused(&["ingest", "backup", "--store", &at("one"), "--out", &at("mine")], "neither empty nor a backup");
    demi(&["ingest", "backup", "--store", &at("one"), "--out", &at("backup"), "--json"]);
    refused(
        &["ingest", "backup", "--store", &at("two"), "--out", &at("backup")],
        "a backup of another store",
    );
    refused(&["ingest", "backup", "--store", &at("one"), "--out", &at("one/backup")], "lie in each other");
    refused(&["ingest", "restore", &at("backup"), "--store", &at("two")], "absent or empty");
    // A backup that was killed at once left a file in the making, and a restore half a store: both can be done again.
    fs::create_dir(at("killed")).unwrap();
    fs::write(at("killed/.demi-H0ZtWv"), "").unwrap();
    demi(&["ingest", "backup", "--store", &at("one"), "--out", &at("killed"), "--json"]);
    demi(&["ingest", "restore", &at("backup"), "--store", &at("half"), "--json"]);
    fs::write(at("half/.demi-restore"), "").unwrap();
    fs::remove_dir_all(at("half/quarantine")).unwrap();
    refused(&["query", &at("half"), "--system", "s", "--sql", "SELECT 1"], "restore it again");
    fs::write(at("half/thesis.txt"), "mine").unwrap();
    refused(&["ingest", "restore", &at("backup"), "--store", &at("half")], "absent or empty");
    fs::remove_file(at("half/thesis.txt")).unwrap();
    demi(&["ingest", "restore", &at("backup"), "--store", &at("half"), "--json"]);
    assert_eq!(events(&at("half")), events(&at("one")));
    // A daemon would not start with a file for a store.
    fs::write(at("demi.toml"), format!("[store]\ndir = \"{0}\"\n[spool]\ndir = \"{0}-spool\"\n[sources.s]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"/nowhere/*\"]\n", at("log.jsonl"))).unwrap();
    refused(&["ingest", "validate", &at("demi.toml")], "is a file, and a store is a folder");
    refused(&["ingest", "restore", &at("mine"), "--store", &at("new")], "no event store");
    // A manifest that names files outside removes none.
    let text = fs::read_to_string(at("backup/backup.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["files"].as_array_mut().unwrap().push("../mine/thesis.txt".into());
    fs::write(at("backup/backup.json"), manifest.to_string()).unwrap();
    demi(&["ingest", "backup", "--store", &at("one"), "--out", &at("backup"), "--json"]);
    assert_eq!(fs::read_to_string(at("mine/thesis.txt")).unwrap(), "mine");
    // A damaged file is not copied as if it were none.
    let data = fs::read_dir(at("two/events/system=s")).unwrap().map(|day| day.unwrap().path());
    let data = data.flat_map(|day| fs::read_dir(day).unwrap()).next().unwrap().unwrap().path();
    let mut bytes = fs::read(&data).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&data, bytes).unwrap();
    refused(&["ingest", "backup", "--store", &at("two"), "--out", &at("other")], "damaged");
}

#[test]
fn a_daemon_goes_on_with_a_store_that_was_restored() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path().display().to_string();
    let at = |name: &str| format!("{d}/{name}");
    let append = |text: &str| append(folder.path(), text);
    let mut daemon = reader_of(folder.path(), "max_bytes = 80000000\nsegment_bytes = 2000\n");
    append(&lines("ada", 1..=40));
    daemon.start();
    daemon.wait_for(40);
    // While it runs.
    back_up(folder.path());
    for part in 1..=20 {
        append(&lines("bob", part * 10 - 9..=part * 10));
        daemon.wait_for(40 + part * 10);
    }
    let (code, _, error) = output(&["ingest", "restore", "--store", &at("store"), "--spool", &at("spool")]);
    assert!(code == 2 && error.contains("spool"), "a daemon uses it: {error}");
    daemon.stop();
    let whole = events(&at("store"));
    fs::remove_dir_all(at("store")).unwrap();
    let restored = demi(&[
        "ingest",
        "restore",
        &at("backup"),
        "--store",
        &at("store"),
        "--spool",
        &at("spool"),
        "--json",
    ]);
    let spool = &restored["spools"][0];
    assert!(spool["was_committed"].as_u64() > spool["committed"].as_u64(), "{restored}");
    assert!(spool["lost"].is_array(), "the spool has removed what was in the store: {restored}");
    assert_ne!(events(&at("store")), whole);
    // A spool of another store is left alone.
    fs::write(at("log.jsonl"), lines("eve", 1..=1)).unwrap();
    demi(&["ingest", "load", "--store", &at("foreign"), "--system", "s", &at("log.jsonl"), "--json"]);
    let (code, _, error) = output(&["ingest", "restore", "--store", &at("foreign"), "--spool", &at("spool")]);
    assert!(code == 2 && error.contains("go to another store"), "{error}");
    daemon.start();
    assert!(daemon.metric("demi_spool_lost_frames ") >= 1, "at the first start already");
    append(&lines("cid", 1..=1));
    daemon.wait_for(241);
    daemon.stop();
    let now = events(&at("store"));
    assert_eq!(now.lines().filter(|line| !line.contains("cid")).count(), 240);
    assert!(now.starts_with(&whole), "all that was there, once");
}

#[test]
fn a_store_that_the_daemon_made_meanwhile_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path().display().to_string();
    let at = |name: &str| format!("{d}/{name}");
    let append = |text: &str| append(folder.path(), text);
    let mut daemon = reader_of(folder.path(), "");
    append(&lines("ada", 1..=40));
    daemon.start();
    daemon.wait_for(40);
    back_up(folder.path());
    append(&lines("bob", 1..=30));
    daemon.wait_for(70);
    daemon.stop();
    let whole = events(&at("store"));
    fs::remove_dir_all(at("store")).unwrap();
    // A supervisor starts it again.
    daemon.start();
    append(&lines("bob", 31..=35));
    daemon.wait_for(5);
    daemon.stop();
    fs::remove_dir_all(at("store")).unwrap();
    let (backup, store, spool) = (at("backup"), at("store"), at("spool"));
    let restore = ["ingest", "restore", &backup, "--store", &store, "--spool", &spool];
    let (code, _, error) = output(&restore);
    assert!(code == 2 && error.contains("--instead"), "{error}");
    assert!(!Path::new(&store).exists(), "nothing was copied");
    let told = demi(&[&restore[..], &["--instead", "--json"]].concat());
    assert_eq!(told["spools"].as_array().unwrap().len(), 1, "{told}");
    daemon.start();
    append(&lines("cid", 1..=1));
    daemon.wait_for(76);
    daemon.stop();
    let now = events(&store);
    assert_eq!(now.lines().count(), whole.lines().count() + 6);
    assert!(whole.lines().all(|line| now.contains(line)), "all that was there, once");
}
