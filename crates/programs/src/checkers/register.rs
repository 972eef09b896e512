//! Whether a history of a register is linearizable.
//!
//! Wing and Gong, "Testing and verifying concurrent objects" (JPDC 1993), with the memory of Lowe, "Testing for linearizability" (CCPE 2017): operations
//! are linearized one after the other, each among those that began before any other of the rest ended, and a set of operations with
//! a value that was left behind is not tried again.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::anomaly::canonical;

/// What an operation does to a register.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// It reads this value; null where there is none.
    Read(Value),
    /// It writes this value.
    Write(Value),
    /// It writes the second value where the first is there.
    Swap(Value, Value),
}

/// An operation, from its invocation to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// What it does.
    pub action: Action,
    /// Its place in the history when it begins.
    pub begin: usize,
    /// Its place when it ends; nothing where nobody knows whether it was done.
    pub end: Option<usize>,
}

/// A set of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Set {
        Set(vec![0; count.div_ceil(64)])
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] & 1 << (at % 64) != 0
    }

    fn flip(&mut self, at: usize) {
        self.0[at / 64] ^= 1 << (at % 64);
    }
}

/// Whether the operations can be put in one order that each of them agrees with, and in which none comes before one that ended before it
/// began. The register is empty at first.
#[must_use]
pub fn is_linearizable(operations: &[Interval]) -> bool {
    let mut all: Vec<&Interval> = operations.iter().collect();
    all.sort_by_key(|one| one.begin);
    let must = all.iter().filter(|one| one.end.is_some()).count();
    // Values as numbers, so that what was tried is small.
    let mut table: FxHashMap<String, usize> = FxHashMap::from_iter([(canonical(&Value::Null), 0)]);
    let mut of = |value: &Value| {
        let next = table.len();
        *table.entry(canonical(value)).or_insert(next)
    };
    let actions: Vec<(u8, usize, usize)> = all
        .iter()
        .map(|one| match &one.action {
            Action::Read(value) => (0, of(value), 0),
            Action::Write(value) => (1, of(value), 0),
            Action::Swap(from, to) => (2, of(from), of(to)),
        })
        .collect();
    let mut done = Set::new(all.len());
    let mut tried: FxHashSet<(Set, usize)> = FxHashSet::default();
    let (mut value, mut finished) = (0, 0);
    // What was linearized, with the value before it.
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut next = 0;
    loop {
        if finished == must {
            return true;
        }
        // Nothing may come before what has ended.
        let horizon =
            (0..all.len()).filter(|&i| !done.has(i)).filter_map(|i| all[i].end).min().unwrap_or(usize::MAX);
        let mut chosen = None;
        for (i, one) in all.iter().enumerate().skip(next) {
            if one.begin > horizon {
                break;
            }
            if done.has(i) {
                continue;
            }
            let after = match actions[i] {
                (0, read, _) if read == value => value,
                (1, written, _) => written,
                (2, from, to) if from == value => to,
                _ => continue,
            };
            done.flip(i);
            if tried.insert((done.clone(), after)) {
                chosen = Some((i, after));
                break;
            }
            done.flip(i);
        }
        match chosen {
            Some((i, after)) => {
                order.push((i, value));
                value = after;
                finished += usize::from(all[i].end.is_some());
                next = 0;
            }
            None => {
                let Some((i, before)) = order.pop() else { return false };
                done.flip(i);
                value = before;
                finished -= usize::from(all[i].end.is_some());
                next = i + 1;
            }
        }
    }
}
