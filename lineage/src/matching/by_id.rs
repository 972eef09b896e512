//! Joining each receive with its send, and each fired timer with its setting, by message id.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use demi_schemas::Kind;
use demi_schemas::event::ANYONE;
use hashbrown::HashTable;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use demi_common::sealed::SealedFile;

use super::complete::CompleteLogs;
use super::edges::{Matching, Reason, Status};
use super::sender::{dead_letters, sender_name};
use crate::error::LineageError;
use crate::read::{COUNTED, Contents, EARLIEST, Events, HAS_ID, IdHash, NONE, Placement, is_send};

/// Sends of one id, and the receives of that id: what is still to be told apart.
pub(crate) type SharedIds = Vec<(Vec<u32>, Vec<u32>)>;

/// Ends of messages with an id in a part of them, about: their ids are in the cache then.
const PART: usize = 1 << 15;
/// Parts of the ids at most.
const PARTS: usize = 256;
/// Events that are spread over the parts together.
const SPREAD: usize = 1 << 18;

/// Joins by message id, and gives what several sends with one id leave open.
pub(crate) fn join(events: &Events, matching: &mut Matching) -> SharedIds {
    let parts = (events.len() / PART).next_power_of_two().min(PARTS);
    join_in(events, matching, parts)
}

/// [`join`] with the ids in so many parts, which are a power of two. Ends of one message are in one part, so each part is joined by itself.
fn join_in(events: &Events, matching: &mut Matching, parts: usize) -> SharedIds {
    let whole = CompleteLogs::of_counted(events);
    let ends = Ends::of(events);
    let spread = spread(events, parts);
    let mates: Vec<AtomicU32> = matching.take_mates().into_iter().map(AtomicU32::new).collect();
    let done: Vec<Part> = (0..parts)
        .into_par_iter()
        .map(|part| Part::join(&ends, &mates, spread.iter().map(|spread| spread[part].as_slice())))
        .collect();
    drop(spread);
    let mates: Vec<u32> = mates.into_iter().map(AtomicU32::into_inner).collect();
    matching.join_all(mates, |e, mate| match is_send(events.kind[e as usize]) {
        true => how(&ends, &whole, e, mate),
        false => how(&ends, &whole, mate, e),
    });
    let mut shared = Vec::new();
    let (mut reused, mut least) = (0, None);
    for part in done {
        for (send, receive) in part.to_several {
            let (reason, certain) = how(&ends, &whole, send, receive);
            matching.further(send, receive, reason, certain);
        }
        part.again.iter().for_each(|(_, e)| matching.status[*e as usize] = Status::Duplicate);
        let counted =
            |send: u32| events.kind[send as usize] == Kind::Send && !events.id[send as usize].is_wide();
        matching.again.extend(part.again.into_iter().filter(|(send, _)| counted(*send)));
        reused += part.reused.len();
        least = part.reused.keys().copied().chain(least).min();
        // Those that nobody received tell of the others.
        let mut receives = part.shared;
        shared.extend(
            part.reused
                .into_iter()
                .map(|(first, sends)| (first, receives.remove(&first).unwrap_or_default(), sends)),
        );
    }
    if let Some(first) = least {
        matching.warnings.push(format!(
            "{reused} message ids are used by more than one send (the first at {}); they were told apart by content",
            events.name(first)
        ));
    }
    shared.sort_unstable();
    shared.into_iter().map(|(_, receives, sends)| (sends, receives)).collect()
}

/// Ends of messages with an id, by part of the ids, each part in order; those of so many events together.
fn spread(events: &Events, parts: usize) -> Vec<Vec<Vec<u32>>> {
    let spread = |kinds: (usize, &[Kind])| {
        let first = (kinds.0 * SPREAD) as u32;
        let ends = |e: &u32| {
            let kind = kinds.1[(*e - first) as usize];
            events.has(*e, HAS_ID) && (is_send(kind) || kind.is_delivery())
        };
        let here = || (first..first + kinds.1.len() as u32).filter(ends);
        let part = |e: u32| events.id[e as usize].part(parts);
        let mut counts = vec![0; parts];
        here().for_each(|e| counts[part(e)] += 1);
        let mut spread: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
        here().for_each(|e| spread[part(e)].push(e));
        spread
    };
    events.kind.par_chunks(SPREAD).enumerate().map(spread).collect()
}

