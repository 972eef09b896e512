//! Order that vector clocks tell where no message does (C. Fidge, ACSC 1988; F. Mattern, 1989).
//!
//! A clock that grew in the entry of another actor says that an event of that actor came before. Of the events it names, those that
//! are not before another of them are the event's direct causes: the covering edges of happens-before across actors. Clocks
//! are checked on the way; a clock that contradicts itself or another is no order and is refused with its file and line.
//!
//! Memory is linear in the changes of clocks, not in events times actors: of each clock only what is new against the actor's
//! clock before it is held.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::{Array, RecordBatch};
use demi_common::sealed::SealedFile;
use rustc_hash::FxHashMap;

use super::edges::{Matching, Reason};
use crate::error::LineageError;
use crate::read::columns::{self, at};
use crate::read::{Events, NONE, Placement, columns_of, gather, record_schema};
use demi_schemas::event::first_host_hint;

/// Most problems that an error lists.
const LISTED: usize = 5;

/// The clocks of a system.
#[derive(Default)]
pub(crate) struct LoggedClocks {
    /// By event: the actor's own entry, or 0 without a clock.
    own: Vec<u64>,
    /// By event: where its part of `grown` begins; one more entry closes the last.
    start: Vec<u64>,
    /// Entries of other actors that are new in a clock: the actor, and its count.
    grown: Vec<(u32, u64)>,
    /// By an event's actor and the actor of the entry: events with a new count there, in order.
    history: FxHashMap<(u32, u32), Vec<(u32, u64)>>,
    /// By actor: the actors its clocks have entries of.
    known: FxHashMap<u32, Vec<u32>>,
    /// By actor: whether each event has a clock and own entries never fall.
    sorted: Vec<bool>,
    /// What contradicts: the event, and why.
    problems: Vec<(u32, String)>,
    /// What is odd.
    warnings: Vec<String>,
}

/// Reading clocks, in the order of events.
struct ClockReader<'a> {
    events: &'a Events,
    clocks: LoggedClocks,
    /// Actor and incarnation whose clock is held.
    of: (u32, u32),
    now: FxHashMap<u32, u64>,
    own: u64,
    /// The own entry at the end of the incarnation before, from which a clock that outlives a restart goes on.
    before: u64,
    /// Names in clocks that have no log, with how often.
    strangers: BTreeMap<String, u64>,
    gaps: u64,
    first_gap: Option<u32>,
}

impl LoggedClocks {
    /// Reads the clocks of all events.
    pub(crate) fn read(
        files: &[SealedFile],
        events: &Events,
        placement: &Placement,
        scratch: &Path,
    ) -> Result<LoggedClocks, LineageError> {
        let wanted = columns_of(&record_schema(), &["vector_clock"]);
        let mut reader = ClockReader {
            events,
            clocks: LoggedClocks { start: vec![0], ..LoggedClocks::default() },
            of: (NONE, 0),
            now: FxHashMap::default(),
            own: 0,
            before: 0,
            strangers: BTreeMap::new(),
            gaps: 0,
            first_gap: None,
        };
        gather::columns_in_order(files, placement, scratch, &wanted, &mut |first, batch| {
            reader.batch(first, batch)
        })?;
        Ok(reader.finish())
    }

    /// The count of an actor in the clock of an event that has one.
    fn count(&self, events: &Events, event: u32, actor: u32) -> u64 {
        let owner = events.actor[event as usize];
        if owner == actor {
            return self.own[event as usize];
        }
        let Some(history) = self.history.get(&(owner, actor)) else { return 0 };
        let at = history.partition_point(|&(e, _)| e <= event);
        let incarnation_begins = |e: u32| events.places.get(e).0 == events.places.get(event).0;
        match at.checked_sub(1).map(|i| history[i]) {
            Some((e, count)) if incarnation_begins(e) => count,
            _ => 0,
        }
    }

    /// The event that a count of an actor names: its first with that count, else its last before. None where there is none.
    fn event_of(&self, events: &Events, actor: u32, count: u64) -> Option<u32> {
        let range = events.of_actor(actor);
        let own = &self.own[range.start as usize..range.end as usize];
        // Usually the count is the sequence number.
        let guess = usize::try_from(count).ok()?.checked_sub(1)?;
        if own.get(guess) == Some(&count) && (guess == 0 || own[guess - 1] != count) {
            return Some(range.start + guess as u32);
        }
        if self.sorted[actor as usize] {
            let at = own.partition_point(|&n| n < count);
            return match own.get(at) {
                Some(&n) if n == count => Some(range.start + at as u32),
                _ => at.checked_sub(1).map(|before| {
                    let first = own.partition_point(|&n| n < own[before]);
                    range.start + first as u32
                }),
            };
        }
        let named = own.iter().position(|&n| n == count);
        let below = || own.iter().rposition(|&n| n > 0 && n < count);
        named.or_else(below).map(|i| range.start + i as u32)
    }

