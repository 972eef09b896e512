//! Joining what has no usable message id: by content, in channel order where the channel has one.

use demi_schemas::event::ANYONE;
use demi_schemas::{Kind, Via};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use super::align::align;
use super::by_id;
use super::complete::CompleteLogs;
use super::edges::{Matching, Reason, Status};
use super::sender::{dead_letters, sender_name};
use crate::read::{Contents, Events, HAS_ID, NONE, nothing};

/// A channel: the sender's name as the receiver logs it, and the receiver's number.
type Channel = (u32, u32);

/// By event, whether its content matters to what ids left open; nothing where they left nothing open.
pub(crate) fn wanted(events: &Events, matching: &Matching, shared: &by_id::SharedIds) -> Vec<bool> {
    let all = || (0..events.len() as u32).map(|e| (e, events.kind[e as usize]));
    let open = |e: u32| matching.is_open(e);
    let fires = all().any(|(e, kind)| kind == Kind::TimerFire && open(e));
    // Of each channel with an open receive, whether one of these has no id: then it matters what was received before.
    let mut channels: FxHashMap<Channel, bool> = FxHashMap::default();
    let channel = |r: u32| (events.from[r as usize], events.actor[r as usize]);
    for (e, _) in all().filter(|(e, kind)| *kind == Kind::Receive && open(*e)) {
        *channels.entry(channel(e)).or_default() |= !events.has(e, HAS_ID);
    }
    if shared.is_empty() && channels.is_empty() && !fires {
        return Vec::new();
    }
    let nobody = dead_letters(events);
    let to_unknown = Anyone::of(events).filter(|unknown| unknown.matters(events, matching));
    let matters = |(e, kind): (u32, Kind)| match kind {
        Kind::TimerSet | Kind::TimerFire => fires && open(e),
        Kind::Receive => channels.get(&channel(e)).is_some_and(|without_id| *without_id || open(e)),
        Kind::Send if to_unknown.is_some() => open(e),
        Kind::Send => open(e) && channels.contains_key(&(sender_name(events, e, nobody), events.receiver(e))),
        _ => false,
    };
    let mut wanted: Vec<bool> = all().map(matters).collect();
    let members = shared.iter().flat_map(|(sends, receives)| sends.iter().chain(receives));
    members.for_each(|&e| wanted[e as usize] = true);
    wanted
}

