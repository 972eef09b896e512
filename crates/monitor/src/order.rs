//! The order in which records are taken: each beginning of it is a consistent cut.
//!
//! A record waits until those before it in its own log are taken, and a receive until its send is (K. M. Chandy and L. Lamport,
//! "Distributed snapshots", ACM TOCS 3(1), 1985, section 3: a cut is consistent if it has no receive without its send). No clock is
//! needed and no actor is asked. A handler is one step: the state record behind its sends counts as told before they arrive. What waits too long, or when too much waits, is taken anyway; then its actor is uncertain.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use demi_schemas::event::is_clock_seq;
use rustc_hash::FxHashMap;

use crate::Recent;
use crate::interest::{MatchKey, Record, Step};

/// Records that may be remembered to have waited beside those that do.
const FEW: usize = 1024;

/// An item that the order releases.
#[derive(Debug)]
pub(crate) enum Released {
    /// A record. `certain` says that nothing before it is missing.
    Record { actor: usize, record: Record, certain: bool },
    /// The handler of an actor is done.
    Done { actor: usize },
}

/// A record that waits.
#[derive(Clone, Debug)]
struct WaitingRecord {
    record: Record,
    /// The frame that it came with, and when.
    lsn: u64,
    since: u64,
}

/// The log of an actor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) incarnation: u32,
    /// The next sequence number; 0 where nothing is known of the log.
    pub(crate) next: u64,
    /// Whether records of it were lost, so that whatever comes next follows.
    pub(crate) lost: bool,
    held: BTreeMap<(u32, u64), WaitingRecord>,
    /// Sends of the handler at work, which receives find when it is done: the state that it leaves may be told behind them.
    pub(crate) unsent: Vec<MatchKey>,
    /// When the first of them came.
    pub(crate) unsent_since: u64,
    /// Whether the actor tells states. Nobody waits for those of one that does not.
    pub(crate) tells: bool,
    /// Whether a handler is at work, and when it last did something.
    pub(crate) at_work: Option<u64>,
    /// When it last said something, counted in records.
    pub(crate) used: u64,
}

/// Logs, and what waits for what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    /// By number: the actor; empty where one was forgotten.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) logs: Vec<Log>,
    numbers: FxHashMap<Arc<str>, usize>,
    /// Numbers of actors that were forgotten, to be given to others.
    free: Vec<usize>,
    /// Whether actors were forgotten: one that nothing is known of may be one of them, and goes on wherever it goes on.
    pub(crate) has_forgotten: bool,
    /// How many records came.
    pub(crate) records: u64,
    /// Actors that are at work, or whose sends are not announced.
    busy: BTreeSet<usize>,
    /// Messages that are on their way.
    pub(crate) sent: Recent<()>,
    /// Messages that came in: they may come in again.
    received: Recent<()>,
    /// By channel: messages sent less messages received.
    pub(crate) channels: Recent<i64>,
    /// By message: the actors whose next record receives it.
    waiting: FxHashMap<u64, Vec<usize>>,
    /// What waits, with the time since when, the oldest first.
    since: VecDeque<(u64, usize, (u32, u64))>,
    pub(crate) held: usize,
    /// Whether handlers are told of when they are done. Receives then find their sends not before.
    by_handler: bool,
    /// Whether a channel has had more receives than sends: nothing is certain then.
    pub(crate) channels_failed: bool,
}

/// The reason why the next record of a log waits.
enum Blocked {
    Nothing,
    Gap,
    Message(MatchKey),
}

impl Order {
    pub(crate) fn new(by_handler: bool) -> Order {
        Order { by_handler, ..Order::default() }
    }

