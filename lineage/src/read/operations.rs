//! Operations of threads, as `demi_log::operation!` writes them: each is a `local` record whose type says what is done, with a number that counts
//! over all threads of a process. An unlock comes before the next lock of the same name, a notification before the thread goes on that waited for
//! it, what spawns a thread before its first event, and its last event before that which had to wait for its end goes on.
//!
//! A lock is logged after it was taken, everything else before it is done. So the numbers of an unlock and of the lock that follows it are in the
//! order of what happened, and a thread that waits goes on with the event behind its wait. A read or a write may happen in another order than it is
//! logged, so these tell nothing.

use std::collections::{BTreeMap, BTreeSet};

use demi_common::sealed::SealedFile;
use demi_schemas::Kind;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use super::columns::{self, at};
use super::contents::each_chosen;
use super::events::Events;
use super::intern::NONE;
use super::placement::Placement;
use super::source::{columns_of, record_schema};
use crate::error::LineageError;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Lock,
    Unlock,
    Wait,
    Notify,
    Spawn,
    Join,
    /// A read or a write.
    Access,
}

impl Operation {
    fn of(word: &str) -> Option<Operation> {
        Some(match word {
            "lock" => Operation::Lock,
            "unlock" => Operation::Unlock,
            "wait" => Operation::Wait,
            "notify" => Operation::Notify,
            "spawn" => Operation::Spawn,
            "join" => Operation::Join,
            "read" | "write" => Operation::Access,
            _ => return None,
        })
    }
}

/// What an operation's record has beside what all records have.
#[derive(Deserialize)]
struct Numbered {
    operation: u64,
    #[serde(default)]
    process: Value,
}

/// An operation that was logged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    number: u64,
    event: u32,
    what: Operation,
    /// The lock, or the other thread.
    on: String,
}

/// An edge between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperationEdge {
    pub(crate) cause: u32,
    pub(crate) effect: u32,
    pub(crate) certain: bool,
}

/// What operations tell.
#[derive(Debug, Default)]
pub(crate) struct OperationOrder {
    /// Whether there are any.
    pub(crate) any: bool,
    /// What comes before what in the log of another thread.
    pub(crate) edges: Vec<OperationEdge>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// Reads what operations tell, where there are some.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn read(
    files: &[SealedFile],
    events: &Events,
    placement: &Placement,
) -> Result<OperationOrder, LineageError> {
    let mut wanted: Vec<bool> = events.kind.iter().map(|kind| *kind == Kind::Local).collect();
    if !wanted.contains(&true) {
        return Ok(OperationOrder::default());
    }
    // Most records of this kind are something else, of which no more is read than that.
    let mut found = Vec::new();
    each_chosen(files, placement, &wanted, &columns_of(&record_schema(), &["type"]), &mut |batch, rows| {
        let types = columns::text(batch, "type")?;
        for (row, &event) in rows.iter().enumerate().filter(|(_, event)| **event != NONE) {
            if wanted[event as usize] && at(types, row).is_some_and(|t| Operation::of(t).is_some()) {
                found.push(event);
            }
        }
        Ok(())
    })?;
    if found.is_empty() {
        return Ok(OperationOrder::default());
    }
    wanted.fill(false);
    found.into_iter().for_each(|event| wanted[event as usize] = true);
    let mut processes: BTreeMap<(String, u32), Vec<Told>> = BTreeMap::new();
    let schema = columns_of(&record_schema(), &["type", "payload", "attrs"]);
    each_chosen(files, placement, &wanted, &schema, &mut |batch, rows| {
        let (types, payload) = (columns::text(batch, "type")?, columns::text(batch, "payload")?);
        let attrs = columns::text(batch, "attrs")?;
        for (row, &event) in rows.iter().enumerate() {
            if event == NONE || !wanted[event as usize] {
                continue;
            }
            let numbered = at(attrs, row).and_then(|text| serde_json::from_str::<Numbered>(text).ok());
            let what = at(types, row).and_then(Operation::of);
            let (Some(numbered), Some(what), Some(on)) = (numbered, what, at(payload, row)) else { continue };
            let process = match numbered.process {
                Value::Null => String::new(),
                Value::String(text) => text,
                other => other.to_string(),
            };
            // A process that begins again counts again from one.
            let run = (process, events.places.get(event).0);
            let told = Told { number: numbered.operation, event, what, on: on.to_owned() };
            processes.entry(run).or_default().push(told);
        }
        Ok(())
    })?;
    let mut order = OperationOrder { any: !processes.is_empty(), ..OperationOrder::default() };
    for ((process, incarnation), mut told) in processes {
        told.sort_unstable();
        told.dedup();
        if let Some(twice) = told.windows(2).find(|two| two[0].number == two[1].number) {
            let of = if process.is_empty() { String::new() } else { format!(" of process {process}") };
            order.warnings.push(format!(
                "operations of threads{of} in incarnation {incarnation} have the same numbers (first {} and {}): they are of several processes or \
                 runs, so nothing is told of their order; a field `process` tells them apart",
                events.name(twice[0].event),
                events.name(twice[1].event)
            ));
            continue;
        }
        let mut process = Process::new(events, &told);
        (0..told.len()).for_each(|at| process.take(at));
        // Those of whom no other operation is told.
        for (thread, waiter) in std::mem::take(&mut process.waiting) {
            process.goes_on(thread, waiter);
        }
        process.joined();
        order.edges.append(&mut process.edges);
    }
    order.edges.sort_unstable_by_key(|edge| (edge.cause, edge.effect, !edge.certain));
    order.edges.dedup_by_key(|edge| (edge.cause, edge.effect));
    Ok(order)
}