/// What was found out of a part of the ids, besides who was joined with whom.
#[derive(Default)]
struct Part {
    /// By first send of an id that several have: all of them.
    reused: FxHashMap<u32, Vec<u32>>,
    /// By first send of such an id: its receives.
    shared: FxHashMap<u32, Vec<u32>>,
    /// Further receives of messages that were sent to several.
    to_several: Vec<(u32, u32)>,
    /// Receives of what was received before, with its send.
    again: Vec<(u32, u32)>,
}

impl Part {
    /// Joins the ends of a part, which come in order.
    fn join<'a>(
        ends_of: &Ends<'_>,
        mates: &[AtomicU32],
        ends: impl Iterator<Item = &'a [u32]> + Clone,
    ) -> Part {
        let mut part = Part::default();
        let events = ends_of.events;
        let all = || ends.clone().flatten().copied();
        let id = |e: u32| events.id[e as usize];
        let mut sends: Vec<(IdHash, u32)> = Vec::new();
        let mut table: HashTable<u32> = HashTable::with_capacity(all().count() / 2);
        for e in all().filter(|e| is_send(events.kind[*e as usize])) {
            let id = id(e);
            match table.find(id.short(), |&at| sends[at as usize].0 == id) {
                Some(&at) => {
                    let first = sends[at as usize].1;
                    part.reused.entry(first).or_insert_with(|| vec![first]).push(e);
                }
                None => {
                    let at = sends.len() as u32;
                    sends.push((id, e));
                    table.insert_unique(id.short(), at, |&at| sends[at as usize].0.short());
                }
            }
        }
        let mate = |e: u32| mates[e as usize].load(Relaxed);
        let join = |send: u32, receive: u32| {
            mates[send as usize].store(receive, Relaxed);
            mates[receive as usize].store(send, Relaxed);
        };
        let mut elsewhere = Vec::new();
        let mut received: FxHashSet<(u32, u32)> = FxHashSet::default();
        for e in all().filter(|e| events.kind[*e as usize].is_delivery()) {
            let id = id(e);
            let Some(&at) = table.find(id.short(), |&at| sends[at as usize].0 == id) else { continue };
            let send = sends[at as usize].1;
            if !part.reused.is_empty() && part.reused.contains_key(&send) {
                part.shared.entry(send).or_default().push(e);
            } else if mate(send) != NONE {
                part.further(events, (send, e), mate(send), &mut received);
            } else if ends_of.contradict(send, e) {
                elsewhere.push((send, e));
            } else {
                join(send, e);
            }
        }
        for (send, e) in elsewhere {
            if mate(send) == NONE {
                join(send, e);
            } else {
                part.further(events, (send, e), mate(send), &mut received);
            }
        }
        part
    }

    /// A receive of a message that was received before: of one sent to several by each of them once, else a duplicate.
    fn further(
        &mut self,
        events: &Events,
        (send, receive): (u32, u32),
        mate: u32,
        received: &mut FxHashSet<(u32, u32)>,
    ) {
        let actor = events.actor[receive as usize];
        let to = events.to[send as usize];
        let to_anyone = to != NONE && events.names.text(to) == ANYONE;
        let first = events.actor[mate as usize] != actor && received.insert((send, actor));
        if to_anyone && first {
            self.to_several.push((send, receive));
        } else {
            self.again.push((send, receive));
        }
    }
}

/// Joins what several sends with one id leave open: it is told apart by addresses, type and content, then by order.
pub(crate) fn tell_apart(events: &Events, matching: &mut Matching, contents: &Contents, shared: &SharedIds) {
    let ends = Ends::of(events);
    for (sends, receives) in shared {
        resolve(&ends, matching, contents, sends, receives);
    }
    doubt_alike(&ends, matching, contents, shared);
}

