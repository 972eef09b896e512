//! Operations of threads give an order: against the truth on random executions of threads, and where it cannot be told.

use std::collections::BTreeMap;
use std::path::PathBuf;

use demi_lineage::generate::write_store_file;
use demi_lineage::query::{Query, Relation};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::EventRecord;
use demi_schemas::summary::BuildSummary;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Built {
    _dir: TempDir,
    exec: PathBuf,
    summary: BuildSummary,
}

fn built(records: &[Value]) -> Built {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.parquet");
    let parsed = records.iter().map(|r| EventRecord::parse(r.to_string().as_bytes()).unwrap());
    write_store_file(&file, parsed).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    let summary = build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    Built { _dir: dir, exec, summary }
}

impl Built {
    fn query(&self, certain: bool) -> Query {
        Query::open(&self.exec, certain).unwrap()
    }
}

fn is_before(query: &Query, one: &str, other: &str) -> bool {
    let event = |name: &str| query.index().event(name).unwrap();
    query.order(event(one), event(other)).unwrap() == Relation::Before
}

/// The log of operations, in the order of their numbers.
fn log(operations: &[(&str, &str, &str)]) -> Vec<Value> {
    let mut seq: BTreeMap<&str, u64> = BTreeMap::new();
    let one = |(at, (actor, what, on)): (usize, &(&'static str, &str, &str))| {
        let seq = seq.entry(actor).or_default();
        *seq += 1;
        json!({"actor": actor, "seq": *seq, "kind": "local", "type": what, "payload": on, "operation": at + 1})
    };
    // The names are those of literals.
    let operations: Vec<(&'static str, &str, &str)> =
        operations.iter().map(|(actor, what, on)| (leaked(actor), *what, *on)).collect();
    operations.iter().enumerate().map(one).collect()
}

fn leaked(text: &str) -> &'static str {
    ["main", "ann", "bob", "eve"].into_iter().find(|known| *known == text).unwrap()
}

#[test]
fn an_unlock_comes_before_the_next_lock_of_the_same_name() {
    let built = built(&log(&[
        ("ann", "lock", "queue"),
        ("ann", "unlock", "queue"),
        ("bob", "lock", "other"),
        ("bob", "unlock", "other"),
        ("bob", "lock", "queue"),
        ("eve", "lock", "other"),
    ]));
    let query = built.query(true);
    assert!(is_before(&query, "ann/2", "bob/3") && is_before(&query, "bob/2", "eve/1"));
    assert!(!is_before(&query, "ann/2", "bob/2") && !is_before(&query, "ann/2", "eve/1"));
    assert_eq!(built.summary.operation_edges, 2);
    let event = |name: &str| query.index().event(name).unwrap();
    let path = query.index().path(event("ann/1"), event("bob/3"), true).unwrap().unwrap();
    assert_eq!(path.iter().map(|hop| hop.reason.as_str()).collect::<Vec<_>>(), ["log", "operation"]);
}

#[test]
fn readers_of_a_lock_all_come_before_its_writer() {
    let built = built(&log(&[
        ("ann", "lock", "map"),
        ("bob", "lock", "map"),
        ("ann", "unlock", "map"),
        ("bob", "unlock", "map"),
        ("eve", "lock", "map"),
    ]));
    let query = built.query(true);
    assert!(is_before(&query, "ann/2", "eve/1") && is_before(&query, "bob/2", "eve/1"));
    assert!(!is_before(&query, "ann/1", "bob/2"));
}

#[test]
fn a_thread_begins_after_it_is_spawned_and_is_over_before_who_waits_for_it_goes_on() {
    // A join is logged before it waits, so the child's last event has a higher number.
    let built = built(&log(&[
        ("main", "spawn", "ann"),
        ("main", "join", "ann"),
        ("ann", "read", "x"),
        ("ann", "write", "x"),
        ("main", "spawn", "ann"),
        ("ann", "read", "x"),
        ("main", "read", "x"),
    ]));
    let query = built.query(true);
    assert!(is_before(&query, "main/1", "ann/1") && is_before(&query, "ann/2", "main/3"));
    assert!(!is_before(&query, "ann/2", "main/2"), "the join itself does not come after the end");
    assert!(is_before(&query, "main/3", "ann/3"), "the second thread of that name");
    assert!(!is_before(&query, "ann/3", "main/3") && !is_before(&query, "ann/3", "main/4"));
}

#[test]
fn one_notification_and_two_that_wait_are_a_guess() {
    let built = built(&log(&[
        ("ann", "wait", "filled"),
        ("bob", "wait", "filled"),
        ("eve", "notify", "filled"),
        ("bob", "read", "x"),
    ]));
    assert!(is_before(&built.query(false), "eve/1", "bob/2"));
    assert!(!is_before(&built.query(true), "eve/1", "bob/2"));
}

#[test]
fn numbers_that_come_twice_tell_nothing_unless_a_process_is_named() {
    let mut records = log(&[("ann", "lock", "queue"), ("ann", "unlock", "queue")]);
    records.extend(log(&[("bob", "lock", "queue"), ("bob", "unlock", "queue"), ("bob", "lock", "queue")]));
    let same = built(&records);
    assert_eq!(same.summary.operation_edges, 0);
    assert!(
        same.summary.warnings.iter().any(|w| w.contains("have the same numbers")),
        "{:?}",
        same.summary.warnings
    );
    for record in &mut records {
        record["process"] = json!(if record["actor"] == "ann" { 1 } else { 2 });
    }
    let apart = built(&records);
    assert!(apart.summary.warnings.is_empty(), "{:?}", apart.summary.warnings);
    assert!(!is_before(&apart.query(false), "ann/2", "bob/1"), "locks of two processes are two locks");
}

/// Local records that have such types and no numbers are none of these.
#[test]
fn other_records_with_such_types_give_no_order() {
    let mut records = log(&[("ann", "unlock", "queue"), ("bob", "lock", "queue")]);
    for record in &mut records {
        record.as_object_mut().unwrap().remove("operation");
    }
    let built = built(&records);
    assert_eq!((built.summary.operation_edges, built.summary.warnings.len()), (0, 0));
}

const LOCKS: usize = 2;

/// What a thread does, and what it has heard of.
#[derive(Clone, Default)]
struct Thread {
    exists: bool,
    over: bool,
    holds: Vec<usize>,
    /// Waits for a notification, with the lock that it needs then.
    sleeps: Option<usize>,
    notified: bool,
    joins: Option<usize>,
    /// By thread: how many of its events come before.
    knows: Vec<u64>,
    /// The same at its last event: the rest is in no log.
    told: Vec<u64>,
    left: u32,
}

/// Runs threads as choices say, and keeps what each event really comes after.
struct Truth {
    threads: Vec<Thread>,
    holder: [Option<usize>; LOCKS],
    lock_knows: Vec<Vec<u64>>,
    number: u64,
    records: Vec<Value>,
    /// By record: its thread, its place and what comes before it.
    truth: Vec<(usize, Vec<u64>)>,
}

fn joined(a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
}

impl Truth {
    fn new(threads: usize) -> Self {
        let thread = Thread { knows: vec![0; threads], told: vec![0; threads], left: 8, ..Thread::default() };
        let mut all = vec![thread; threads];
        all[0].exists = true;
        Truth {
            threads: all,
            holder: [None; LOCKS],
            lock_knows: vec![vec![0; threads]; LOCKS],
            number: 0,
            records: Vec::new(),
            truth: Vec::new(),
        }
    }

    fn event(&mut self, thread: usize, what: &str, on: Option<String>) {
        let of = &mut self.threads[thread];
        of.knows[thread] += 1;
        of.told.clone_from(&of.knows);
        let mut record =
            json!({"actor": format!("t{thread}"), "seq": of.knows[thread], "kind": "local", "type": what});
        if let Some(on) = on {
            self.number += 1;
            record["payload"] = json!(on);
            record["operation"] = json!(self.number);
        }
        self.truth.push((thread, of.knows.clone()));
        self.records.push(record);
    }

    fn take(&mut self, thread: usize, lock: usize) {
        self.holder[lock] = Some(thread);
        self.threads[thread].holds.push(lock);
        let knows = self.lock_knows[lock].clone();
        joined(&mut self.threads[thread].knows, &knows);
    }

    fn give(&mut self, thread: usize, lock: usize) {
        self.holder[lock] = None;
        self.threads[thread].holds.retain(|held| *held != lock);
        let knows = self.threads[thread].knows.clone();
        joined(&mut self.lock_knows[lock], &knows);
    }

    /// A thread does something, if it can.
    fn step(&mut self, thread: usize, choice: u8) {
        let of = self.threads[thread].clone();
        if !of.exists || of.over {
            return;
        }
        if let Some(child) = of.joins {
            if self.threads[child].over {
                let told = self.threads[child].told.clone();
                joined(&mut self.threads[thread].knows, &told);
                self.threads[thread].joins = None;
            }
            return;
        }
        if let Some(lock) = of.sleeps {
            if of.notified && self.holder[lock].is_none() {
                self.threads[thread].sleeps = None;
                self.threads[thread].notified = false;
                self.take(thread, lock);
                // That it has its lock again is told or not.
                if choice.is_multiple_of(2) {
                    self.event(thread, "lock", Some(format!("l{lock}")));
                }
            }
            return;
        }
        if of.left == 0 {
            if let Some(&lock) = of.holds.last() {
                self.event(thread, "unlock", Some(format!("l{lock}")));
                self.give(thread, lock);
            } else {
                self.threads[thread].over = true;
            }
            return;
        }
        self.threads[thread].left -= 1;
        let lock = usize::from(choice / 16) % LOCKS;
        let other = usize::from(choice / 16) % self.threads.len();
        match choice % 16 {
            // Locks are taken in their order, so that nobody waits for ever.
            0..=4 if self.holder[lock].is_none() && of.holds.iter().all(|held| *held < lock) => {
                self.take(thread, lock);
                self.event(thread, "lock", Some(format!("l{lock}")));
            }
            5..=8 => {
                if let Some(&lock) = of.holds.last() {
                    self.event(thread, "unlock", Some(format!("l{lock}")));
                    self.give(thread, lock);
                }
            }
            9 | 10 if of.holds.len() == 1 && self.threads.iter().all(|other| other.sleeps.is_none()) => {
                self.event(thread, "wait", Some("c".to_owned()));
                self.threads[thread].sleeps = Some(of.holds[0]);
                self.give(thread, of.holds[0]);
            }
            11 | 12 => {
                self.event(thread, "notify", Some("c".to_owned()));
                let knows = self.threads[thread].knows.clone();
                if let Some(sleeper) =
                    self.threads.iter_mut().find(|other| other.sleeps.is_some() && !other.notified)
                {
                    sleeper.notified = true;
                    joined(&mut sleeper.knows, &knows);
                }
            }
            13 if !self.threads[other].exists => {
                self.event(thread, "spawn", Some(format!("t{other}")));
                let knows = self.threads[thread].knows.clone();
                self.threads[other].exists = true;
                self.threads[other].knows = knows;
            }
            14 if self.threads[other].exists && other > thread => {
                self.event(thread, "join", Some(format!("t{other}")));
                self.threads[thread].joins = Some(other);
            }
            15 => self.event(thread, "work", None),
            _ => self.event(thread, "read", Some("x".to_owned())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_is_that_of_what_happened(choices in proptest::collection::vec((0usize..4, any::<u8>()), 4..120)) {
        let mut truth = Truth::new(4);
        for &(thread, choice) in &choices {
            truth.step(thread, choice);
        }
        prop_assume!(!truth.records.is_empty());
        let built = built(&truth.records);
        prop_assert!(built.summary.warnings.is_empty(), "{:?}", built.summary.warnings);
        let query = built.query(true);
        let name = |(thread, knows): &(usize, Vec<u64>)| format!("t{thread}/{}", knows[*thread]);
        for one in &truth.truth {
            for other in &truth.truth {
                let before = one != other && other.1[one.0] >= one.1[one.0];
                prop_assert_eq!(
                    is_before(&query, &name(one), &name(other)), before,
                    "{} before {}: {:?}", name(one), name(other), truth.records
                );
            }
        }
    }
}