    /// Adds the edges that only clocks tell, and compares clocks with the messages' edges.
    ///
    /// # Errors
    /// When clocks contradict each other.
    pub(crate) fn join(
        mut self,
        events: &Events,
        matching: &mut Matching,
    ) -> Result<Vec<String>, Vec<(u32, String)>> {
        let mut unknown_messages = (0_u64, None);
        let mut candidates: Vec<(u32, u32, u64)> = Vec::new();
        for e in 0..events.len() as u32 {
            if self.own[e as usize] == 0 {
                continue;
            }
            let mate = match matching.mate(e) {
                m if m != NONE && events.kind[e as usize].is_delivery() && self.own[m as usize] > 0 => m,
                _ => NONE,
            };
            candidates.clear();
            if mate != NONE {
                let (sender, sent) = (events.actor[mate as usize], self.own[mate as usize]);
                if self.count(events, e, sender) < sent {
                    if matching.certain[e as usize] {
                        unknown_messages.0 += 1;
                        unknown_messages.1 = unknown_messages.1.or(Some(e));
                    } else {
                        // Content suggested this send; the receiver had not heard of it.
                        matching.part(e);
                    }
                } else if sender != events.actor[e as usize] {
                    candidates.push((mate, sender, sent));
                }
            }
            let changes = self.start[e as usize] as usize..self.start[e as usize + 1] as usize;
            for &(actor, count) in &self.grown[changes] {
                match self.event_of(events, actor, count) {
                    Some(cause) if cause == mate => {}
                    Some(cause) => candidates.push((cause, actor, self.own[cause as usize].min(count))),
                    None => {}
                }
            }
            for &(cause, actor, count) in &candidates {
                let before_another = candidates.iter().any(|&(other, a, _)| {
                    other != cause && a != actor && self.count(events, other, actor) >= count
                        // Two that know each other contradict; neither may hide the other.
                        && self.count(events, cause, a) < self.own[other as usize]
                });
                if before_another {
                    continue;
                }
                if let Some(problem) = self.contradiction(events, cause, e) {
                    self.problems.push((e, problem));
                } else if cause != mate {
                    matching.add_extra(cause, e, Reason::Clock, true);
                }
            }
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        if let (n, Some(first)) = unknown_messages {
            self.warnings.push(format!(
                "the clocks of {n} receives do not know of the sends that their ids name (first {}); the order has both",
                events.name(first)
            ));
        }
        Ok(self.warnings)
    }

    /// Why `cause` cannot be before `effect`, if it cannot: what an event knows, all that follow it know.
    fn contradiction(&self, events: &Events, cause: u32, effect: u32) -> Option<String> {
        let (from, to) = (events.actor[cause as usize], events.actor[effect as usize]);
        if self.count(events, cause, to) >= self.own[effect as usize] {
            return Some(format!("it knows of {}, whose clock knows of it", events.name(cause)));
        }
        let known = self.known.get(&from)?;
        let missing = known
            .iter()
            .find(|&&a| a != to && self.count(events, cause, a) > self.count(events, effect, a))?;
        Some(format!(
            "it knows of {}, but of {} events of '{}' only {}",
            events.name(cause),
            self.count(events, cause, *missing),
            events.actor_name(*missing),
            self.count(events, effect, *missing)
        ))
    }
}

impl ClockReader<'_> {
    fn batch(&mut self, first: u32, batch: &RecordBatch) -> Result<(), LineageError> {
        let column = columns::text(batch, "vector_clock")?;
        for row in 0..batch.num_rows() {
            let e = first + row as u32;
            let own = match at(column, row) {
                None => 0,
                Some(text) => self.clock(e, text),
            };
            self.clocks.own.push(own);
            self.clocks.start.push(self.clocks.grown.len() as u64);
        }
        Ok(())
    }

