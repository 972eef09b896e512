//! Why a message found no other end.

use demi_common::sealed::SealedFile;
use demi_schemas::Kind;
use demi_schemas::summary::Unmatched;
use rustc_hash::{FxHashMap, FxHashSet};

use super::channels::Channels;
use super::edges::{Matching, Status};
use super::sender::{dead_letters, sender_name};
use crate::error::LineageError;
use crate::read::{Contents, EXTERNAL, Events, HAS_ID, IdHash, NONE, Placement, nothing};

/// Actors with sequence numbers missing in a log.
fn with_gaps(events: &Events) -> Vec<bool> {
    let mut gaps = vec![false; events.actors.len()];
    let mut last = None;
    for (incarnation, seq, first) in events.places.runs() {
        let actor = events.actor[first as usize];
        // Where a run ends within an incarnation something is missing.
        let follows = last.replace((actor, incarnation)) != Some((actor, incarnation)) && seq == 1;
        gaps[actor as usize] |= !follows;
    }
    gaps
}

/// Gives every end of a message its status.
pub(crate) fn explain(events: &Events, matching: &mut Matching, contents: &Contents, channels: &Channels) {
    let nobody = dead_letters(events);
    let gaps = with_gaps(events);
    let mut seen: FxHashSet<(u32, u32, u64)> = FxHashSet::default();
    let mut seen_ids: FxHashSet<IdHash> = FxHashSet::default();
    let open = |m: &Matching, e: usize| {
        m.mates()[e] == NONE
            && matches!(m.status[e], Status::Local | Status::InFlight | Status::SenderMissing)
    };
    let some_open = (0..events.len()).any(|e| events.kind[e] == Kind::Receive && open(matching, e));
    for e in 0..events.len() {
        let event = e as u32;
        match events.kind[e] {
            Kind::Send if open(matching, e) => {
                let overtaken = channels.overtaken(events, event);
                matching.status[e] = if overtaken { Status::Lost } else { Status::InFlight };
            }
            Kind::TimerSet if open(matching, e) => matching.status[e] = Status::InFlight,
            Kind::Receive if some_open => {
                let key = (events.from[e], events.actor[e], contents.of(event));
                if !open(matching, e) {
                    seen.insert(key);
                    continue;
                }
                let from = events.from[e];
                let owner = if from == NONE { NONE } else { events.actor_of_name[from as usize] };
                // An id that came before says that it is a duplicate, one that did not says that it is none.
                let known_id = events.has(event, HAS_ID).then(|| !seen_ids.insert(events.id[e]));
                matching.status[e] = if known_id == Some(true) {
                    Status::Duplicate
                } else if events.has(event, EXTERNAL) || from == nobody {
                    Status::External
                } else if known_id.is_some() || owner == NONE || gaps[owner as usize] || !seen.contains(&key)
                {
                    Status::SenderMissing
                } else {
                    Status::Duplicate
                };
            }
            _ => {}
        }
    }
    matching.repeats = repeats(events, matching);
}

/// Messages that an actor received again: its first receive of one, and a later. Messages are told by their ids.
fn repeats(events: &Events, matching: &Matching) -> Vec<(u32, u32)> {
    let named = |e: &u32| events.kind[*e as usize] == Kind::Receive && events.has(*e, HAS_ID);
    let again = |e: &u32| matching.status[*e as usize] == Status::Duplicate;
    let all = || (0..events.len() as u32).filter(named);
    let ids: FxHashSet<IdHash> = all().filter(again).map(|e| events.id[e as usize]).collect();
    if ids.is_empty() {
        return Vec::new();
    }
    let mut first: FxHashMap<(u32, IdHash), u32> = FxHashMap::default();
    let told = all().filter(|e| ids.contains(&events.id[*e as usize])).filter_map(|e| {
        let known = *first.entry((events.actor[e as usize], events.id[e as usize])).or_insert(e);
        (known != e && again(&e)).then_some((known, e))
    });
    told.collect()
}