/// A thread that waits for a notification.
struct Waiter<'a> {
    on: &'a str,
    event: u32,
    /// The lock that it gave back, where that is known.
    lock: Option<&'a str>,
    /// Notifications since then, each with whether nobody else could be meant.
    notified: Vec<(u32, bool)>,
}

impl Waiter<'_> {
    /// Whether a notification may be for it: who was certainly notified goes on.
    fn listens(&self, on: &str) -> bool {
        self.on == on && !self.notified.iter().any(|(_, certain)| *certain)
    }
}

/// The operations of one process, one after the other.
struct Process<'a> {
    events: &'a Events,
    told: &'a [Told],
    edges: Vec<OperationEdge>,
    /// By lock: where it was given back since somebody took it.
    given_back: FxHashMap<&'a str, Vec<u32>>,
    /// By thread: the locks that it holds.
    holds: FxHashMap<u32, Vec<&'a str>>,
    waiting: BTreeMap<u32, Waiter<'a>>,
    /// Notifications that somebody went on after.
    taken: BTreeSet<u32>,
    /// By thread: its operations, by number.
    own: FxHashMap<u32, Vec<usize>>,
}

impl<'a> Process<'a> {
    fn new(events: &'a Events, told: &'a [Told]) -> Self {
        let mut own: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (at, one) in told.iter().enumerate() {
            own.entry(events.actor[one.event as usize]).or_default().push(at);
        }
        Process {
            events,
            told,
            edges: Vec::new(),
            given_back: FxHashMap::default(),
            holds: FxHashMap::default(),
            waiting: BTreeMap::new(),
            taken: BTreeSet::new(),
            own,
        }
    }

    fn actor(&self, event: u32) -> u32 {
        self.events.actor[event as usize]
    }

    fn edge(&mut self, cause: u32, effect: u32, certain: bool) {
        if self.actor(cause) != self.actor(effect) {
            self.edges.push(OperationEdge { cause, effect, certain });
        }
    }

    /// The event behind one in its log.
    fn next(&self, event: u32) -> Option<u32> {
        let next = event + 1;
        self.events.of_actor(self.actor(event)).contains(&next).then_some(next)
    }