    /// Takes the clock of an event; its own entry, or 0 if it has none.
    fn clock(&mut self, e: u32, text: &str) -> u64 {
        let actor = self.events.actor[e as usize];
        let incarnation = self.events.places.get(e).0;
        if self.of != (actor, incarnation) {
            self.before = if self.of.0 == actor { self.own.max(self.before) } else { 0 };
            (self.of, self.own) = ((actor, incarnation), 0);
            self.now.clear();
        }
        let mut problem = |why: String| self.clocks.problems.push((e, why));
        let clock: BTreeMap<String, u64> = match serde_json::from_str(text) {
            Ok(clock) => clock,
            Err(error) => {
                problem(format!("its clock cannot be read: {error}"));
                return 0;
            }
        };
        let name = self.events.actor_name(actor);
        let own = clock.get(name).copied().unwrap_or(0);
        if own == 0 {
            let hint = first_host_hint(name, clock.keys());
            problem(format!("its clock has no entry of its own actor, '{name}'{hint}"));
            return 0;
        }
        let before = self.clocks.grown.len();
        let (older, mut seen) = (self.now.len(), 0);
        for (other, &count) in &clock {
            let other = match self.events.find_actor(other) {
                Some(other) if other == actor => continue,
                Some(other) => other,
                None => {
                    *self.strangers.entry(other.clone()).or_default() += 1;
                    continue;
                }
            };
            if count == 0 {
                continue;
            }
            let known = self.now.entry(other).or_insert(0);
            seen += usize::from(*known > 0);
            if count < *known {
                let why = format!(
                    "its clock says {count} for '{}', after {known} in the same log",
                    self.events.actor_name(other)
                );
                self.clocks.problems.push((e, why));
            } else if count > *known {
                *known = count;
                self.clocks.grown.push((other, count));
                let history = self.clocks.history.entry((actor, other)).or_default();
                if history.is_empty() {
                    self.clocks.known.entry(actor).or_default().push(other);
                }
                history.push((e, count));
            }
        }
        let grew = self.clocks.grown.len() > before;
        if seen < older {
            self.clocks.problems.push((e, "its clock lacks entries that the clock before it had".into()));
        }
        if own < self.own || (own == self.own && grew) {
            let why = format!("its own entry is {own}, after {} in the same log", self.own);
            self.clocks.problems.push((e, why));
        } else if own > self.own + 1 && (self.own > 0 || own != self.before + 1) {
            self.gaps += 1;
            self.first_gap = self.first_gap.or(Some(e));
        }
        self.own = own.max(self.own);
        own
    }

    fn finish(mut self) -> LoggedClocks {
        let events = self.events;
        let sorted = |actor: u32| {
            let range = events.of_actor(actor);
            let own = &self.clocks.own[range.start as usize..range.end as usize];
            own.iter().all(|&n| n > 0) && own.is_sorted()
        };
        self.clocks.sorted = (0..events.actors.len() as u32).map(sorted).collect();
        if let Some(first) = self.first_gap {
            self.clocks.warnings.push(format!(
                "clocks skip own entries at {} events (first {}): events are missing there",
                self.gaps,
                self.events.name(first)
            ));
        }
        for (name, count) in self.strangers.iter().take(LISTED) {
            self.clocks
                .warnings
                .push(format!("{count} clocks name '{name}', which has no log; it is left out of the order"));
        }
        self.clocks
    }
}

/// The error of clocks that contradict, with the file and line of each of the first problems.
pub(crate) fn refuse(
    files: &[SealedFile],
    events: &Events,
    placement: &Placement,
    scratch: &Path,
    mut problems: Vec<(u32, String)>,
) -> LineageError {
    problems.sort();
    problems.dedup();
    let total = problems.len();
    problems.truncate(LISTED);
    let mut places: BTreeMap<u32, String> = BTreeMap::new();
    let wanted = columns_of(&record_schema(), &["source", "line"]);
    let found = gather::columns_in_order(files, placement, scratch, &wanted, &mut |first, batch| {
        let (source, line) = (columns::text(batch, "source")?, columns::long(batch, "line")?);
        for (e, _) in &problems {
            if let Some(row) = e.checked_sub(first).map(|r| r as usize).filter(|&r| r < batch.num_rows()) {
                let line = if line.is_valid(row) { format!(":{}", line.value(row)) } else { String::new() };
                places.insert(*e, format!("{}{line}", at(source, row).unwrap_or("?")));
            }
        }
        Ok(())
    });
    if let Err(error) = found {
        return error;
    }
    let shown: Vec<String> = problems
        .iter()
        .map(|(e, why)| {
            let place = places.get(e).map_or("?", String::as_str);
            format!("{place}: event {}: {why}", events.name(*e))
        })
        .collect();
    LineageError::Clocks { total: total as u64, shown: shown.join("\n  ") }
}
