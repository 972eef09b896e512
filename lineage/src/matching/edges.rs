//! The edges between sends and receives: who was joined with whom, why, and what became of the rest.

use rayon::prelude::*;

use crate::read::NONE;

/// The reason to join two events as the ends of one message, the least certain first.
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
    /// By a span and its parent in another log, where no message tells it.
    Parent,
    /// By a link of a span to one in another log, where nothing else tells it.
    Link,
    /// By operations of threads: a lock that one gave back and another one took, a notification, the beginning and the end of a thread.
    Operation,
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
            Reason::Parent => "parent",
            Reason::Link => "link",
            Reason::Operation => "operation",
        }
    }

    /// Whether it is of an edge that is no message.
    pub(crate) fn is_no_message(self) -> bool {
        matches!(self, Reason::Clock | Reason::Parent | Reason::Link | Reason::Operation)
    }
}

/// The evidence for a further edge: its reason, and whether it is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Evidence {
    pub(crate) reason: Reason,
    pub(crate) certain: bool,
}

impl Evidence {
    /// Whether it is of an edge that is no message, certain or not as asked.
    pub(crate) fn is_order(self, certain: bool) -> bool {
        self.reason.is_no_message() && self.certain == certain
    }
}

/// The fate of a message, at either of its ends.
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
    /// Nothing was sent or received: an order that clocks, parents, links or operations of threads tell.
    Order,
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
            Status::Order => "order",
        }
    }

    /// That of a further edge.
    pub(crate) fn of_edge(reason: Reason) -> Status {
        if reason.is_no_message() { Status::Order } else { Status::Matched }
    }
}

/// The edges between sends and receives.
pub(crate) struct Matching {
    /// By event: the other end, or [`NONE`].
    mate: Vec<u32>,
    /// By event: what became of the message.
    pub(crate) status: Vec<Status>,
    /// By event: why it was matched.
    pub(crate) reason: Vec<Reason>,
    /// By event: whether no other match is possible.
    pub(crate) certain: Vec<bool>,
    /// Further edges, sorted by the later event: the earlier event and the later. A message that several received has one for
    /// each receive but the first; the others are told by vector clocks, by the parents and links of spans, or by operations of threads.
    extra: Vec<(u32, u32)>,
    /// By entry of `extra`: why it is there.
    extra_evidence: Vec<Evidence>,
    /// Messages that an actor received again: its first receive of one, and a later.
    pub(crate) repeats: Vec<(u32, u32)>,
    /// Messages with an id that is counted, and receives of that id behind the first.
    pub(crate) again: Vec<(u32, u32)>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

impl Matching {
    /// By event: the other end, or [`NONE`].
    pub(crate) fn mates(&self) -> &[u32] {
        &self.mate
    }

    /// The other end of an event's message, or [`NONE`].
    pub(crate) fn mate(&self, event: u32) -> u32 {
        self.mate[event as usize]
    }

    /// Further edges, sorted by the later event: the earlier event and the later. A message that several received has one for
    /// each receive but the first; the others are told by vector clocks, by the parents and links of spans, or by operations of threads.
    pub(crate) fn extra(&self) -> &[(u32, u32)] {
        &self.extra
    }

    /// By entry of `extra`: why it is there.
    pub(crate) fn extra_evidence(&self) -> &[Evidence] {
        &self.extra_evidence
    }
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
            extra_evidence: Vec::new(),
            repeats: Vec::new(),
            again: Vec::new(),
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

    /// The mates of all events, to be given back by [`Matching::join_all`].
    pub(crate) fn take_mates(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.mate)
    }

    /// Takes the mates of all events, none of which was joined before; `how` says of an event and its mate why they are, and whether that is
    /// certain.
    pub(crate) fn join_all(&mut self, mates: Vec<u32>, how: impl Fn(u32, u32) -> (Reason, bool) + Sync) {
        let columns = (&mut self.status, &mut self.reason, &mut self.certain);
        let all = columns.into_par_iter().zip(&mates).zip(0..mates.len() as u32);
        let joined = all.filter(|((_, mate), _)| **mate != NONE);
        joined.for_each(|(((status, reason, certain), &mate), event)| {
            *status = Status::Matched;
            (*reason, *certain) = how(event, mate);
        });
        self.mate = mates;
    }