/// Takes the certainty of messages whose ids are like those that several sends have, though theirs has one: where several actors send with one id, an id
/// tells nobody apart, and a match is certain only if an end names the other; where an actor has used an id for two contents, its numbers
/// come again, and the other send of this one may be in no log. Ids that are made to be the only ones in the world are believed.
fn doubt_alike(ends: &Ends<'_>, matching: &mut Matching, contents: &Contents, shared: &SharedIds) {
    let events = ends.events;
    let is_number =
        |send: u32| events.kind[send as usize] == Kind::Send && !events.id[send as usize].is_wide();
    let (mut of_several, mut renumbers) = (false, FxHashSet::default());
    for (sends, _) in shared {
        let mut known: FxHashMap<(u32, u32), _> = FxHashMap::default();
        let mut senders = FxHashSet::default();
        for send in sends.iter().copied().filter(|send| is_number(*send)) {
            let (actor, content) = (events.actor[send as usize], contents.of(send));
            senders.insert(actor);
            if *known.entry((actor, events.to[send as usize])).or_insert(content) != content {
                renumbers.insert(actor);
            }
        }
        of_several |= senders.len() > 1;
    }
    if !of_several && renumbers.is_empty() {
        return;
    }
    let doubted = |send: u32, receive: u32| {
        is_number(send)
            && (of_several && !ends.confirm(send, receive)
                || renumbers.contains(&events.actor[send as usize]))
    };
    for send in 0..events.len() as u32 {
        let (mate, i) = (matching.mate(send), send as usize);
        if mate != NONE
            && matching.certain[i]
            && matching.reason[i] == Reason::MessageId
            && doubted(send, mate)
        {
            matching.doubt(mate);
        }
    }
    matching.doubt_further(doubted);
}

/// Whether a match is certain by how others are named, which only all logs tell.
pub(crate) fn hang_on_names(events: &Events, matching: &Matching) -> bool {
    let ends = Ends::of(events);
    let hangs = |send: u32, mate: u32| {
        events.kind[send as usize] == Kind::Send
            && events.id[send as usize].is_wide()
            && (ends.another_receiver(send, mate).is_some() || ends.another_sender(send, mate).is_some())
    };
    (0..events.len() as u32).any(|send| matching.mate(send) != NONE && hangs(send, matching.mate(send)))
}

/// Takes the certainty of messages whose id was received again with another content: who sent them has begun to count anew, and the send of the
/// other one is not in the logs; nobody knows which of the two this send is.
///
/// # Errors
/// When contents cannot be read.
pub(crate) fn doubt(
    events: &Events,
    matching: &mut Matching,
    files: &[SealedFile],
    placement: &Placement,
) -> Result<(), LineageError> {
    let again = std::mem::take(&mut matching.again);
    if again.is_empty() {
        return Ok(());
    }
    let mut wanted = vec![false; events.len()];
    for &(send, receive) in &again {
        for e in [receive, matching.mate(send)].into_iter().filter(|e| *e != NONE) {
            wanted[e as usize] = true;
        }
    }
    let contents = Contents::read(files, placement, &wanted)?;
    let mut doubted: Vec<u32> = Vec::new();
    for (send, receive) in again {
        let mate = matching.mate(send);
        if mate != NONE && contents.of(mate) != contents.of(receive) {
            matching.certain[send as usize] = false;
            matching.certain[mate as usize] = false;
            doubted.push(send);
        }
    }
    doubted.sort_unstable();
    doubted.dedup();
    if let Some(&first) = doubted.first() {
        matching.warnings.push(format!(
            "{} message ids were received again with another content (the first was sent at {}): their senders count anew, so which message was \
             received is not certain",
            doubted.len(),
            events.name(first)
        ));
    }
    Ok(())
}

