//! Joining each receive with its send, and each fired timer with its setting, by message id.

use std::collections::VecDeque;

use demi_schemas::Kind;
use demi_schemas::event::ANYONE;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};

use super::edges::{Matching, Reason, Status};
use super::sender::{dead_letters, sender_name};
use crate::read::{COUNTED, Contents, EARLIEST, Events, HAS_ID, NONE, is_send};

/// Sends of one id, and the receives of that id: what is still to be told apart.
pub(crate) type SharedIds = Vec<(Vec<u32>, Vec<u32>)>;

/// Joins by message id, and gives what several sends with one id leave open.
pub(crate) fn join(events: &Events, matching: &mut Matching) -> SharedIds {
    let hash = |e: u32| events.id[e as usize].short();
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
    let whole = CompleteLogs::of(events);
    let join = |matching: &mut Matching, send: u32, receive: u32| {
        let (reason, certain) = whole.how(events, send, receive);
        matching.join(send, receive, reason, certain);
    };
    let mut shared: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut elsewhere = Vec::new();
    let mut received: FxHashSet<(u32, u32)> = FxHashSet::default();
    for e in (0..events.len() as u32).filter(|e| events.kind[*e as usize].is_delivery()).filter(ids) {
        let Some(&send) = table.find(hash(e), |&f| events.id[f as usize] == events.id[e as usize]) else {
            continue;
        };
        if reused.contains_key(&send) {
            shared.entry(send).or_default().push(e);
        } else if matching.mate(send) != NONE {
            further_receive(events, matching, &whole, (send, e), &mut received);
        } else if events.receiver(send) == events.actor[e as usize] || events.receiver(send) == NONE {
            join(matching, send, e);
        } else {
            elsewhere.push((send, e));
        }
    }
    for (send, e) in elsewhere {
        if matching.mate(send) == NONE {
            join(matching, send, e);
        } else {
            further_receive(events, matching, &whole, (send, e), &mut received);
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
    groups
        .into_iter()
        .map(|(first, receives)| (reused.remove(&first).unwrap_or_default(), receives))
        .collect()
}

/// Joins what several sends with one id leave open: it is told apart by addresses, type and content, then by order.
pub(crate) fn tell_apart(events: &Events, matching: &mut Matching, contents: &Contents, shared: &SharedIds) {
    for (sends, receives) in shared {
        resolve(events, matching, contents, sends, receives);
    }
}

/// A receive of a message that was received before: of one sent to several by each of them once, else a duplicate.
fn further_receive(
    events: &Events,
    matching: &mut Matching,
    whole: &CompleteLogs,
    (send, receive): (u32, u32),
    received: &mut FxHashSet<(u32, u32)>,
) {
    let i = receive as usize;
    let to_anyone = events.to[send as usize] != NONE && events.names.text(events.to[send as usize]) == ANYONE;
    let first = events.actor[matching.mate(send) as usize] != events.actor[i]
        && received.insert((send, events.actor[i]));
    if to_anyone && first {
        let (reason, certain) = whole.how(events, send, receive);
        matching.status[i] = Status::Matched;
        matching.reason[i] = reason;
        matching.certain[i] = certain;
        matching.add_extra(send, receive, reason, certain);
    } else {
        matching.status[i] = Status::Duplicate;
    }
}

/// Complete logs among those with counted messages: they begin with a start, and nothing is missing behind it.
struct CompleteLogs {
    /// By actor: the end of that part of its log; empty where nothing was counted.
    end: Vec<u32>,
}

impl CompleteLogs {
    fn of(events: &Events) -> CompleteLogs {
        if !(0..events.len() as u32).any(|e| events.has(e, COUNTED)) {
            return CompleteLogs { end: Vec::new() };
        }
        let end = |actor: u32| {
            let range = events.of_actor(actor);
            if events.kind[range.start as usize] != Kind::Start {
                return range.start;
            }
            let mut last = (events.places.get(range.start).0, 0);
            let follows = |e: &u32| {
                let here = events.places.get(*e);
                let expected = if here.0 == last.0 { last.1 + 1 } else { 1 };
                last = here;
                here.1 == expected
            };
            range.start + range.take_while(follows).count() as u32
        };
        CompleteLogs { end: (0..events.actors.len() as u32).map(end).collect() }
    }

    /// How a receive of the send's id is known to be of that message.
    fn how(&self, events: &Events, send: u32, receive: u32) -> (Reason, bool) {
        match (events.has(receive, COUNTED), events.has(receive, EARLIEST)) {
            (false, false) => (id_reason(events, send), true),
            // Where both logs have their beginning the n-th of each is known.
            (true, false) if self.until(events, send) && self.until(events, receive) => {
                (Reason::ChannelOrder, true)
            }
            _ => (Reason::Inferred, false),
        }
    }

    /// Whether nothing is missing in the event's log up to it.
    fn until(&self, events: &Events, e: u32) -> bool {
        self.end.get(events.actor[e as usize] as usize).is_some_and(|end| e < *end)
    }
}

fn id_reason(events: &Events, send: u32) -> Reason {
    if events.kind[send as usize] == Kind::TimerSet { Reason::Timer } else { Reason::MessageId }
}

/// Tells the sends of one id apart: equal in everything first, then to the same receiver, each in order.
fn resolve(events: &Events, matching: &mut Matching, contents: &Contents, sends: &[u32], receives: &[u32]) {
    let nobody = dead_letters(events);
    let mut exact: FxHashMap<_, VecDeque<u32>> = FxHashMap::default();
    let mut to: FxHashMap<u32, VecDeque<u32>> = FxHashMap::default();
    for &s in sends {
        let key = (sender_name(events, s, nobody), events.receiver(s), contents.of(s));
        exact.entry(key).or_default().push_back(s);
        to.entry(events.receiver(s)).or_default().push_back(s);
    }
    let mut left = Vec::new();
    for &r in receives {
        let i = r as usize;
        let key = (events.from[i], events.actor[i], contents.of(r));
        match exact.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(s) => matching.join(s, r, id_reason(events, s), false),
            None => left.push(r),
        }
    }
    for r in left {
        let queue = to.get_mut(&events.actor[r as usize]);
        let free =
            queue.and_then(|q| std::iter::from_fn(|| q.pop_front()).find(|&s| matching.mate(s) == NONE));
        match free {
            Some(s) => matching.join(s, r, Reason::Inferred, false),
            None => matching.status[r as usize] = Status::Duplicate,
        }
    }
}
