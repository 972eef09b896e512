//! Configurations as lists of numbers, and deliveries on them.
//!
//! The first number says how many places there are and, above that, which faults are left. Then comes a number for each place: the local state of the cell
//! and, above it, the status of the actor. The rest is what is pending, in the order of sending.

use demi_replay::{ActorId, Configuration, Model, PendingKind, Status};
use demi_schemas::NetworkRule;

use crate::entry::{Effect, Entry, FREE, Local};
use crate::faults;

/// Where the status begins in the number of a place.
pub(crate) const STATUS_SHIFT: u32 = 29;
/// Where the faults that are left begin in the first number.
pub(crate) const FAULTS_SHIFT: u32 = 16;
/// The number of places in the first number.
pub(crate) const PLACES_MASK: u32 = (1 << FAULTS_SHIFT) - 1;
/// The local state in the number of a place.
const LOCAL_MASK: u32 = (1 << STATUS_SHIFT) - 1;
/// Statuses by number.
pub(crate) const STATUSES: [Status; 5] =
    [Status::Absent, Status::Running, Status::Isolated, Status::Crashed, Status::Stopped];
/// An odd number without pattern; its powers stand for places in a channel.
const PLACE: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// What a delivery needs to know of an entry, closely packed.
#[derive(Clone, Copy, Debug)]
pub struct Hot {
    /// Hash of the content.
    pub hash: u128,
    /// Its channel, or [`FREE`].
    pub channel: u32,
    /// Which timer it is, or 0.
    pub timer: u32,
    /// Receiver.
    pub to: u16,
    /// Who really sent it.
    pub sender: u16,
    /// The cell of the receiver.
    pub cell: u16,
    /// Whether the bound looks at it.
    pub seen: bool,
    /// Whether it is armed again when it fires.
    pub repeats: bool,
    /// Whether it is sent from outside.
    pub external: bool,
    /// Its kind ([`Kinds`](super::kinds::Kinds)).
    pub kind: u16,
}

impl Hot {
    /// Of an entry, under a rule: without order there are no channels.
    pub fn of<M: Model>(entry: &Entry<M>, rule: NetworkRule) -> Hot {
        let pending = &entry.pending;
        Hot {
            hash: entry.hash,
            channel: if rule == NetworkRule::Unordered { FREE } else { entry.channel },
            timer: entry.timer,
            to: pending.to.0,
            sender: pending.channel.0,
            cell: u16::try_from(entry.cell).unwrap_or(u16::MAX),
            seen: entry.seen,
            repeats: pending.kind == PendingKind::Repeating,
            external: pending.kind == PendingKind::External,
            kind: entry.kind,
        }
    }
}

/// How many places there are.
#[inline]
pub fn places(words: &[u32]) -> usize {
    (words[0] & PLACES_MASK) as usize
}

/// Which faults are left.
#[inline]
pub fn faults(words: &[u32]) -> u32 {
    words[0] >> FAULTS_SHIFT
}

/// Where what is pending begins.
#[inline]
pub fn first_pending(words: &[u32]) -> usize {
    1 + places(words)
}

/// The status of an actor.
#[inline]
pub fn status(words: &[u32], actor: u16) -> Status {
    let place = usize::from(actor);
    if place >= places(words) {
        return Status::Absent;
    }
    STATUSES[(words[1 + place] >> STATUS_SHIFT) as usize]
}

/// The number of the local state of a cell, 0 for none.
#[inline]
pub fn local(words: &[u32], cell: usize) -> u32 {
    words.get(1 + cell).map_or(0, |word| word & LOCAL_MASK)
}

/// The hash of a configuration: a sum over local states, statuses, and entries by their places in their channels.
pub fn hash<M: Model>(words: &[u32], locals: &[Local<M>], hot: &[Hot]) -> u128 {
    let mut sum = faults::hash(faults(words));
    for place in 0..places(words) {
        if let number @ 1.. = local(words, place) {
            sum = sum.wrapping_add(locals[number as usize - 1].hash);
        }
        sum = sum.wrapping_add(status_hash(words, place, place));
    }
    let pending = &words[first_pending(words)..];
    for (at, &entry) in pending.iter().enumerate() {
        let of = &hot[entry as usize];
        let before = if of.channel == FREE { 0 } else { on_channel(&pending[..at], hot, of.channel) };
        sum = sum.wrapping_add(of.hash.wrapping_mul(power(before)));
    }
    sum
}

/// What stands for the status of a place, at the place `to`.
pub fn status_hash(words: &[u32], place: usize, to: usize) -> u128 {
    let status = words[1 + place] >> STATUS_SHIFT;
    let place = to;
    let mixed =
        (place as u128 + 1).wrapping_mul(PLACE) ^ u128::from(status + 1).wrapping_mul(PLACE.rotate_left(64));
    mixed.wrapping_mul(PLACE).rotate_left(47).wrapping_mul(PLACE)
}

/// A hash of what a bound looks at: everything but the entries that it does not see, and the order of the rest.
pub fn looked_at<M: Model>(words: &[u32], locals: &[Local<M>], hot: &[Hot]) -> u128 {
    let mut sum = 0_u128;
    let first = first_pending(words);
    for &word in &words[1..first] {
        if let number @ 1.. = word & LOCAL_MASK {
            sum = sum.wrapping_add(locals[number as usize - 1].hash);
        }
        sum = sum.wrapping_mul(PLACE).wrapping_add(u128::from(word >> STATUS_SHIFT));
    }
    let seen = words[first..].iter().map(|e| &hot[*e as usize]).filter(|of| of.seen);
    seen.fold(sum, |sum, of| sum.wrapping_add(of.hash))
}

