//! A store that was moved, copied, mounted, restored or damaged in what it keeps to be fast answers as one without any of that.
//!
//! `DEMI_CASES=N` tries N sequences instead of as many as CI has time for.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

fn demi(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// What may happen to a store.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Some messages more.
    Load(u8),
    /// The answers are compared.
    Query,
    /// An execution is built, whose answers stay what they are.
    Build,
    /// All of an actor.
    Delete(u8),
    /// It has another name.
    Move,
    /// It is a copy.
    Copy,
    /// A copy is put aside.
    Keep,
    /// A copy that was put aside takes its place: all of it.
    Restore(u8),
    /// The same, but what is kept to be fast stays.
    RestoreTables(u8),
    /// The other way round: what is kept to be fast is that of a copy.
    RestoreOrders(u8),
    /// It is reached by a link.
    Link,
    /// It is mounted elsewhere.
    Mount,
    /// A file of what is kept to be fast is gone, cut short or changed.
    Spoil(u8, u8),
    /// Somebody's file lies in what is kept to be fast.
    Beside,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => any::<u8>().prop_map(Act::Load),
        4 => Just(Act::Query),
        1 => Just(Act::Build),
        1 => any::<u8>().prop_map(Act::Delete),
        2 => Just(Act::Move),
        1 => Just(Act::Copy),
        2 => Just(Act::Keep),
        2 => any::<u8>().prop_map(Act::Restore),
        2 => any::<u8>().prop_map(Act::RestoreTables),
        1 => any::<u8>().prop_map(Act::RestoreOrders),
        1 => Just(Act::Link),
        1 => Just(Act::Mount),
        1 => any::<(u8, u8)>().prop_map(|(a, b)| Act::Spoil(a, b)),
        1 => Just(Act::Beside),
    ];
    prop::collection::vec(act, 6..16)
}

/// A mount that ends with it.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