    /// Notes that a message was received by another too.
    pub(crate) fn further(&mut self, send: u32, receive: u32, reason: Reason, certain: bool) {
        let i = receive as usize;
        self.status[i] = Status::Matched;
        self.reason[i] = reason;
        self.certain[i] = certain;
        self.add_extra(send, receive, reason, certain);
    }

    /// Adds an edge beside those of mates. [`Matching::sort_extra`] must follow the last one.
    pub(crate) fn add_extra(&mut self, cause: u32, effect: u32, reason: Reason, certain: bool) {
        self.extra.push((cause, effect));
        self.extra_evidence.push(Evidence { reason, certain });
    }

    /// Brings further edges into the order of their later events.
    pub(crate) fn sort_extra(&mut self) {
        let mut all: Vec<_> = self.extra.drain(..).zip(self.extra_evidence.drain(..)).collect();
        // Of two that say the same the certain one stays.
        all.sort_unstable_by_key(|&((cause, effect), how)| (effect, cause, !how.certain, how.reason));
        all.dedup_by_key(|(edge, _)| *edge);
        (self.extra, self.extra_evidence) = all.into_iter().unzip();
    }

    /// The further edges into an event.
    pub(crate) fn extra_into(&self, effect: u32) -> impl Iterator<Item = (u32, Evidence)> + '_ {
        let from = self.extra.partition_point(|&(_, e)| e < effect);
        let edges = self.extra[from..].iter().zip(&self.extra_evidence[from..]);
        edges.take_while(move |((_, e), _)| *e == effect).map(|((cause, _), how)| (*cause, *how))
    }

    /// Whether an end of a message has no other end yet, and may have one.
    pub(crate) fn is_open(&self, e: u32) -> bool {
        self.mate[e as usize] == NONE
            && !matches!(self.status[e as usize], Status::Duplicate | Status::Matched)
    }

    /// Drops such further edges into an event.
    pub(crate) fn drop_extra(&mut self, effect: u32, such: impl Fn(Evidence) -> bool) {
        let all = self.extra.drain(..).zip(self.extra_evidence.drain(..));
        (self.extra, self.extra_evidence) = all.filter(|&((_, e), how)| e != effect || !such(how)).unzip();
    }

    /// Says of a message that it may be another, because the order of events contradicts it together with others.
    pub(crate) fn doubt(&mut self, receive: u32) {
        let mate = self.mate[receive as usize];
        if mate != NONE {
            self.certain[mate as usize] = false;
        }
        self.certain[receive as usize] = false;
    }

    /// Says the same of further receives of messages, those of which `such` holds for send and receive.
    pub(crate) fn doubt_further(&mut self, such: impl Fn(u32, u32) -> bool) {
        for (&(send, receive), how) in self.extra.iter().zip(&mut self.extra_evidence) {
            if how.reason == Reason::MessageId && such(send, receive) {
                how.certain = false;
                self.certain[receive as usize] = false;
            }
        }
    }

    /// Parts a receive from its send, because the order of events contradicts the edge.
    pub(crate) fn part(&mut self, receive: u32) {
        let send = std::mem::replace(&mut self.mate[receive as usize], NONE);
        if send != NONE {
            self.mate[send as usize] = NONE;
            self.status[send as usize] = Status::InFlight;
            self.reason[send as usize] = Reason::None;
            self.certain[send as usize] = false;
        } else {
            self.drop_extra(receive, |how| !how.reason.is_no_message());
        }
        self.status[receive as usize] = Status::SenderMissing;
        self.reason[receive as usize] = Reason::None;
        self.certain[receive as usize] = false;
    }
}