    /// The number of an actor.
    pub(crate) fn number(&mut self, name: &Arc<str>) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let log = Log { lost: self.has_forgotten, ..Log::default() };
        let number = match self.free.pop() {
            Some(number) => {
                (self.names[number], self.logs[number]) = (name.clone(), log);
                number
            }
            None => {
                self.names.push(name.clone());
                self.logs.push(log);
                self.logs.len() - 1
            }
        };
        self.numbers.insert(name.clone(), number);
        number
    }

    /// How many actors are known.
    pub(crate) fn actors(&self) -> usize {
        self.numbers.len()
    }

    /// The actors that can be forgotten: nothing of them waits, and they are not at work.
    pub(crate) fn idle(&self) -> impl Iterator<Item = usize> {
        let idle = |number: &usize| self.logs[*number].held.is_empty() && !self.busy.contains(number);
        self.numbers.values().copied().filter(idle)
    }

    /// Forgets actors.
    pub(crate) fn forget(&mut self, actors: &[usize]) {
        for number in actors {
            let name = std::mem::replace(&mut self.names[*number], Arc::from(""));
            self.numbers.remove(&name);
            self.logs[*number] = Log::default();
        }
        self.free.extend(actors.iter().rev());
        self.has_forgotten = true;
        // What is there of a number is of the actor that has it next.
        let logs = &self.logs;
        self.since.retain(|(_, actor, place)| logs[*actor].held.contains_key(place));
    }

    /// The number of an actor that is known.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Takes up an actor as it was saved.
    pub(crate) fn resume(&mut self, number: usize) {
        let log = &self.logs[number];
        self.records = self.records.max(log.used);
        if log.at_work.is_some() || !log.unsent.is_empty() {
            self.busy.insert(number);
        }
    }

    /// The first frame that a record which waits came with.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.logs.iter().flat_map(|log| log.held.values()).map(|held| held.lsn).min()
    }

    /// Takes in a record, at a time in milliseconds. What was taken before is passed over.
    pub(crate) fn push(&mut self, record: Record, lsn: u64, now: u64, out: &mut Vec<Released>) {
        let actor = self.number(&record.actor);
        let place = (record.incarnation, record.seq);
        self.records += 1;
        let log = &mut self.logs[actor];
        log.used = self.records;
        if log.next > 0 && place < (log.incarnation, log.next) {
            return;
        }
        if log.held.is_empty() && matches!(self.blocked(actor, &record), Blocked::Nothing) {
            let mut queue = Vec::new();
            self.take(actor, record, true, now, &mut queue, out);
            return self.advance(queue, out);
        }
        let log = &mut self.logs[actor];
        if let std::collections::btree_map::Entry::Vacant(entry) = log.held.entry(place) {
            entry.insert(WaitingRecord { record, lsn, since: now });
            self.held += 1;
            self.since.push_back((now, actor, place));
            if self.since.len() > 2 * self.held + FEW {
                let logs = &self.logs;
                self.since.retain(|(_, actor, place)| logs[*actor].held.contains_key(place));
            }
            self.advance(vec![actor], out);
        }
    }

    /// Takes what has waited since before `until`, and the oldest while more than `most` wait. Handlers of which nothing came since
    /// `quiet` are done. Times are in milliseconds.
    pub(crate) fn tick(&mut self, until: u64, quiet: u64, most: usize, out: &mut Vec<Released>) {
        self.end_quiet(quiet, out);
        while let Some(&(since, actor, place)) = self.since.front() {
            let log = &self.logs[actor];
            if !log.held.contains_key(&place) {
                self.since.pop_front();
                continue;
            }
            if since >= until && self.held <= most {
                break;
            }
            // All that stands before it in its log goes with it.
            self.force(actor, out);
            self.end_quiet(quiet, out);
        }
    }

    fn end_quiet(&mut self, quiet: u64, out: &mut Vec<Released>) {
        let by_handler = self.by_handler;
        let is_quiet = |log: &Log| match by_handler {
            true => log.at_work.is_some_and(|since| since < quiet),
            false => !log.unsent.is_empty() && log.unsent_since < quiet,
        };
        // The end of one lets others go on that are as quiet.
        loop {
            let ends: Vec<usize> =
                self.busy.iter().copied().filter(|actor| is_quiet(&self.logs[*actor])).collect();
            if ends.is_empty() {
                return;
            }
            for actor in ends {
                if is_quiet(&self.logs[actor]) {
                    let mut queue = Vec::new();
                    self.done(actor, &mut queue, out);
                    self.advance(queue, out);
                }
            }
        }
    }

    /// Records were lost: what waits is given up, and each log goes on wherever it goes on.
    pub(crate) fn lose(&mut self) {
        for log in &mut self.logs {
            log.held.clear();
            log.unsent.clear();
            log.tells = false;
            (log.lost, log.at_work) = (true, None);
        }
        self.held = 0;
        self.since.clear();
        self.waiting.clear();
        self.busy.clear();
    }

    fn force(&mut self, actor: usize, out: &mut Vec<Released>) {
        let Some((place, held)) = self.logs[actor].held.pop_first() else { return };
        self.held -= 1;
        let mut queue = Vec::new();
        if let Blocked::Message(way) = self.blocked(actor, &held.record) {
            self.channels_failed |= matches!(way, MatchKey::Channel(_));
            for key in way.keys() {
                if let Some(waiting) = self.waiting.get_mut(&key) {
                    waiting.retain(|waits| *waits != actor);
                    if waiting.is_empty() {
                        self.waiting.remove(&key);
                    }
                }
            }
        }
        debug_assert_eq!(place.1, held.record.seq);
        self.take(actor, held.record, false, held.since, &mut queue, out);
        queue.push(actor);
        self.advance(queue, out);
    }

    /// Takes the next records of these logs, and of those that waited for them.
    fn advance(&mut self, mut queue: Vec<usize>, out: &mut Vec<Released>) {
        while let Some(actor) = queue.pop() {
            while let Some((_, held)) = self.logs[actor].held.first_key_value() {
                let mut blocked = self.blocked(actor, &held.record);
                let ends = self.by_handler || !self.logs[actor].unsent.is_empty();
                if held.record.is_head() && ends && !matches!(blocked, Blocked::Gap) {
                    let record = held.record.clone();
                    self.done(actor, &mut queue, out);
                    // It may have been its own handler that sent it.
                    blocked = self.blocked(actor, &record);
                }
                match blocked {
                    Blocked::Nothing => {}
                    Blocked::Gap => break,
                    Blocked::Message(way) => {
                        for key in way.keys() {
                            let waiting = self.waiting.entry(key).or_default();
                            if !waiting.contains(&actor) {
                                waiting.push(actor);
                            }
                        }
                        break;
                    }
                }
                let Some((_, held)) = self.logs[actor].held.pop_first() else { break };
                self.held -= 1;
                self.take(actor, held.record, true, held.since, &mut queue, out);
            }
        }
    }

    fn blocked(&self, actor: usize, record: &Record) -> Blocked {
        let log = &self.logs[actor];
        let follows = match log.next {
            _ if log.lost => true,
            0 => record.seq <= 1,
            _ if record.incarnation > log.incarnation => record.seq <= 1,
            next => record.seq == next,
        };
        if !follows && !is_clock_seq(record.seq) {
            return Blocked::Gap;
        }
        let Step::Receive(way, _) = record.step else { return Blocked::Nothing };
        let found = match way {
            MatchKey::Outside => true,
            MatchKey::Id { one, all } => {
                let known = |key| self.sent.get(key).is_some() || self.received.get(key).is_some();
                known(one) || known(all)
            }
            MatchKey::Channel(key) => self.channels.get(key).is_some_and(|left| *left > 0),
        };
        if found { Blocked::Nothing } else { Blocked::Message(way) }
    }

    fn take(
        &mut self,
        actor: usize,
        record: Record,
        certain: bool,
        came: u64,
        queue: &mut Vec<usize>,
        out: &mut Vec<Released>,
    ) {
        if record.is_head() {
            self.done(actor, queue, out);
        }
        let log = &mut self.logs[actor];
        (log.incarnation, log.next) = (record.incarnation, record.seq.saturating_add(1));
        log.lost = false;
        if self.by_handler {
            log.at_work = Some(came);
            self.busy.insert(actor);
        }
        let ends = record.state.is_some() && !self.by_handler;
        log.tells |= record.state.is_some();
        match record.step {
            Step::Send(way, _) if self.by_handler || log.tells => {
                if log.unsent.is_empty() {
                    log.unsent_since = came;
                }
                log.unsent.push(way);
                self.busy.insert(actor);
            }
            Step::Send(way, _) => self.announce(way, queue),
            Step::Receive(MatchKey::Id { one, all }, _) => self.came_in(one, all),
            Step::Receive(MatchKey::Channel(key), _) => self.count(key, -1),
            _ => {}
        }
        if ends {
            // The state that a handler leaves is the last that it tells.
            self.announce_all(actor, queue);
        }
        out.push(Released::Record { actor, record, certain });
    }

    /// A message came in that was sent to one actor: it may come in again.
    fn came_in(&mut self, one: u64, all: u64) {
        if self.sent.get(all).is_none() && self.sent.remove(one).is_some() {
            self.received.insert(one, ());
        }
    }

    /// Adds to the messages that are on their way on a channel.
    fn count(&mut self, channel: u64, more: i64) {
        let left = self.channels.remove(channel).unwrap_or(0) + more;
        if left != 0 {
            self.channels.insert(channel, left);
        }
    }

    /// A handler is done: what it sent can be received.
    fn done(&mut self, actor: usize, queue: &mut Vec<usize>, out: &mut Vec<Released>) {
        if self.by_handler {
            if self.logs[actor].at_work.take().is_none() {
                return;
            }
            out.push(Released::Done { actor });
        }
        self.announce_all(actor, queue);
    }

    fn announce_all(&mut self, actor: usize, queue: &mut Vec<usize>) {
        if self.logs[actor].at_work.is_none() {
            self.busy.remove(&actor);
        }
        for way in std::mem::take(&mut self.logs[actor].unsent) {
            self.announce(way, queue);
        }
    }

    fn announce(&mut self, way: MatchKey, queue: &mut Vec<usize>) {
        let key = match way {
            MatchKey::Id { one, .. } => {
                self.sent.insert(one, ());
                one
            }
            MatchKey::Channel(key) => {
                self.count(key, 1);
                key
            }
            MatchKey::Outside => return,
        };
        if let Some(waiting) = self.waiting.remove(&key) {
            queue.extend(waiting);
        }
    }
}

impl MatchKey {
    /// What a receive waits for.
    fn keys(self) -> impl Iterator<Item = u64> {
        let (one, all) = match self {
            MatchKey::Id { one, all } => (Some(one), Some(all)),
            MatchKey::Channel(key) => (Some(key), None),
            MatchKey::Outside => (None, None),
        };
        one.into_iter().chain(all)
    }
}
