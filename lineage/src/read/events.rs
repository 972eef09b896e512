//! All events of a system, column-wise and in each actor's own order: 26 bytes an event, 14 after matching.

use demi_schemas::event::{COUNTED_AFTER_LOSS_ID, COUNTED_ID, ENVIRONMENT, is_clock_seq};
use demi_schemas::{EventId, Kind, Via};
use xxhash_rust::xxh3::xxh3_128;

use super::intern::{Interner, NONE};

/// Bits of [`Events::flags`].
pub(crate) const EXTERNAL: u8 = 1;
/// The record says that the message is not external.
pub(crate) const INTERNAL: u8 = 2;
/// The record has a `msg_id`.
pub(crate) const HAS_ID: u8 = 4;
const VIA_SHIFT: u8 = 3;
const VIA_MASK: u8 = 0b111;
/// The `msg_id` was made by counting.
pub(crate) const COUNTED: u8 = 64;
/// The `msg_id` was made by taking the earliest send of equal key.
pub(crate) const EARLIEST: u8 = 128;

/// The flag bits of a `via`.
pub(crate) fn via_bits(via: Option<Via>) -> u8 {
    let code = match via {
        None => 0,
        Some(Via::Forward) => 1,
        Some(Via::Scheduler) => 2,
        Some(Via::Thread) => 3,
        Some(Via::Ask) => 4,
    };
    code << VIA_SHIFT
}

/// 95 bits of the hash of a message id: of 10^8 ids two are alike with a probability below 10^-12. One bit says whether it is wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IdHash([u32; 3]);

/// The bit of an [`IdHash`] that says so.
const WIDE: u32 = 1 << 31;
/// Hexadecimal digits of a wide id: 64 bits.
const WIDE_DIGITS: usize = 16;

/// Whether an id holds a number of 64 bits or more in hexadecimal digits, with or without dashes. A count filled with zeros has no letters.
fn is_wide(id: &str) -> bool {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    id.len() >= WIDE_DIGITS
        && id.split(|c| !is_part(c)).any(|run| {
            let digits = run.bytes().filter(u8::is_ascii_hexdigit).count();
            let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
            digits >= WIDE_DIGITS && letters > 0 && letters < digits
        })
}

impl IdHash {
    /// The hash of an id.
    pub(crate) fn of(id: &str) -> IdHash {
        let hash = match id.strip_prefix(COUNTED_AFTER_LOSS_ID) {
            Some(counted) => xxh3_128(format!("{COUNTED_ID}{counted}").as_bytes()),
            None => xxh3_128(id.as_bytes()),
        };
        let last = (hash >> 64) as u32 & !WIDE;
        IdHash([hash as u32, (hash >> 32) as u32, if is_wide(id) { last | WIDE } else { last }])
    }

    /// The id of a timer of an actor: those of others, and messages, may have the same.
    pub(crate) fn of_timer(self, actor: &str) -> IdHash {
        let with = IdHash::of(actor).0;
        IdHash(std::array::from_fn(|i| self.0[i] ^ with[i].rotate_left(7)))
    }

    /// Whether it was made to be the only one in the world: a random number or a trace context, no count of a process.
    pub(crate) fn is_wide(self) -> bool {
        self.0[2] & WIDE != 0
    }

    /// Its size, in bytes.
    pub(crate) const SIZE: usize = 12;

    /// Its bytes.
    pub(crate) fn bytes(self) -> [u8; IdHash::SIZE] {
        std::array::from_fn(|i| self.0[i / 4].to_le_bytes()[i % 4])
    }

    /// From its bytes, of which there are [`IdHash::SIZE`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> IdHash {
        let number = |i: usize| bytes[4 * i..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        IdHash([number(0), number(1), number(2)])
    }

    /// Which of so many parts it is in, which are a power of two. What it tells besides tells nothing of that.
    pub(crate) fn part(self, parts: usize) -> usize {
        self.0[2] as usize & (parts - 1)
    }