struct World {
    dir: tempfile::TempDir,
    store: PathBuf,
    names: u32,
    /// By actor: its next sequence number.
    next: [u64; 4],
    loads: u32,
    kept: Vec<(PathBuf, [u64; 4])>,
    /// Executions, and what they answered.
    built: Vec<(PathBuf, Vec<String>)>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let mut world =
            World { dir, store, names: 0, next: [1; 4], loads: 0, kept: Vec::new(), built: Vec::new() };
        world.load(120);
        world
    }

    fn fresh(&mut self) -> PathBuf {
        self.names += 1;
        self.dir.path().join(format!("n{}", self.names))
    }

    fn orders(&self) -> PathBuf {
        self.store.join("orders")
    }

    fn load(&mut self, messages: u64) {
        self.loads += 1;
        let mut lines = String::new();
        let load = self.loads;
        for n in 0..messages {
            let (from, to) = ((n % 4) as usize, ((n + 1 + n / 4 % 3) % 4) as usize);
            let mut line = |actor: usize, mut record: Value| {
                record["actor"] = format!("a{actor}").into();
                record["seq"] = self.next[actor].into();
                // Stores that went on another way have other contents under the same names.
                record["payload"] = format!("load {load}").into();
                self.next[actor] += 1;
                lines.push_str(&format!("{record}\n"));
            };
            let id = format!("{load}-{n}");
            line(from, json!({"kind": "send", "msg_id": id, "to": format!("a{to}"), "type": "T"}));
            if n % 7 != 0 {
                line(to, json!({"kind": "receive", "msg_id": id, "from": format!("a{from}"), "type": "T"}));
            }
        }
        let log = self.dir.path().join(format!("load-{load}.jsonl"));
        fs::write(&log, lines).unwrap();
        let (store, log) = (self.store.to_str().unwrap().to_owned(), log.to_str().unwrap().to_owned());
        let (status, _, error) = demi(&["ingest", "load", "--store", &store, "--system", "s", &log]);
        assert_eq!(status, Some(0), "{error}");
    }

    fn query(&mut self) {
        let plain = self.fresh();
        copy(&self.store, &plain);
        let _ = fs::remove_dir_all(plain.join("orders"));
        let expected = answers(&plain);
        assert_eq!(answers(&self.store), expected);
        fs::remove_dir_all(plain).unwrap();
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Load(messages) => self.load(u64::from(messages % 12)),
            Act::Query => self.query(),
            Act::Build => {
                let out = self.fresh();
                let (store, exec) =
                    (self.store.to_str().unwrap().to_owned(), out.to_str().unwrap().to_owned());
                let args =
                    ["build", "--store", &store, "--system", "s", "--violation", "none", "--out", &exec];
                let (status, _, error) = demi(&args);
                if status == Some(0) {
                    let told = answers(&out);
                    self.built.push((out, told));
                } else {
                    assert!(error.contains("no events"), "{error}");
                }
            }
            Act::Delete(actor) => {
                let (store, actor) = (self.store.to_str().unwrap().to_owned(), format!("a{}", actor % 4));
                let (status, _, error) =
                    demi(&["ingest", "delete", "--store", &store, "--system", "s", "--actor", &actor]);
                // Of a system whose events are all gone there is nothing to delete, and a foreign file is left alone.
                let told = error.contains("no events")
                    || error.contains("holds a file")
                    || error.contains("no system");
                assert!(status == Some(0) || told, "{error}");
            }
            Act::Move => {
                let to = self.fresh();
                fs::rename(&self.store, &to).unwrap();
                self.store = to;
            }
            Act::Copy => {
                let to = self.fresh();
                copy(&self.store, &to);
                self.store = to;
            }
            Act::Keep => {
                let to = self.fresh();
                copy(&self.store, &to);
                self.kept.push((to, self.next));
            }
            Act::Restore(which) => {
                let Some((from, next)) = self.chosen(which) else { return };
                fs::remove_dir_all(&self.store).unwrap();
                copy(&from, &self.store);
                self.next = next;
            }
            Act::RestoreTables(which) => {
                let Some((from, next)) = self.chosen(which) else { return };
                for entry in fs::read_dir(&self.store).unwrap().map(Result::unwrap) {
                    if entry.path().is_dir() && entry.file_name() != "orders" {
                        fs::remove_dir_all(entry.path()).unwrap();
                    }
                }
                for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
                    if entry.path().is_dir() && entry.file_name() != "orders" {
                        copy(&entry.path(), &self.store.join(entry.file_name()));
                    }
                }
                self.next = next;
            }
            Act::RestoreOrders(which) => {
                let Some((from, _)) = self.chosen(which) else { return };
                let _ = fs::remove_dir_all(self.orders());
                if from.join("orders").is_dir() {
                    copy(&from.join("orders"), &self.orders());
                }
            }
            Act::Link => {
                let (link, real) = (self.fresh(), self.store.clone());
                std::os::unix::fs::symlink(&real, &link).unwrap();
                self.store = link;
                self.query();
                self.store = real;
            }
            Act::Mount => {
                let (at, real) = (self.fresh(), self.store.clone());
                fs::create_dir(&at).unwrap();
                let mount = std::process::Command::new("mount").arg("--bind").args([&real, &at]).output();
                // Only the superuser can, and not everywhere.
                if mount.is_ok_and(|output| output.status.success()) {
                    let mounted = Mounted(at.clone());
                    self.store = at;
                    self.query();
                    self.store = real;
                    drop(mounted);
                }
            }
            Act::Spoil(which, how) => {
                let mut files = Vec::new();
                find(&self.orders(), &mut files);
                // The rows are those of the store: a file with two names.
                files.retain(|file| !file.components().any(|part| part.as_os_str() == "rows"));
                let Some(file) = files.get(usize::from(which) % files.len().max(1)) else { return };
                let mut bytes = fs::read(file).unwrap();
                // Files of the folder and of its base may be one file with two names.
                fs::remove_file(file).unwrap();
                match how % 3 {
                    0 => return,
                    1 => bytes.truncate(usize::from(how) % bytes.len().max(1)),
                    _ => bytes.iter_mut().skip(usize::from(how)).step_by(97).for_each(|byte| *byte ^= 16),
                }
                fs::write(file, bytes).unwrap();
            }
            Act::Beside => {
                let folder = self.orders().join("s");
                if folder.is_dir() {
                    fs::write(folder.join("notes.txt"), "mine").unwrap();
                    self.load(1);
                    self.query();
                    assert_eq!(fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
                    fs::remove_file(folder.join("notes.txt")).unwrap();
                }
            }
        }
    }

    fn chosen(&self, which: u8) -> Option<(PathBuf, [u64; 4])> {
        self.kept.get(usize::from(which) % self.kept.len().max(1)).cloned()
    }
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() { find(&entry, found) } else { found.push(entry) }
    }
}

/// What is answered to some questions; why there is no answer where the store has no events.
fn answers(target: &Path) -> Vec<String> {
    let target = target.to_str().unwrap();
    let sql = |text| vec!["--sql", text, "--format", "jsonl"];
    let questions = [
        sql("SELECT * EXCLUDE (\"order\") FROM events ORDER BY event"),
        sql("SELECT * FROM messages ORDER BY send, receive"),
        vec!["stats", "--json"],
    ];
    let ask = |question: &Vec<&str>| {
        let (status, told, error) = demi(&[&["query", target], &question[..]].concat());
        match status {
            // One of several longest chains.
            Some(0) => {
                told.lines().filter(|line| !line.contains("\"chain_ends_at\"")).collect::<Vec<_>>().join("\n")
            }
            _ => {
                assert!(error.contains("no events"), "{target}: {question:?}: {error}");
                "no events".to_owned()
            }
        }
    };
    questions.iter().map(ask).collect()
}

