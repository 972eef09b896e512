//! Whether channels deliver in the order of sending, and what that asks of a schedule.
//!
//! A plain channel leads from the actor that really sent (the log's owner) to the receiver. Messages put through a
//! scheduler, by threads, as questions, by the environment or under nobody's name have no order.

use demi_schemas::{Kind, Via};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::edges::{Matching, Status};
use super::sender::{dead_letters, sender_name};
use crate::read::{Events, NONE, Units};

/// The plain channels, and whether each was in order.
pub(crate) struct Channels {
    /// By sender's number and receiver's: the latest send that was delivered, and whether all were in order.
    plain: LastDeliveries,
    nobody: u32,
    in_order: bool,
}

/// The latest delivered send by the numbers of sender and receiver, and whether all were in order.
pub(crate) type LastDeliveries = FxHashMap<(u32, u32), (u32, bool)>;

/// A preference of a schedule: one unit before another, for the sake of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Preference {
    /// The earlier unit.
    before: u32,
    /// The later unit.
    after: u32,
    /// Which channel asks: the sender's name and the receiver's number, [`NONE`] for the order of a log.
    channel: (u32, u32),
    /// Whether the later unit sends what was never delivered. It may have been lost on the way, and then need not be last.
    undelivered: bool,
}

impl Preference {
    /// The earlier unit.
    pub(crate) fn before(&self) -> u32 {
        self.before
    }

    /// The later unit.
    pub(crate) fn after(&self) -> u32 {
        self.after
    }

    /// Which channel asks: the sender's name and the receiver's number, [`NONE`] for the order of a log.
    pub(crate) fn channel(&self) -> (u32, u32) {
        self.channel
    }

    /// Whether the later unit sends what was never delivered. It may have been lost on the way, and then need not be last.
    pub(crate) fn undelivered(&self) -> bool {
        self.undelivered
    }
}

impl Channels {
    /// Looks at all deliveries, after those that were seen before, which were `in_order` or not.
    pub(crate) fn observe(
        events: &Events,
        matching: &Matching,
        before: LastDeliveries,
        in_order: bool,
    ) -> Channels {
        let mut channels = Channels { plain: before, nobody: dead_letters(events), in_order: true };
        // The channels to an actor are told by its log alone.
        let to = |receiver: u32| {
            let mut from: FxHashMap<u32, (u32, bool)> = FxHashMap::default();
            let receives = events.of_actor(receiver).filter(|&e| events.kind[e as usize] == Kind::Receive);
            for s in receives.flat_map(|r| sends_of(matching, r)) {
                if channels.is_plain(events, s) {
                    let sender = events.actor[s as usize];
                    let known = || channels.plain.get(&(sender, receiver)).copied();
                    let seen = from.entry(sender).or_insert_with(|| known().unwrap_or((s, true)));
                    seen.1 &= seen.0 <= s;
                    seen.0 = seen.0.max(s);
                }
            }
            from
        };
        let seen: Vec<_> = (0..events.actors.len() as u32).into_par_iter().map(to).collect();
        for (receiver, from) in (0..).zip(seen) {
            channels.plain.extend(from.into_iter().map(|(sender, seen)| ((sender, receiver), seen)));
        }
        channels.in_order = in_order && channels.plain.values().all(|seen| seen.1);
        channels
    }

    fn is_plain(&self, events: &Events, s: u32) -> bool {
        events.kind[s as usize] == Kind::Send
            && events.via(s).is_none()
            && !events.in_environment(s)
            && events.from[s as usize] != self.nobody
    }

    /// What was seen.
    pub(crate) fn seen(&self) -> &LastDeliveries {
        &self.plain
    }

    /// Whether all plain channels deliver in order.
    pub(crate) fn in_order(&self) -> bool {
        self.in_order
    }

    /// Whether a later message of the same channel was delivered although channels keep order.
    pub(crate) fn overtaken(&self, events: &Events, s: u32) -> bool {
        let key = (events.actor[s as usize], events.receiver(s));
        self.in_order && self.is_plain(events, s) && self.plain.get(&key).is_some_and(|&(last, _)| last > s)
    }