    /// 64 bits of it.
    pub(crate) fn short(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// Incarnations and sequence numbers, held as runs of events that follow each other: 16 bytes a run, and a log without gaps is one.
#[derive(Default)]
pub(crate) struct NameRuns {
    runs: Vec<NameRun>,
}

/// A run of names that follow each other.
struct NameRun {
    first: u32,
    incarnation: u32,
    seq: u64,
}

impl NameRuns {
    /// Adds the place of the next event; `begins` says that it is the first of a log.
    pub(crate) fn push(&mut self, event: u32, (incarnation, seq): (u32, u64), begins: bool) {
        let follows = self.runs.last().is_some_and(|r| {
            r.incarnation == incarnation && r.seq.checked_add(u64::from(event - r.first)) == Some(seq)
        });
        if begins || !follows {
            self.runs.push(NameRun { first: event, incarnation, seq });
        }
    }

    /// Adds the runs of a log whose events were numbered from 0, and are numbered from `first` on.
    pub(crate) fn append(&mut self, log: NameRuns, first: u32) {
        self.runs.extend(log.runs.into_iter().map(|run| NameRun { first: run.first + first, ..run }));
    }

    /// Incarnation and sequence number of an event.
    pub(crate) fn get(&self, event: u32) -> (u32, u64) {
        let at = self.runs.partition_point(|r| r.first <= event);
        let run = at.checked_sub(1).and_then(|i| self.runs.get(i));
        run.map_or((0, 0), |r| (r.incarnation, r.seq + u64::from(event - r.first)))
    }

    /// The runs: incarnation, sequence number and number of the first event of each.
    pub(crate) fn runs(&self) -> impl ExactSizeIterator<Item = (u32, u64, u32)> + '_ {
        self.runs.iter().map(|r| (r.incarnation, r.seq, r.first))
    }
}

/// Events sorted by actor name, incarnation and sequence number, except where a parent of a span comes before its child; an event is known by
/// its index.
#[derive(Default)]
pub(crate) struct Events {
    /// Actor names and addresses.
    pub(crate) names: Interner,
    /// Name of each actor that has a log, sorted by text.
    pub(crate) actors: Vec<u32>,
    /// First event of each actor; one more entry closes the last.
    pub(crate) first: Vec<u32>,
    /// By name: the actor's number, or [`NONE`] where no log has that owner.
    pub(crate) actor_of_name: Vec<u32>,
    /// Number of the actor.
    pub(crate) actor: Vec<u32>,
    /// Incarnation of the actor, and sequence number in the log of that incarnation.
    pub(crate) places: NameRuns,
    /// What it was.
    pub(crate) kind: Vec<Kind>,
    /// External or not, whether there is an id, and how it was sent.
    pub(crate) flags: Vec<u8>,
    /// Name of the sender as logged.
    pub(crate) from: Vec<u32>,
    /// Name of the receiver as logged.
    pub(crate) to: Vec<u32>,
    /// Hash of the message id; emptied after matching.
    pub(crate) id: Vec<IdHash>,
    /// Number of the actor named `_environment`, or [`NONE`].
    pub(crate) environment: u32,
    /// `fields` of `violation` records, by event.
    pub(crate) violations: Vec<(u32, Option<String>)>,
}

impl Events {
    /// Number of the actor named `_environment`, or [`NONE`].
    pub(crate) fn environment(&self) -> u32 {
        self.environment
    }
}

impl Events {
    /// Makes room for so many events.
    pub(super) fn reserve(&mut self, events: usize) {
        self.actor.reserve_exact(events);
        self.kind.reserve_exact(events);
        self.flags.reserve_exact(events);
        self.from.reserve_exact(events);
        self.to.reserve_exact(events);
        self.id.reserve_exact(events);
    }

    /// Finds the log that stands for the environment.
    pub(super) fn find_environment(&mut self) {
        let actor = |name: u32| self.actor_of_name.get(name as usize).copied();
        self.environment = self.names.find(ENVIRONMENT).and_then(actor).unwrap_or(NONE);
    }

    /// How many events there are.
    pub(crate) fn len(&self) -> usize {
        self.kind.len()
    }

    /// How the message was sent, where that is special.
    pub(crate) fn via(&self, e: u32) -> Option<Via> {
        match (self.flags[e as usize] >> VIA_SHIFT) & VIA_MASK {
            1 => Some(Via::Forward),
            2 => Some(Via::Scheduler),
            3 => Some(Via::Thread),
            4 => Some(Via::Ask),
            _ => None,
        }
    }

    /// Whether the event's record has a flag.
    pub(crate) fn has(&self, e: u32, flag: u8) -> bool {
        self.flags[e as usize] & flag != 0
    }

    /// Whether the event is in the environment's log.
    pub(crate) fn in_environment(&self, e: u32) -> bool {
        self.actor[e as usize] == self.environment
    }

    /// The events of an actor.
    pub(crate) fn of_actor(&self, actor: u32) -> std::ops::Range<u32> {
        self.first[actor as usize]..self.first[actor as usize + 1]
    }

    /// The actor's name.
    pub(crate) fn actor_name(&self, actor: u32) -> &str {
        self.actors.get(actor as usize).map_or("", |&name| self.names.text(name))
    }

    /// The number of the actor of that name, if it has a log.
    pub(crate) fn find_actor(&self, name: &str) -> Option<u32> {
        let actor = self.actor_of_name[self.names.find(name)? as usize];
        (actor != NONE).then_some(actor)
    }

    /// The event of that name, if there is one.
    pub(crate) fn find(&self, id: &EventId) -> Option<u32> {
        let actor = self.find_actor(&id.actor)?;
        let key = (id.incarnation, id.seq);
        let found = self.first_not(actor, |place| place < key);
        if found < self.of_actor(actor).end && self.places.get(found) == key {
            return Some(found);
        }
        // Spans may stand in the order of their parents instead of that of their stamps.
        is_clock_seq(id.seq).then(|| self.of_actor(actor).find(|&e| self.places.get(e) == key))?
    }

    /// The first event of an actor whose incarnation and sequence number do not fulfil `holds`, which is true for the first ones and then no
    /// more; the end of its events where all do.
    pub(crate) fn first_not(&self, actor: u32, holds: impl Fn((u32, u64)) -> bool) -> u32 {
        let range = self.of_actor(actor);
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.places.get(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The event's name.
    pub(crate) fn name(&self, e: u32) -> EventId {
        let (incarnation, seq) = self.places.get(e);
        EventId { actor: self.actor_name(self.actor[e as usize]).to_owned(), incarnation, seq }
    }

    /// Names of the actors that are no mere recorders.
    pub(crate) fn ordinary_actors(&self) -> impl Iterator<Item = &str> {
        self.actors
            .iter()
            .map(|&n| self.names.text(n))
            .filter(|n| *n != ENVIRONMENT && *n != demi_schemas::event::MONITOR)
    }

    /// The actor's name among receivers: who a message to that address reaches, or [`NONE`].
    pub(crate) fn receiver(&self, e: u32) -> u32 {
        match self.to[e as usize] {
            NONE => NONE,
            name => self.actor_of_name[name as usize],
        }
    }
}

/// Whether events of this kind put a message or timer on its way.
pub(crate) fn is_send(kind: Kind) -> bool {
    matches!(kind, Kind::Send | Kind::TimerSet)
}