/// The channel of an end of a message that has no id and no other end: the sender's name and the receiver's number.
fn open_channel(events: &Events, matching: &Matching, nobody: u32, e: u32) -> Option<(u32, u32)> {
    let i = e as usize;
    if matching.mates()[i] != NONE || events.has(e, HAS_ID) {
        return None;
    }
    match (events.kind[i], matching.status[i]) {
        (Kind::Send, Status::InFlight | Status::Lost) => {
            Some((sender_name(events, e, nobody), events.receiver(e)))
        }
        (Kind::Receive, Status::SenderMissing) => Some((events.from[i], events.actor[i])),
        _ => None,
    }
}

/// A hint where receives found no send, and their channel has one that differs in its type only.
pub(crate) fn differ_in_type(
    events: &Events,
    matching: &Matching,
    files: &[SealedFile],
    placement: &Placement,
) -> Result<Option<String>, LineageError> {
    let nobody = dead_letters(events);
    let channel = |e: u32| open_channel(events, matching, nobody, e);
    let mut receives: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
    for e in (0..events.len() as u32).filter(|&e| events.kind[e as usize] == Kind::Receive) {
        if let Some(channel) = channel(e) {
            receives.entry(channel).or_default().push(e);
        }
    }
    if receives.is_empty() {
        return Ok(None);
    }
    let sends: Vec<(u32, (u32, u32))> = (0..events.len() as u32)
        .filter(|&e| events.kind[e as usize] == Kind::Send)
        .filter_map(|e| Some((e, channel(e).filter(|channel| receives.contains_key(channel))?)))
        .collect();
    if sends.is_empty() {
        return Ok(None);
    }
    let mut wanted = vec![false; events.len()];
    sends.iter().for_each(|(send, _)| wanted[*send as usize] = true);
    receives.values().flatten().for_each(|receive| wanted[*receive as usize] = true);
    let (contents, nothing) = (Contents::without_types(files, placement, &wanted)?, nothing());
    let mut sent: FxHashMap<((u32, u32), u64), u32> = FxHashMap::default();
    for &(send, channel) in &sends {
        sent.entry((channel, contents.of(send))).or_insert(send);
    }
    let mut found: Vec<(u32, u32)> = Vec::new();
    for (channel, receives) in receives {
        let same = |receive: &u32| {
            let content = contents.of(*receive);
            (content != nothing)
                .then(|| sent.get(&(channel, content)))
                .flatten()
                .map(|send| (*receive, *send))
        };
        found.extend(receives.iter().filter_map(same));
    }
    Ok(found.iter().min().map(|&(receive, send)| {
        format!(
            "{} receives without a send differ from one on their channel in 'type' only (first {} and {}): messages are matched where sends and \
             receives have the same type",
            found.len(),
            events.name(receive),
            events.name(send)
        )
    }))
}

/// Counts matched messages, and unmatched ones by why. Timers are no messages.
pub(crate) fn count(events: &Events, matching: &Matching) -> (u64, Unmatched) {
    let mut matched = 0;
    let mut counts = Unmatched::default();
    for e in 0..events.len() {
        if !matches!(events.kind[e], Kind::Send | Kind::Receive) {
            continue;
        }
        match matching.status[e] {
            Status::Matched if events.kind[e] == Kind::Receive => matched += 1,
            Status::InFlight => counts.in_flight += 1,
            Status::Lost => counts.lost += 1,
            Status::SenderMissing => counts.sender_missing += 1,
            Status::Duplicate => counts.duplicate += 1,
            Status::External => counts.external += 1,
            Status::Matched | Status::Local | Status::Order => {}
        }
    }
    (matched, counts)
}

/// Notes about what was not found, for the summary.
pub(crate) fn notes(events: &Events, matching: &Matching) -> Vec<String> {
    let mut senders: FxHashMap<u32, u64> = FxHashMap::default();
    for e in (0..events.len()).filter(|&e| matching.status[e] == Status::SenderMissing) {
        *senders.entry(events.from[e]).or_default() += 1;
    }
    let mut senders: Vec<(&str, u64)> = senders.into_iter().map(|(n, c)| (events.names.text(n), c)).collect();
    senders.sort_unstable_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let total: u64 = senders.iter().map(|s| s.1).sum();
    let named: Vec<String> =
        senders.iter().take(3).map(|(name, count)| format!("{name} ({count})")).collect();
    match total {
        0 => Vec::new(),
        n => vec![format!(
            "{n} received messages have no send in the logs of their senders: {}",
            named.join(", ")
        )],
    }
}
