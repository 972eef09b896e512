//! Joining each receive with its send, and each fired timer with its setting, by message id.

use std::collections::VecDeque;

use demi_schemas::event::{ANYONE, DEAD_LETTERS};
use demi_schemas::{Kind, Via};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::events::{Events, HAS_ID, is_send};
use crate::intern::NONE;

/// Why two events are taken for the two ends of one message, the least certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// There is no other end.
    None,
    /// From content, where messages were lost, repeated or had no order.
    Inferred,
    /// By position on an in-order channel.
    ChannelOrder,
    /// A timer of the actor's own.
    Timer,
    /// By message id.
    MessageId,
    /// By vector clocks, where no message tells it.
    Clock,
}

impl Reason {
    /// The word written in tables.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reason::None => "none",
            Reason::Inferred => "inferred",
            Reason::ChannelOrder => "channel_order",
            Reason::Timer => "timer",
            Reason::MessageId => "message_id",
            Reason::Clock => "clock",
        }
    }
}

/// What became of a message, at either of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Not a message, or a fired timer whose setting nobody logged.
    Local,
    /// Both ends are known.
    Matched,
    /// Sent, and not received by the end of the logs.
    InFlight,
    /// Sent, and overtaken for good on a channel that is in order.
    Lost,
    /// Received, and the send must be where a log is missing.
    SenderMissing,
    /// Received again.
    Duplicate,
    /// Received from outside, and the send is in no log.
    External,
}

impl Status {
    /// The word written in tables.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Local => "local",
            Status::Matched => "matched",
            Status::InFlight => "in_flight",
            Status::Lost => "lost",
            Status::SenderMissing => "sender_missing",
            Status::Duplicate => "duplicate",
            Status::External => "external",
        }
    }
}