fn on_channel(pending: &[u32], hot: &[Hot], channel: u32) -> u32 {
    pending.iter().filter(|e| hot[**e as usize].channel == channel).count() as u32
}

/// What stands for having that many before it.
#[inline]
pub fn power(before: u32) -> u128 {
    match before {
        0 => 1,
        1 => PLACE,
        n => PLACE.wrapping_pow(n),
    }
}

/// Delivers the pending entry at `index` of `words`, as a reaction says, into `after`. Gives the hash afterwards, where it is asked for, and
/// whether anything became pending.
pub fn deliver<M: Model, const HASHED: bool>(
    (words, hash): (&[u32], u128),
    index: usize,
    (next, effects): (u32, &[Effect]),
    (locals, hot): (&[Local<M>], &[Hot]),
    after: &mut Vec<u32>,
) -> (u128, bool) {
    let first = first_pending(words);
    let entry = words[first + index];
    let of = &hot[entry as usize];
    let mut hash = hash;
    after.clear();
    let place = 1 + usize::from(of.cell);
    if of.channel == FREE {
        after.extend_from_slice(&words[..first + index]);
        after.extend_from_slice(&words[first + index + 1..]);
        if HASHED {
            hash = hash.wrapping_sub(of.hash);
        }
    } else {
        // It and what it overtakes go; the rest of the channel moves up.
        after.extend_from_slice(&words[..first]);
        let (mut before, mut moved) = (0, 0);
        for (at, &other) in words[first..].iter().enumerate() {
            let other_of = &hot[other as usize];
            if other_of.channel != of.channel {
                after.push(other);
                continue;
            }
            if HASHED {
                hash = hash.wrapping_sub(other_of.hash.wrapping_mul(power(before)));
                before += 1;
            }
            if at > index {
                if HASHED {
                    hash = hash.wrapping_add(other_of.hash.wrapping_mul(power(moved)));
                    moved += 1;
                }
                after.push(other);
            }
        }
    }
    let old = words[place] & LOCAL_MASK;
    if next != old {
        after[place] = (words[place] & !LOCAL_MASK) | next;
        if HASHED {
            let (old, next) = (locals[old as usize - 1].hash, locals[next as usize - 1].hash);
            hash = hash.wrapping_sub(old).wrapping_add(next);
        }
    }
    if of.repeats {
        after.push(entry);
        if HASHED {
            hash = hash.wrapping_add(of.hash);
        }
    }
    let mut more = false;
    for effect in effects {
        let (new, timer) = match *effect {
            Effect::Send(new) => (Some(new), 0),
            Effect::Arm(new) => (Some(new), hot[new as usize].timer),
            Effect::Disarm(timer) => (None, timer),
        };
        if timer != 0
            && let Some(at) = after[first..].iter().position(|e| hot[*e as usize].timer == timer)
        {
            let gone = after.remove(first + at);
            if HASHED {
                hash = hash.wrapping_sub(hot[gone as usize].hash);
            }
        }
        let Some(new) = new else { continue };
        let new_of = &hot[new as usize];
        let reaches = timer != 0
            || match status(after, new_of.to) {
                Status::Absent | Status::Stopped | Status::Isolated => false,
                Status::Running | Status::Crashed => status(after, new_of.sender) != Status::Isolated,
            };
        if reaches {
            if HASHED {
                let before = match new_of.channel {
                    FREE => 0,
                    channel => on_channel(&after[first..], hot, channel),
                };
                hash = hash.wrapping_add(new_of.hash.wrapping_mul(power(before)));
            }
            after.push(new);
            more = true;
        }
    }
    (hash, more)
}

/// A number for a configuration with the order in which everything is pending: that of messages and that of timers, for these come after
/// messages whatever was first.
pub fn in_order<M: Model>(words: &[u32], locals: &[Local<M>], hot: &[Hot]) -> Mixed {
    let (mut key, mut timers) = (Mixed::default(), Mixed::default());
    let first = first_pending(words);
    for &word in &words[1..first] {
        let state = match word & LOCAL_MASK {
            0 => 0,
            number => locals[number as usize - 1].hash,
        };
        key.add(state.wrapping_add(u128::from(word >> STATUS_SHIFT).wrapping_mul(PLACE)));
    }
    for &entry in &words[first..] {
        let of = &hot[entry as usize];
        if of.timer == 0 { key.add(of.hash) } else { timers.add(of.hash) }
    }
    key.add(u128::MAX);
    key.add(timers.end());
    key
}

/// A number for a sequence of numbers. Those that are added are mixed already, or few.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixed(u128);

impl Mixed {
    /// Takes in the next number.
    #[inline]
    pub fn add(&mut self, number: u128) {
        self.0 = (self.0.rotate_left(47) ^ number).wrapping_mul(PLACE);
        self.0 ^= self.0 >> 71;
    }

    /// The number for all of them.
    #[must_use]
    pub fn end(self) -> u128 {
        let mixed = (self.0 ^ self.0 >> 64).wrapping_mul(PLACE);
        mixed ^ mixed >> 67
    }
}

/// Numbers as a configuration that invariants and bounds look at.
pub struct Glance<'a, M: Model> {
    /// The numbers.
    pub words: &'a [u32],
    /// What those of states mean.
    pub locals: &'a [Local<M>],
}

impl<M: Model> Configuration<M::State> for Glance<'_, M> {
    fn status(&self, actor: ActorId) -> Status {
        status(self.words, actor.0)
    }

    fn cell(&self, cell: ActorId) -> Option<&M::State> {
        match local(self.words, cell.index()) {
            0 => None,
            number => Some(&self.locals[number as usize - 1].state),
        }
    }

    fn actors(&self) -> usize {
        places(self.words)
    }
}