    /// What a schedule must keep so that it can be replayed channel by channel in order: sends of one channel, forwards
    /// included, as they were delivered, and the last delivered one before those that never were.
    pub(crate) fn preferences(
        &self,
        events: &Events,
        matching: &Matching,
        units: &Units,
    ) -> (Vec<Preference>, ReorderedChannels) {
        let mut asked = Asked::default();
        if !self.in_order() {
            return (asked.preferences, asked.broken);
        }
        let queued = |s: u32| self.is_plain(events, s) || events.via(s) == Some(Via::Forward);
        // What is sent to anyone stands in the channel to whoever took it.
        let channel = |s: u32| {
            let to = match (events.receiver(s), matching.mate(s)) {
                (NONE, mate) if mate != NONE => events.actor[mate as usize],
                (receiver, _) => receiver,
            };
            (sender_name(events, s, self.nobody), to)
        };
        let ask = |before: u32, after: u32, undelivered: bool, asked: &mut Asked| {
            let same_log = events.actor[before as usize] == events.actor[after as usize];
            if same_log && (before < after || undelivered) {
                return;
            }
            let (b, a) = (units.unit_of(before), units.unit_of(after));
            if a == b || same_log {
                asked.broken.0.insert(channel(after));
            } else {
                let channel = channel(after);
                asked.preferences.push(Preference { before: b, after: a, channel, undelivered });
            }
        };
        // By channel the latest send, and whether any of the receives is of a channel to another actor.
        type Latest = FxHashMap<(u32, u32), u32>;
        let follow = |receives: std::ops::Range<u32>, receiver: u32| -> (Asked, Latest, bool) {
            let (mut asked, mut last, mut other) = (Asked::default(), Latest::default(), false);
            for r in receives.filter(|&e| events.kind[e as usize] == Kind::Receive) {
                let s = matching.mate(r);
                if s != NONE && queued(s) {
                    let channel = channel(s);
                    other |= channel.1 != receiver;
                    if let Some(before) = last.insert(channel, s) {
                        ask(before, s, false, &mut asked);
                    }
                }
            }
            (asked, last, other)
        };
        let actors = (0..events.actors.len() as u32).into_par_iter();
        let mut logs: Vec<_> = actors.map(|actor| follow(events.of_actor(actor), actor)).collect();
        // The channels to an actor are told by its log alone, but where others took what was addressed to it.
        let together = logs.iter().any(|(.., other)| *other);
        if together {
            logs = vec![follow(0..events.len() as u32, NONE)];
        }
        let last = |channel: (u32, u32)| {
            let log = logs.get(if together { 0 } else { channel.1 as usize });
            log.and_then(|(_, last, _)| last.get(&channel).copied())
        };
        let sent = |(first, status): (usize, &[Status])| {
            let mut asked = Asked::default();
            for (s, status) in ((first * SENDS) as u32..).zip(status) {
                if *status == Status::InFlight
                    && events.kind[s as usize] == Kind::Send
                    && events.receiver(s) != NONE
                    && queued(s)
                    && let Some(before) = last(channel(s))
                {
                    ask(before, s, true, &mut asked);
                }
            }
            asked
        };
        let waiting: Vec<Asked> = matching.status.par_chunks(SENDS).enumerate().map(sent).collect();
        for part in logs.into_iter().map(|log| log.0).chain(waiting) {
            asked.preferences.extend(part.preferences);
            asked.broken.0.extend(part.broken.0);
        }
        let Asked { mut preferences, broken } = asked;
        preferences.retain(|w| !broken.0.contains(&w.channel));
        (preferences, broken)
    }
}

/// Events that are looked at together.
const SENDS: usize = 1 << 16;

/// What channels ask of a schedule.
#[derive(Default)]
struct Asked {
    preferences: Vec<Preference>,
    broken: ReorderedChannels,
}

/// The sends of what a receive took.
fn sends_of(matching: &Matching, receive: u32) -> impl Iterator<Item = u32> + '_ {
    let mate = Some(matching.mate(receive)).filter(|&mate| mate != NONE);
    let further = matching.extra_into(receive).filter(|(_, how)| !how.reason.is_no_message());
    mate.into_iter().chain(further.map(|(send, _)| send))
}

/// Channels whose deliveries no in-order schedule can give.
#[derive(Default)]
pub(crate) struct ReorderedChannels(pub(crate) FxHashSet<(u32, u32)>);

/// The order of a log, as far as it is no cause: environment events after one another, thread sends where they stand.
pub(crate) fn log_order(events: &Events, units: &Units) -> Vec<Preference> {
    let mut preferences = Vec::new();
    for actor in 0..events.actors.len() as u32 {
        let mut before = NONE;
        for e in events.of_actor(actor) {
            let unit = units.unit_of(e);
            if unit == before {
                continue;
            }
            if before != NONE && (units.is_alone(unit) || units.is_alone(before)) && before < unit {
                let channel = (events.actors[actor as usize], NONE);
                preferences.push(Preference { before, after: unit, channel, undelivered: false });
            }
            before = unit;
        }
    }
    preferences
}

/// A note about a channel that is not kept in order.
pub(crate) fn note(events: &Events, channel: (u32, u32)) -> String {
    let (from, to) = (events.names.text(channel.0), events.actor_name(channel.1));
    format!("the deliveries from {from} to {to} fit no in-order channel; their order of sending is not kept")
}