/// The edges between sends and receives.
pub(crate) struct Matching {
    /// By event: the other end, or [`NONE`].
    pub(crate) mate: Vec<u32>,
    /// By event: what became of the message.
    pub(crate) status: Vec<Status>,
    /// By event: why it was matched.
    pub(crate) reason: Vec<Reason>,
    /// By event: whether no other match is possible.
    pub(crate) certain: Vec<bool>,
    /// Further edges, sorted by the later event: the earlier event and the later. A message that several received has one for
    /// each receive but the first; the others are told by vector clocks.
    pub(crate) extra: Vec<(u32, u32)>,
    /// By entry of `extra`: why it is there.
    pub(crate) extra_reason: Vec<Reason>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

impl Matching {
    /// No edges yet.
    pub(crate) fn none(events: usize) -> Matching {
        Matching {
            mate: vec![NONE; events],
            status: vec![Status::Local; events],
            reason: vec![Reason::None; events],
            certain: vec![false; events],
            extra: Vec::new(),
            extra_reason: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Joins a send and a receive.
    pub(crate) fn join(&mut self, send: u32, receive: u32, reason: Reason, certain: bool) {
        for (e, other) in [(send as usize, receive), (receive as usize, send)] {
            self.mate[e] = other;
            self.status[e] = Status::Matched;
            self.reason[e] = reason;
            self.certain[e] = certain;
        }
    }

    /// Adds an edge beside those of mates. [`Matching::sort_extra`] must follow the last one.
    pub(crate) fn add_extra(&mut self, cause: u32, effect: u32, reason: Reason) {
        self.extra.push((cause, effect));
        self.extra_reason.push(reason);
    }

    /// Brings further edges into the order of their later events.
    pub(crate) fn sort_extra(&mut self) {
        let mut all: Vec<_> = self.extra.drain(..).zip(self.extra_reason.drain(..)).collect();
        all.sort_unstable_by_key(|&((cause, effect), reason)| (effect, cause, reason));
        all.dedup_by_key(|(edge, _)| *edge);
        (self.extra, self.extra_reason) = all.into_iter().unzip();
    }

    /// The further edges into an event, with their reasons.
    pub(crate) fn extra_into(&self, effect: u32) -> impl Iterator<Item = (u32, Reason)> + '_ {
        let from = self.extra.partition_point(|&(_, e)| e < effect);
        let edges = self.extra[from..].iter().zip(&self.extra_reason[from..]);
        edges.take_while(move |((_, e), _)| *e == effect).map(|((cause, _), reason)| (*cause, *reason))
    }

    /// Whether an end of a message has no other end yet, and may have one.
    pub(crate) fn is_open(&self, e: u32) -> bool {
        self.mate[e as usize] == NONE
            && !matches!(self.status[e as usize], Status::Duplicate | Status::Matched)
    }

    /// Drops the further edges into an event that are there for `reason`.
    pub(crate) fn drop_extra(&mut self, effect: u32, reason: Reason) {
        let keep: Vec<bool> = self
            .extra
            .iter()
            .zip(&self.extra_reason)
            .map(|(&(_, e), &r)| e != effect || r != reason)
            .collect();
        let mut kept = keep.iter();
        self.extra.retain(|_| *kept.next().unwrap_or(&true));
        let mut kept = keep.iter();
        self.extra_reason.retain(|_| *kept.next().unwrap_or(&true));
    }

    /// Parts a receive from its send, because the order of events contradicts the edge.
    pub(crate) fn part(&mut self, receive: u32) {
        let send = std::mem::replace(&mut self.mate[receive as usize], NONE);
        if send != NONE {
            self.mate[send as usize] = NONE;
            self.status[send as usize] = Status::InFlight;
            self.reason[send as usize] = Reason::None;
        } else {
            self.drop_extra(receive, Reason::MessageId);
        }
        self.status[receive as usize] = Status::SenderMissing;
        self.reason[receive as usize] = Reason::None;
    }
}

/// The sender's name as receivers log it: messages put through a scheduler come from nobody.
pub(crate) fn sender_name(events: &Events, send: u32, dead_letters: u32) -> u32 {
    match events.via(send) {
        Some(Via::Scheduler) => dead_letters,
        _ => match events.from[send as usize] {
            NONE => events.actors[events.actor[send as usize] as usize],
            from => from,
        },
    }
}

/// The name for messages that no actor sent.
pub(crate) fn dead_letters(events: &Events) -> u32 {
    events.names.find(DEAD_LETTERS).unwrap_or(NONE - 1)
}

/// Joins by message id. An id used by several sends is told apart by addresses, type and content, then by order.
pub(crate) fn by_id(events: &Events, matching: &mut Matching) {
    let hash = |e: u32| events.id[e as usize] as u64;
    let sends =
        (0..events.len() as u32).filter(|e| is_send(events.kind[*e as usize]) && events.has(*e, HAS_ID));
    let mut table: HashTable<u32> = HashTable::with_capacity(sends.count());
    let mut reused: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let ids = |e: &u32| events.has(*e, HAS_ID);
    for e in (0..events.len() as u32).filter(|e| is_send(events.kind[*e as usize])).filter(ids) {
        match table.find(hash(e), |&f| events.id[f as usize] == events.id[e as usize]) {
            Some(&f) => reused.entry(f).or_insert_with(|| vec![f]).push(e),
            None => {
                table.insert_unique(hash(e), e, |&f| hash(f));
            }
        }
    }
    let mut shared: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut elsewhere = Vec::new();
    let mut received: FxHashSet<(u32, u32)> = FxHashSet::default();
    for e in (0..events.len() as u32).filter(|e| events.kind[*e as usize].is_delivery()).filter(ids) {
        let Some(&send) = table.find(hash(e), |&f| events.id[f as usize] == events.id[e as usize]) else {
            continue;
        };
        if reused.contains_key(&send) {
            shared.entry(send).or_default().push(e);
        } else if matching.mate[send as usize] != NONE {
            further_receive(events, matching, send, e, &mut received);
        } else if events.receiver(send) == events.actor[e as usize] || events.receiver(send) == NONE {
            matching.join(send, e, id_reason(events, send), true);
        } else {
            elsewhere.push((send, e));
        }
    }
    for (send, e) in elsewhere {
        if matching.mate[send as usize] == NONE {
            matching.join(send, e, id_reason(events, send), true);
        } else {
            further_receive(events, matching, send, e, &mut received);
        }
    }
    if let Some(first) = reused.keys().min() {
        matching.warnings.push(format!(
            "{} message ids are used by more than one send (the first at {}); they were told apart by content",
            reused.len(),
            events.name(*first)
        ));
    }
    let mut groups: Vec<_> = shared.into_iter().collect();
    groups.sort_unstable();
    for (first, receives) in groups {
        resolve(events, matching, &reused[&first], &receives);
    }
}

/// A receive of a message that was received before: of one sent to several by each of them once, else a duplicate.
fn further_receive(
    events: &Events,
    matching: &mut Matching,
    send: u32,
    receive: u32,
    received: &mut FxHashSet<(u32, u32)>,
) {
    let i = receive as usize;
    let to_anyone = events.to[send as usize] != NONE && events.names.text(events.to[send as usize]) == ANYONE;
    let first = events.actor[matching.mate[send as usize] as usize] != events.actor[i]
        && received.insert((send, events.actor[i]));
    if to_anyone && first {
        matching.status[i] = Status::Matched;
        matching.reason[i] = Reason::MessageId;
        matching.certain[i] = true;
        matching.add_extra(send, receive, Reason::MessageId);
    } else {
        matching.status[i] = Status::Duplicate;
    }
}

fn id_reason(events: &Events, send: u32) -> Reason {
    if events.kind[send as usize] == Kind::TimerSet { Reason::Timer } else { Reason::MessageId }
}

/// Tells the sends of one id apart: equal in everything first, then to the same receiver, each in order.
fn resolve(events: &Events, matching: &mut Matching, sends: &[u32], receives: &[u32]) {
    let nobody = dead_letters(events);
    let mut exact: FxHashMap<_, VecDeque<u32>> = FxHashMap::default();
    let mut to: FxHashMap<u32, VecDeque<u32>> = FxHashMap::default();
    for &s in sends {
        let i = s as usize;
        let key = (sender_name(events, s, nobody), events.receiver(s), events.type_[i], events.content[i]);
        exact.entry(key).or_default().push_back(s);
        to.entry(events.receiver(s)).or_default().push_back(s);
    }
    let mut left = Vec::new();
    for &r in receives {
        let i = r as usize;
        let key = (events.from[i], events.actor[i], events.type_[i], events.content[i]);
        match exact.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(s) => matching.join(s, r, id_reason(events, s), false),
            None => left.push(r),
        }
    }
    for r in left {
        let queue = to.get_mut(&events.actor[r as usize]);
        let free = queue
            .and_then(|q| std::iter::from_fn(|| q.pop_front()).find(|&s| matching.mate[s as usize] == NONE));
        match free {
            Some(s) => matching.join(s, r, Reason::Inferred, false),
            None => matching.status[r as usize] = Status::Duplicate,
        }
    }
}