    /// The last operation of a thread before the one at this place.
    fn last_before(&self, thread: u32, at: usize) -> Option<usize> {
        let own = self.own.get(&thread)?;
        own.partition_point(|&other| other < at).checked_sub(1).map(|last| own[last])
    }

    /// Who gave a lock back comes before this event.
    fn locks(&mut self, lock: &str, effect: u32) {
        for cause in self.given_back.get_mut(lock).map(std::mem::take).unwrap_or_default() {
            self.edge(cause, effect, true);
        }
    }

    fn take(&mut self, at: usize) {
        let told = self.told;
        let (event, on) = (told[at].event, told[at].on.as_str());
        let thread = self.actor(event);
        if let Some(waiter) = self.waiting.remove(&thread) {
            self.goes_on(thread, waiter);
        }
        match told[at].what {
            Operation::Lock => {
                self.locks(on, event);
                let holds = self.holds.entry(thread).or_default();
                if !holds.contains(&on) {
                    holds.push(on);
                }
            }
            Operation::Unlock => {
                self.holds.entry(thread).or_default().retain(|held| *held != on);
                self.given_back.entry(on).or_default().push(event);
            }
            Operation::Wait => {
                // Which of several locks is given back is not logged.
                let holds = self.holds.entry(thread).or_default();
                let lock = if holds.len() == 1 { holds.pop() } else { None };
                if let Some(lock) = lock {
                    self.given_back.entry(lock).or_default().push(event);
                }
                self.waiting.insert(thread, Waiter { on, event, lock, notified: Vec::new() });
            }
            Operation::Notify => {
                let count = self.waiting.values().filter(|waiter| waiter.listens(on)).count();
                for waiter in self.waiting.values_mut().filter(|waiter| waiter.listens(on)) {
                    waiter.notified.push((event, count == 1));
                }
            }
            Operation::Spawn => {
                let Some(child) = self.events.find_actor(on) else { return };
                // A name can be given again: then what came before was another thread.
                let first = match self.last_before(child, at) {
                    Some(last) => self.next(self.told[last].event),
                    None => self.events.of_actor(child).next(),
                };
                if let Some(first) = first {
                    self.edge(event, first, true);
                }
            }
            Operation::Join | Operation::Access => {}
        }
    }

    /// A thread that waited goes on with the event behind its wait, and has its lock again.
    fn goes_on(&mut self, thread: u32, waiter: Waiter<'a>) {
        let Some(effect) = self.next(waiter.event) else { return };
        // One notification may be for one thread or for all: the first that nobody went on after is likelier than any other.
        let fresh = waiter.notified.iter().find(|(event, _)| !self.taken.contains(event));
        if let Some(&(event, certain)) = fresh.or(waiter.notified.first()) {
            self.taken.insert(event);
            self.edge(event, effect, certain);
        }
        if let Some(lock) = waiter.lock {
            self.locks(lock, effect);
            self.holds.entry(thread).or_default().push(lock);
        }
    }

    /// Who waits for the end of a thread goes on behind its last event.
    fn joined(&mut self) {
        let told = self.told;
        for (at, join) in told.iter().enumerate().filter(|(_, told)| told.what == Operation::Join) {
            let child = self.events.find_actor(&join.on);
            let (Some(child), Some(effect)) = (child, self.next(join.event)) else { continue };
            let thread = self.actor(join.event);
            // A name can be given again: the thread that ended made no operation after the next one of who waited for it.
            let own = self.own.get(&thread).map_or(&[][..], Vec::as_slice);
            let next = own.get(own.partition_point(|&other| other <= at)).copied().unwrap_or(told.len());
            let all = self.own.get(&child).and_then(|own| own.last().copied());
            let last = self.last_before(child, next);
            let cause = match last {
                Some(last) if all != Some(last) => Some(told[last].event),
                None if all.is_some() => None,
                _ => self.events.of_actor(child).next_back(),
            };
            if let Some(cause) = cause {
                self.edge(cause, effect, true);
            }
        }
    }
}
