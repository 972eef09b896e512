//! What is pending, in the order in which it was sent, and a column beside it in which entries of one place are found
//! fast: where a network or a scheduler starves a channel thousands of messages stand in the queue, and every step of a
//! schedule that is matched looks for one of a few.

use std::ops::Deref;

use crate::names::ActorId;
use crate::pending::Pending;

/// Numbers that are compared at a time.
const LANES: usize = 16;
/// Stands for the sender in the place of a timer.
const TIMER: u16 = u16::MAX;

/// Between which two actors an entry is pending, or whose timer it is. Different places may be the same number, which
/// whoever looks for one has to allow for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Of messages with a sender and a receiver.
    #[must_use]
    pub fn between(from: ActorId, to: ActorId) -> Place {
        Place(u32::from(to.0) << 16 | u32::from(from.0))
    }

    /// Of an actor's timers.
    #[must_use]
    pub fn timers(of: ActorId) -> Place {
        Place::between(ActorId(TIMER), of)
    }

    fn of(entry: &Pending) -> Place {
        if entry.kind.is_timer() { Place::timers(entry.to) } else { Place::between(entry.from, entry.to) }
    }
}

/// What is pending.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: Vec<Pending>,
    /// The place of each.
    places: Vec<u32>,
}

/// What a step usually sends, for which a copy has room: a copy is made in order to take a step from there.
const SPARE: usize = 4;

impl Clone for Queue {
    fn clone(&self) -> Queue {
        let room = self.entries.len() + SPARE;
        let mut copy = Queue { entries: Vec::with_capacity(room), places: Vec::with_capacity(room) };
        copy.entries.extend_from_slice(&self.entries);
        copy.places.extend_from_slice(&self.places);
        copy
    }
}

impl Queue {
    pub(crate) fn push(&mut self, entry: Pending) {
        self.places.push(Place::of(&entry).0);
        self.entries.push(entry);
    }

    pub(crate) fn remove(&mut self, index: usize) -> Pending {
        self.places.remove(index);
        self.entries.remove(index)
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Pending) -> bool) {
        self.entries.retain(keep);
        self.places.clear();
        self.places.extend(self.entries.iter().map(|entry| Place::of(entry).0));
    }

    /// Indices of the entries of a place, and of others with the same number.
    pub(crate) fn at(&self, place: Place) -> At<'_> {
        At { places: &self.places, start: 0, place: place.0 }
    }
}

impl From<Vec<Pending>> for Queue {
    fn from(entries: Vec<Pending>) -> Self {
        Queue { places: entries.iter().map(|entry| Place::of(entry).0).collect(), entries }
    }
}

impl Deref for Queue {
    type Target = [Pending];

    fn deref(&self) -> &[Pending] {
        &self.entries
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Queue) -> bool {
        self.entries == other.entries
    }
}

/// Indices of the entries of a place, oldest first or newest first.
#[derive(Clone, Debug)]
pub struct At<'a> {
    /// The places that are left.
    places: &'a [u32],
    /// The index of the first of them.
    start: usize,
    place: u32,
}

impl Iterator for At<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let (chunks, _) = self.places.as_chunks::<LANES>();
        let skipped = chunks.iter().take_while(|chunk| !has(chunk, self.place)).count() * LANES;
        let found = self.places[skipped..].iter().position(|&p| p == self.place).map(|at| skipped + at);
        let after = found.map_or(self.places.len(), |at| at + 1);
        let index = found.map(|at| self.start + at);
        (self.places, self.start) = (&self.places[after..], self.start + after);
        index
    }
}

impl DoubleEndedIterator for At<'_> {
    fn next_back(&mut self) -> Option<usize> {
        let (_, chunks) = self.places.as_rchunks::<LANES>();
        let skipped = chunks.iter().rev().take_while(|chunk| !has(chunk, self.place)).count() * LANES;
        let left = &self.places[..self.places.len() - skipped];
        let found = left.iter().rposition(|&p| p == self.place);
        self.places = &self.places[..found.unwrap_or(0)];
        found.map(|at| self.start + at)
    }
}

/// Whether one of the numbers is the place, without a branch for each.
fn has(chunk: &[u32; LANES], place: u32) -> bool {
    chunk.iter().fold(false, |found, &p| found | (p == place))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pending::MsgId;
    use crate::pending::PendingKind;

    fn entry(from: u16, to: u16, timer: bool) -> Pending {
        Pending {
            from: ActorId(from),
            to: ActorId(to),
            channel: ActorId(from),
            msg: MsgId(0),
            kind: if timer { PendingKind::Timer } else { PendingKind::Message },
            timer: 0,
            survives: false,
            via: None,
        }
    }

    proptest! {
        #[test]
        fn entries_of_a_place_are_found_from_both_ends(
            what in prop::collection::vec((0..3u16, 0..3u16, any::<bool>()), 0..120),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            gone in 0..4u16,
            ends in prop::collection::vec(any::<bool>(), 120),
        ) {
            let mut queue = Queue::default();
            what.iter().for_each(|&(from, to, timer)| queue.push(entry(from, to, timer)));
            for at in removed.iter().filter(|_| !what.is_empty()).map(|at| at.index(what.len())) {
                if at < queue.len() {
                    queue.remove(at);
                }
            }
            queue.retain(|entry| entry.to != ActorId(gone));
            prop_assert_eq!(&Queue::from(queue.to_vec()).places, &queue.places);
            for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (ActorId(from), ActorId(to)))) {
                for place in [Place::between(from, to), Place::timers(to)] {
                    let fits = |p: &Pending| Place::of(p) == place;
                    let mut expected: Vec<usize> = (0..queue.len()).filter(|&i| fits(&queue[i])).collect();
                    let mut found = queue.at(place);
                    for &front in &ends {
                        let (got, wanted) = match front {
                            true => (found.next(), (!expected.is_empty()).then(|| expected.remove(0))),
                            false => (found.next_back(), expected.pop()),
                        };
                        prop_assert_eq!(got, wanted);
                    }
                }
            }
        }
    }
}