/// Joins fired timers without an id with the latest setting of the same timer before them, still unmatched.
pub(crate) fn timers(events: &Events, matching: &mut Matching, contents: &Contents) {
    for actor in 0..events.actors.len() as u32 {
        let mut set: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for e in events.of_actor(actor) {
            let i = e as usize;
            match events.kind[i] {
                Kind::TimerSet if matching.mates()[i] == NONE => {
                    set.entry(contents.of(e)).or_default().push(e);
                }
                Kind::TimerFire if matching.is_open(e) => {
                    let Some(list) = set.get_mut(&contents.of(e)) else { continue };
                    let certain = list.len() == 1;
                    let free = |s: u32| !events.has(s, HAS_ID) || !events.has(e, HAS_ID);
                    if let Some(s) = list.pop_if(|s| free(*s)) {
                        matching.join(s, e, Reason::Timer, certain);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Joins messages that ids left open.
///
/// A receive with an id can only be a send without one; pairs found by id stay, and keep the alignment of what stands between
/// them in order.
pub(crate) fn messages(events: &Events, matching: &mut Matching, contents: &Contents) {
    let nobody = dead_letters(events);
    let mut channels: FxHashMap<Channel, (Vec<u32>, Vec<u32>)> = FxHashMap::default();
    let receives = || (0..events.len() as u32).filter(|&e| events.kind[e as usize] == Kind::Receive);
    let channel = |r: u32| (events.from[r as usize], events.actor[r as usize]);
    for r in receives() {
        if matching.is_open(r) {
            channels.entry(channel(r)).or_default();
        }
    }
    if channels.is_empty() {
        return;
    }
    for r in receives() {
        if let Some(lists) = channels.get_mut(&channel(r)) {
            lists.1.push(r);
        }
    }
    for s in (0..events.len() as u32).filter(|&e| events.kind[e as usize] == Kind::Send) {
        if let Some(lists) = channels.get_mut(&(sender_name(events, s, nobody), events.receiver(s))) {
            lists.0.push(s);
        }
    }
    let mut channels: Vec<_> = channels.into_iter().collect();
    channels.sort_unstable_by_key(|(_, (_, receives))| receives[0]);
    let known = Known { whole: CompleteLogs::of(events), others: Others::of(events, contents, nobody) };
    for ((from, _), (sends, receives)) in channels {
        join_channel((events, &known), matching, contents, from != nobody, &sends, &receives);
    }
}

/// What must be known for a match by content to be certain.
struct Known {
    whole: CompleteLogs,
    others: Others,
}

/// Messages that do not tell one of their ends, and may be of any channel.
struct Others {
    /// Content and sender, as receivers log it, of those to anyone.
    sent: FxHashSet<(u64, u32)>,
    /// Content and receiver of those from anyone.
    received: FxHashSet<(u64, u32)>,
}

impl Others {
    fn of(events: &Events, contents: &Contents, nobody: u32) -> Others {
        let mut others = Others { sent: FxHashSet::default(), received: FxHashSet::default() };
        let Some(anyone) = Anyone::of(events) else { return others };
        for e in 0..events.len() as u32 {
            match events.kind[e as usize] {
                Kind::Send if anyone.receives(events, e) => {
                    others.sent.insert((contents.of(e), sender_name(events, e, nobody)));
                }
                Kind::Receive if anyone.sent(events, e) => {
                    others.received.insert((contents.of(e), events.actor[e as usize]));
                }
                _ => {}
            }
        }
        others
    }

    /// Whether a send or a receive may be of one of them.
    fn may_be(&self, events: &Events, contents: &Contents, nobody: u32, send: u32, receive: u32) -> bool {
        self.sent.contains(&(contents.of(send), sender_name(events, send, nobody)))
            || self.received.contains(&(contents.of(receive), events.actor[receive as usize]))
    }
}

/// The address of those who are unknown.
struct Anyone(u32);

impl Anyone {
    /// It, if somebody was addressed so.
    fn of(events: &Events) -> Option<Anyone> {
        events.names.find(ANYONE).map(Anyone)
    }

    /// Whether a send does not tell its receiver.
    fn receives(&self, events: &Events, send: u32) -> bool {
        events.to[send as usize] == self.0
    }

    /// Whether a receive does not tell its sender.
    fn sent(&self, events: &Events, receive: u32) -> bool {
        let from = events.from[receive as usize];
        from == self.0 || from == NONE
    }

    /// Whether some end of a message that is open does not tell the other.
    fn matters(&self, events: &Events, matching: &Matching) -> bool {
        (0..events.len() as u32).filter(|&e| matching.is_open(e)).any(|e| match events.kind[e as usize] {
            Kind::Send => self.receives(events, e),
            Kind::Receive => self.sent(events, e),
            _ => false,
        })
    }
}

/// Joins what names no sender, or was sent to anyone, and is still open: where one send alone has the content, and each actor received it
/// once. What says nothing is not joined.
pub(crate) fn unaddressed(events: &Events, matching: &mut Matching, contents: &Contents) {
    let Some(unknown) = Anyone::of(events).filter(|unknown| unknown.matters(events, matching)) else {
        return;
    };
    let (nobody, nothing) = (dead_letters(events), nothing());
    let open = |matching: &Matching, kind: Kind| -> Vec<u32> {
        let is =
            |e: &u32| events.kind[*e as usize] == kind && matching.is_open(*e) && contents.of(*e) != nothing;
        (0..events.len() as u32).filter(is).collect()
    };
    let (sends, receives) = (open(matching, Kind::Send), open(matching, Kind::Receive));
    let mut to_one: FxHashMap<(u64, u32), Vec<u32>> = FxHashMap::default();
    let mut to_anyone: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    let mut from_one: FxHashMap<(u64, u32), Vec<u32>> = FxHashMap::default();
    for &s in &sends {
        let content = contents.of(s);
        if unknown.receives(events, s) {
            to_anyone.entry(content).or_default().push(s);
            from_one.entry((content, sender_name(events, s, nobody))).or_default().push(s);
        } else {
            to_one.entry((content, events.receiver(s))).or_default().push(s);
        }
    }
    // By send: the receives that can be of no other.
    let mut taken: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for &r in &receives {
        let content = contents.of(r);
        let both_ids = |s: &u32| events.has(*s, HAS_ID) && events.has(r, HAS_ID);
        let backwards = |s: &u32| events.actor[*s as usize] == events.actor[r as usize] && *s > r;
        let found: [Option<&Vec<u32>>; 2] = match unknown.sent(events, r) {
            true => [to_one.get(&(content, events.actor[r as usize])), to_anyone.get(&content)],
            false => [from_one.get(&(content, events.from[r as usize])), None],
        };
        let all: Vec<u32> = found.into_iter().flatten().flatten().copied().take(2).collect();
        if let [only] = all[..]
            && !both_ids(&only)
            && !backwards(&only)
        {
            taken.entry(only).or_default().push(r);
        }
    }
    let mut taken: Vec<_> = taken.into_iter().collect();
    taken.sort_unstable();
    for (send, receives) in taken {
        let times = |actor: u32| receives.iter().filter(|&&r| events.actor[r as usize] == actor).count();
        for &r in receives.iter().filter(|&&r| times(events.actor[r as usize]) == 1) {
            if matching.mate(send) == NONE {
                matching.join(send, r, Reason::Inferred, false);
            } else {
                matching.status[r as usize] = Status::Matched;
                matching.reason[r as usize] = Reason::Inferred;
                matching.add_extra(send, r, Reason::Inferred, false);
            }
        }
    }
}

/// Whether messages sent so keep the order of their sender's log.
fn plain(events: &Events, send: u32) -> bool {
    !matches!(events.via(send), Some(Via::Forward | Via::Scheduler | Via::Thread))
        && !events.in_environment(send)
}

fn join_channel(
    (events, known): (&Events, &Known),
    matching: &mut Matching,
    contents: &Contents,
    ordered: bool,
    sends: &[u32],
    receives: &[u32],
) {
    let open_receives = |m: &Matching| -> Vec<u32> {
        let open = |r: &&u32| m.is_open(**r);
        receives.iter().filter(open).copied().collect()
    };
    let (in_line, rest): (Vec<u32>, Vec<u32>) = sends.iter().partition(|&&s| ordered && plain(events, s));
    if !in_line.is_empty() {
        let here = |r: &u32| {
            let mate = matching.mate(*r);
            matching.is_open(*r) || (mate != NONE && plain(events, mate))
        };
        let line: Vec<u32> = receives.iter().filter(|r| here(r)).copied().collect();
        join_lists((events, known), matching, contents, &in_line, &line, true);
    }
    let rest: Vec<u32> = rest.into_iter().filter(|&s| matching.mate(s) == NONE).collect();
    if !rest.is_empty() {
        let open = open_receives(matching);
        join_lists((events, known), matching, contents, &rest, &open, false);
    }
}

fn join_lists(
    (events, known): (&Events, &Known),
    matching: &mut Matching,
    contents: &Contents,
    sends: &[u32],
    receives: &[u32],
    ordered: bool,
) {
    let nobody = dead_letters(events);
    // What is joined already is equal to its other end and to nothing else. An id among records without ids is
    // ignored, but two records with ids are never joined here.
    let key = |e: u32, other: u32| {
        let i = e as usize;
        let mut bytes = [0_u8; 9];
        if matching.mates()[i] == NONE {
            bytes[0] = 0;
            bytes[1..9].copy_from_slice(&contents.of(e).to_le_bytes());
        } else {
            bytes[0] = 1;
            bytes[1..5].copy_from_slice(&other.to_le_bytes());
        }
        xxh3_128(&bytes)
    };
    let send_keys: Vec<u128> = sends.iter().map(|&s| key(s, s)).collect();
    let receive_keys: Vec<u128> = receives.iter().map(|&r| key(r, matching.mate(r))).collect();
    let hits = align(&send_keys, &receive_keys, ordered);
    for (&r, hit) in receives.iter().zip(hits) {
        let Some(hit) = hit else { continue };
        let s = sends[hit.send()];
        let both_ids = events.has(s, HAS_ID) && events.has(r, HAS_ID);
        // Nothing is received before it was sent.
        let backwards = events.actor[s as usize] == events.actor[r as usize] && s > r;
        if matching.mate(r) == NONE && matching.mate(s) == NONE && !both_ids && !backwards {
            let reason = if hit.in_order() { Reason::ChannelOrder } else { Reason::Inferred };
            // In a log that does not have its beginning, the first of a content may be any.
            let begun = known.whole.until(events, s) && known.whole.until(events, r);
            let other = || known.others.may_be(events, contents, nobody, s, r);
            matching.join(s, r, reason, hit.certain() && begun && !other());
        }
    }
}