/// How a receive of the send's id is known to be of that message.
fn how(ends: &Ends<'_>, whole: &CompleteLogs, send: u32, receive: u32) -> (Reason, bool) {
    let events = ends.events;
    match (events.has(receive, COUNTED), events.has(receive, EARLIEST)) {
        (false, false) => {
            let doubted = ends.contradict(send, receive)
                || ends.are_numbers_of_parts(send, receive)
                || ends.contradict_though_wide(send, receive);
            (id_reason(events, send), !doubted)
        }
        // Where both logs have their beginning the n-th of each is known.
        (true, false)
            if !events.has(send, EARLIEST) && whole.until(events, send) && whole.until(events, receive) =>
        {
            (Reason::ChannelOrder, true)
        }
        _ => (Reason::Inferred, false),
    }
}

/// What the ends of messages say of each other.
struct Ends<'a> {
    events: &'a Events,
    nobody: u32,
    /// Actors and the names by which they speak of others at the ends of messages, those that are the names of actors; made where somebody asks.
    known: OnceLock<FxHashSet<(u32, u32)>>,
}

impl<'a> Ends<'a> {
    fn of(events: &'a Events) -> Ends<'a> {
        Ends { events, nobody: dead_letters(events), known: OnceLock::new() }
    }

    /// Whether a name says who an end of a message is.
    fn says(&self, name: u32) -> bool {
        name != NONE && name != self.nobody && self.events.names.text(name) != ANYONE
    }

    fn name_of(&self, e: u32) -> u32 {
        self.events.actors[self.events.actor[e as usize] as usize]
    }

    /// The name to which a message was sent, where that is not who received it.
    fn another_receiver(&self, send: u32, receive: u32) -> Option<u32> {
        let (to, receiver) = (self.events.to[send as usize], self.name_of(receive));
        // Both ends may write addresses in place of names.
        let is_another = self.says(to) && to != receiver && to != self.events.to[receive as usize];
        (is_another && !self.is_replica(to, receiver)).then_some(to)
    }

    /// The name from which a message was received, where that is not who sent it.
    fn another_sender(&self, send: u32, receive: u32) -> Option<u32> {
        let (from, sender) = (self.events.from[receive as usize], self.name_of(send));
        let is_another = self.says(from)
            && from != sender
            && from != sender_name(self.events, send, self.nobody)
            && !self.is_replica(from, sender)
            // What is outside of the logs is named as one likes.
            && !(self.events.in_environment(send) && self.events.actor_of_name[from as usize] == NONE);
        is_another.then_some(from)
    }

    /// Telemetry names the service that is asked, or a machine, and one of its replicas takes it.
    fn is_replica(&self, of: u32, actor: u32) -> bool {
        is_part(self.events.names.text(of), self.events.names.text(actor))
    }

    /// Whether the ends of a message say that it went between others: each process may number its messages by itself, so that two have one id. An
    /// id that is made to be the only one in the world is believed here.
    fn contradict(&self, send: u32, receive: u32) -> bool {
        let events = self.events;
        if events.kind[send as usize] != Kind::Send || events.id[send as usize].is_wide() {
            return false;
        }
        self.another_receiver(send, receive).is_some() || self.another_sender(send, receive).is_some()
    }

    /// Whether the ends of a message with such an id say that it went between others, and that is no other name for the same: the name is of
    /// another actor, or this one is spoken of by its own name elsewhere. The id may be of a request that went on to somebody else.
    fn contradict_though_wide(&self, send: u32, receive: u32) -> bool {
        let events = self.events;
        if events.kind[send as usize] != Kind::Send || !events.id[send as usize].is_wide() {
            return false;
        }
        let another = |name: Option<u32>, speaker: u32, meant: u32| {
            name.is_some_and(|name| {
                events.actor_of_name[name as usize] != NONE
                    || self.known().contains(&(events.actor[speaker as usize], self.name_of(meant)))
            })
        };
        another(self.another_receiver(send, receive), send, receive)
            || another(self.another_sender(send, receive), receive, send)
    }

    fn known(&self) -> &FxHashSet<(u32, u32)> {
        let events = self.events;
        let spoken_of = |e: u32| {
            let name = match events.kind[e as usize] {
                Kind::Send => events.to[e as usize],
                kind if kind.is_delivery() => events.from[e as usize],
                _ => NONE,
            };
            let is_actor = name != NONE && events.actor_of_name[name as usize] != NONE;
            is_actor.then_some((events.actor[e as usize], name))
        };
        self.known.get_or_init(|| (0..events.len() as u32).filter_map(spoken_of).collect())
    }

    /// Whether an end of a message names the other.
    fn confirm(&self, send: u32, receive: u32) -> bool {
        let (to, from) = (self.events.to[send as usize], self.events.from[receive as usize]);
        let to_it = self.says(to) && self.another_receiver(send, receive).is_none();
        to_it || self.says(from) && self.another_sender(send, receive).is_none()
    }

    /// Whether both ends name each other by a number that is only a part of a name, and what is left of the names differs: member 2 of one group
    /// has the number of member 2 of another, and each group may number its messages by itself.
    fn are_numbers_of_parts(&self, send: u32, receive: u32) -> bool {
        let events = self.events;
        if events.kind[send as usize] != Kind::Send || events.id[send as usize].is_wide() {
            return false;
        }
        // The parts of an actor's name besides the number that is said of it.
        let besides = |said: u32, e: u32| -> Option<Vec<&str>> {
            let name = self.name_of(e);
            // Most ends name an actor whole.
            let text = (said != NONE && said != name).then(|| events.names.text(said))?;
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let mut parts: Vec<&str> = events.names.text(name).split('/').collect();
            let at = parts.iter().position(|part| *part == text)?;
            parts.remove(at);
            Some(parts)
        };
        match (besides(events.to[send as usize], receive), besides(events.from[receive as usize], send)) {
            (Some(receiver), Some(sender)) => receiver != sender,
            _ => false,
        }
    }
}

/// Whether a text is one of the parts of a name, which are between slashes, or several of them in a row.
fn is_part(text: &str, name: &str) -> bool {
    let mut begins = std::iter::once(0).chain(name.match_indices('/').map(|(at, _)| at + 1));
    let follows = |at: usize| {
        name[at..].strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !text.is_empty() && begins.any(follows)
}

fn id_reason(events: &Events, send: u32) -> Reason {
    if events.kind[send as usize] == Kind::TimerSet { Reason::Timer } else { Reason::MessageId }
}

/// Who has received which of the sends of one id. A send to anyone is received once by each actor, another one once.
#[derive(Default)]
struct Received {
    all: FxHashSet<(u32, u32)>,
    /// Of sends to anyone, by the first of them, an actor, and whether its own are wanted: how many that one has passed.
    passed: FxHashMap<(u32, u32, bool), usize>,
}

impl Received {
    /// The first of these sends that an actor can have received, which it then has. Of its own sends only where they are wanted.
    fn take(
        &mut self,
        events: &Events,
        sends: Option<&mut VecDeque<u32>>,
        actor: u32,
        own: bool,
    ) -> Option<u32> {
        let sends = sends?;
        let first = *sends.front()?;
        let fits = |send: u32| own || events.actor[send as usize] != actor;
        if events.receiver(first) != NONE {
            // All of them are to one: what is taken is taken.
            while sends.front().is_some_and(|send| self.all.contains(&(*send, NONE))) {
                sends.pop_front();
            }
            return sends.iter().copied().find(|&send| fits(send) && self.all.insert((send, NONE)));
        }
        let passed = self.passed.entry((first, actor, own)).or_default();
        let (at, send) = sends
            .iter()
            .copied()
            .enumerate()
            .skip(*passed)
            .find(|&(_, send)| fits(send) && self.all.insert((send, actor)))?;
        *passed = at + 1;
        Some(send)
    }
}

/// Tells the sends of one id apart: equal in everything first, then to the same receiver, each in order. What was sent to anyone comes after what was
/// sent to the receiver by its name, and what an actor has sent itself after all others where it does not say from whom a message came.
fn resolve(ends: &Ends<'_>, matching: &mut Matching, contents: &Contents, sends: &[u32], receives: &[u32]) {
    let (events, nobody) = (ends.events, ends.nobody);
    let mut exact: FxHashMap<_, VecDeque<u32>> = FxHashMap::default();
    let mut equal: FxHashMap<_, VecDeque<u32>> = FxHashMap::default();
    let mut to: FxHashMap<u32, VecDeque<u32>> = FxHashMap::default();
    for &s in sends {
        let (receiver, content) = (events.receiver(s), contents.of(s));
        exact.entry((sender_name(events, s, nobody), receiver, content)).or_default().push_back(s);
        equal.entry((receiver, content)).or_default().push_back(s);
        to.entry(receiver).or_default().push_back(s);
    }
    let join = |matching: &mut Matching, s: u32, r: u32, reason: Reason| match matching.mate(s) {
        NONE => matching.join(s, r, reason, false),
        _ => matching.further(s, r, reason, false),
    };
    let mut received = Received::default();
    let mut left = Vec::new();
    for &r in receives {
        let (from, actor, content) = (events.from[r as usize], events.actor[r as usize], contents.of(r));
        let mut found = |to| received.take(events, exact.get_mut(&(from, to, content)), actor, true);
        let mut send = found(actor).or_else(|| found(NONE));
        if send.is_none() && !ends.says(from) {
            let mut found = |to, own| received.take(events, equal.get_mut(&(to, content)), actor, own);
            send = found(actor, false).or_else(|| found(NONE, false));
            send = send.or_else(|| found(actor, true)).or_else(|| found(NONE, true));
        }
        match send {
            Some(s) => join(matching, s, r, id_reason(events, s)),
            None => left.push(r),
        }
    }
    for r in left {
        let actor = events.actor[r as usize];
        let mut found = |receiver| received.take(events, to.get_mut(&receiver), actor, false);
        match found(actor).or_else(|| found(NONE)) {
            Some(s) => join(matching, s, r, Reason::Inferred),
            None => matching.status[r as usize] = Status::Duplicate,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of a log: what each event is, the number of its id, and the name it was sent to.
    type Log = Vec<(usize, Option<u8>, usize)>;

    const KINDS: [Kind; 5] = [Kind::Send, Kind::Receive, Kind::TimerSet, Kind::TimerFire, Kind::Local];

    fn events(logs: &[Log]) -> Events {
        let mut events = Events::default();
        let names: Vec<u32> =
            ["a", "b", "c", ANYONE, "elsewhere"].map(|name| events.names.intern(name)).into();
        events.actor_of_name = vec![NONE; names.len()];
        for (number, log) in logs.iter().enumerate() {
            events.actor_of_name[number] = number as u32;
            events.actors.push(names[number]);
            events.first.push(events.kind.len() as u32);
            for (seq, (kind, id, to)) in (1..).zip(log) {
                let e = events.kind.len() as u32;
                events.places.push(e, (0, seq), seq == 1);
                events.actor.push(number as u32);
                events.kind.push(KINDS[*kind]);
                events.flags.push(if id.is_some() { HAS_ID } else { 0 });
                events.id.push(id.map_or(IdHash::default(), |id| IdHash::of(&id.to_string())));
                events.from.push(NONE);
                events.to.push(names.get(*to).copied().unwrap_or(NONE));
            }
        }
        events.first.push(events.kind.len() as u32);
        events.environment = NONE;
        events
    }

    /// The same by ids as they are told: all ends in order, one after the other.
    fn plainly(events: &Events, matching: &mut Matching) -> SharedIds {
        let ends = |such: fn(Kind) -> bool| {
            let is = move |e: &u32| such(events.kind[*e as usize]) && events.has(*e, HAS_ID);
            (0..events.len() as u32).filter(is)
        };
        let of =
            |id: IdHash| ends(is_send).filter(move |e| events.id[*e as usize] == id).collect::<Vec<u32>>();
        let mut shared: std::collections::BTreeMap<u32, (Vec<u32>, Vec<u32>)> = Default::default();
        let (mut elsewhere, mut received) = (Vec::new(), FxHashSet::default());
        let again = |matching: &mut Matching, send: u32, e: u32, received: &mut FxHashSet<(u32, u32)>| {
            let actor = events.actor[e as usize];
            let anyone = events.names.text(events.to[send as usize]) == ANYONE;
            let other = events.actor[matching.mate(send) as usize] != actor;
            if other && received.insert((send, actor)) && anyone {
                matching.further(send, e, id_reason(events, send), true);
            } else {
                matching.status[e as usize] = Status::Duplicate;
            }
        };
        let is_for_another = |send: u32, e: u32| {
            let (to, actor) = (events.to[send as usize], events.actor[e as usize]);
            let name = |name: u32| if name == NONE { "" } else { events.names.text(name) };
            events.kind[send as usize] == Kind::Send
                && !["", ANYONE, name(events.actors[actor as usize])].contains(&name(to))
                && name(to) != name(events.to[e as usize])
        };
        for e in ends(Kind::is_delivery) {
            let sends = of(events.id[e as usize]);
            match sends[..] {
                [] => {}
                [send] if matching.mate(send) != NONE => again(matching, send, e, &mut received),
                [send] if is_for_another(send, e) => elsewhere.push((send, e)),
                [send] => matching.join(send, e, id_reason(events, send), true),
                _ => shared.entry(sends[0]).or_insert((sends, Vec::new())).1.push(e),
            }
        }
        for send in ends(is_send) {
            let sends = of(events.id[send as usize]);
            if sends.len() > 1 && sends[0] == send {
                shared.entry(send).or_insert((sends, Vec::new()));
            }
        }
        for (send, e) in elsewhere {
            match matching.mate(send) {
                // Who it was for is another actor.
                NONE => {
                    matching.join(send, e, id_reason(events, send), events.kind[send as usize] != Kind::Send)
                }
                _ => again(matching, send, e, &mut received),
            }
        }
        shared.into_values().collect()
    }

    type Found = (Vec<u32>, Vec<Status>, Vec<Reason>, Vec<bool>, Vec<(u32, u32)>, SharedIds);

    fn found(events: &Events, join: impl FnOnce(&mut Matching) -> SharedIds) -> (Found, Vec<String>) {
        let mut matching = Matching::none(events.len());
        let shared = join(&mut matching);
        matching.sort_extra();
        let extra = matching.extra().to_vec();
        let mates = matching.mates().to_vec();
        ((mates, matching.status, matching.reason, matching.certain, extra, shared), matching.warnings)
    }

    proptest! {
        /// However many parts the ids are in, the same is joined.
        #[test]
        fn parts_of_the_ids_are_joined_as_the_whole(
            logs in prop::collection::vec(prop::collection::vec((0..5_usize, prop::option::weighted(0.9, 0..12_u8), 0..6_usize), 1..20), 3)
        ) {
            let events = events(&logs);
            let one = found(&events, |matching| join_in(&events, matching, 1));
            let plainly = found(&events, |matching| plainly(&events, matching));
            prop_assert_eq!(&one.0, &plainly.0);
            for parts in [2, 8, 64] {
                prop_assert_eq!(&found(&events, |matching| join_in(&events, matching, parts)), &one);
            }
        }
    }

    #[test]
    fn a_name_has_parts() {
        let parts = |text: &str| is_part(text, "eu/cart/web-1/a/a");
        assert!(
            ["eu", "cart", "web-1", "eu/cart", "cart/web-1", "a/a", "eu/cart/web-1/a/a"]
                .into_iter()
                .all(parts)
        );
        assert!(
            !["", "car", "art", "web", "/", "cart/", "eu/web-1", "eu/cart/web-1/a/a/a"]
                .into_iter()
                .any(parts)
        );
    }
}