#[test]
fn whatever_happens_to_a_store_its_answers_are_those_of_its_events() {
    let cases = std::env::var("DEMI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let mut runner =
        TestRunner::new(ProptestConfig { cases, max_shrink_iters: 40, ..ProptestConfig::default() });
    let done = runner.run(&acts(), |acts| {
        let mut world = World::new();
        for act in acts {
            world.act(act);
        }
        world.query();
        for (exec, told) in &world.built {
            assert_eq!(&answers(exec), told);
        }
        Ok(())
    });
    done.unwrap();
}

#[test]
fn a_moved_store_is_asked_without_building_anything() {
    let mut world = World::new();
    world.query();
    world.load(3);
    let note = |world: &World, sql: &str| {
        let store = world.store.to_str().unwrap();
        let output = Command::cargo_bin("demi-lineage")
            .unwrap()
            .args(["query", store, "--sql", sql, "--format", "csv"])
            .output()
            .unwrap();
        assert!(output.status.success());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let sql = "SELECT count(*) AS n FROM events";
    let (told, said) = note(&world, sql);
    assert!(said.contains("added new events"), "{said}");
    world.act(Act::Move);
    assert_eq!(note(&world, sql), (told.clone(), String::new()));
    world.act(Act::Copy);
    assert_eq!(note(&world, sql), (told, String::new()));
    // Nothing of it names a place.
    let mut files = Vec::new();
    find(&world.store, &mut files);
    let place = world.dir.path().to_str().unwrap();
    for file in files.iter().filter(|file| file.starts_with(world.orders())) {
        let bytes = fs::read(file).unwrap();
        let found = bytes.windows(place.len()).any(|window| window == place.as_bytes());
        // Where a line was read is what was logged of it.
        let is_rows = file.extension().is_some_and(|ending| ending == "parquet");
        assert!(!found || is_rows, "{}", file.display());
    }
}

/// What the road from logs to a test wrote names no folder of the machine, and works as it is where it is moved to.
#[test]
fn what_was_made_of_logs_names_no_place_and_works_elsewhere() {
    use crate::support::{demo, run};
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("made here"), folder.path().join("moved"));
    fs::create_dir(&first).unwrap();
    demo::copy_into(&first);
    // With absolute paths as well, since these are what could stay; where a line was read is told as it was named.
    let at = |name: &str| first.join(name).display().to_string();
    let scenario = at("scenario.toml");
    run::done(&first, &["build", "logs.jsonl.zst", "--system", "demo", "--out", &at("exec2")]);
    run::done(
        &first,
        &["minimize", &at("exec2"), "--scenario", &scenario, "--budget", "200r", "--out", &at("min2")],
    );
    run::done(
        &first,
        &["explore", "--scenario", &scenario, "--bound", "1", "--depth", "4", "--out", &at("explored")],
    );
    for format in ["rust-test", "merged-log", "json", "mermaid"] {
        let out = at(&format!("exported {format}"));
        run::done(&first, &["export", &at("min2"), "--format", format, "--out", &out]);
    }
    fs::rename(&first, &second).unwrap();
    let mut files = Vec::new();
    find(&second, &mut files);
    assert!(files.len() > 40, "{files:?}");
    let places = [first.display().to_string(), demo::made().display().to_string()];
    for file in &files {
        // Where a line was read is what was logged of it.
        let name = file.strip_prefix(&second).unwrap();
        if file.extension().is_some_and(|ending| ending == "parquet") || name.ends_with("report.html") {
            continue;
        }
        let bytes = fs::read(file).unwrap();
        for place in &places {
            let found = bytes.windows(place.len()).any(|window| window == place.as_bytes());
            assert!(!found, "{} names {place}", name.display());
        }
    }
    run::done(&second, &["replay", "min2/schedule.jsonl", "--scenario", "scenario.toml", "--strict"]);
    run::done(&second, &["verify", "min2"]);
    run::done(&second, &["verify", "explored"]);
    run::done(&second, &["report", "min2", "--original", "exec2", "--html", "again.html"]);
    run::done(
        &second,
        &["minimize", "exec2", "--scenario", "scenario.toml", "--budget", "200r", "--out", "min3"],
    );
    for name in ["schedule.jsonl", "reduced.jsonl"] {
        let read = |of: &str| fs::read(second.join(of).join(name)).unwrap();
        assert!(read("min2") == read("min3"), "{name} is another one in another folder");
    }
}
