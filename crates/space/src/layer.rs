//! The configurations of one layer, and in which order a beam takes them.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::crew::{Pace, side_by_side};
use crate::kinds::Kinds;
use crate::packed;

/// Configurations in one piece of memory.
#[derive(Default)]
pub struct Segment {
    /// Their numbers, one after the other.
    pub words: Vec<u32>,
    /// Where each ends, and its hash.
    pub ends: Vec<(usize, u128)>,
    /// How many deliveries each seems to miss.
    pub heuristics: Vec<u16>,
    /// How many deliveries of each kind each has behind it, where they are counted.
    pub counts: Vec<u8>,
    /// The number of the step that led to the first; the others follow.
    pub first: u32,
}

impl Segment {
    /// A configuration: its numbers, its hash, and the number of the step that led to it.
    pub fn get(&self, at: usize) -> (&[u32], u128, u32) {
        let start = if at == 0 { 0 } else { self.ends[at - 1].0 };
        let (end, hash) = self.ends[at];
        (&self.words[start..end], hash, self.first + at as u32)
    }

    /// What a configuration has behind it, of so many kinds.
    pub fn counts(&self, at: usize, kinds: usize) -> &[u8] {
        &self.counts[at * kinds..(at + 1) * kinds]
    }
}

/// Where a configuration is in a layer: the segment, and the place in it.
pub type Place = (usize, usize);

/// All places of a layer.
pub fn places(layer: &[Segment]) -> Vec<Place> {
    let of = |(at, segment): (usize, &Segment)| (0..segment.ends.len()).map(move |place| (at, place));
    layer.iter().enumerate().flat_map(of).collect()
}

/// Which configurations of a layer come first in a beam search; of equals those of the least hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// Those of the least heuristic.
    Nearest,
    /// Those of the least sum of the heuristic, this many times, and the messages on their way. A way that leaves
    /// little lying about is often the shortest, and a bound that cannot tell configurations apart leaves the choice to
    /// hashes otherwise.
    Light(u8),
    /// Those in which two things stand beside each other that did so in the fewest others before: the local states of two
    /// actors, or a local state and a message on its way (novelty; Lipovetzky and Geffner 2012, with counts). It keeps a
    /// layer from filling up with variations of one configuration, and asks for no bound.
    Rare,
}

/// How often two things stood beside each other in the layers so far. Pairs are told apart by the upper bits of a product: of two that share
/// a number each counts as often as both, which makes neither look rarer than it is.
#[derive(Default)]
pub struct Rarity(Vec<AtomicU32>);

/// Binary digits of the number of a pair.
const PAIR_BITS: u32 = 22;
/// An odd number without pattern.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rarity {
    /// Counts a configuration.
    fn count(&self, words: &[u32]) {
        // A sum is the same whoever adds first.
        pairs(words, |pair| _ = self.0[pair].fetch_add(1, Ordering::Relaxed));
    }

    /// In how many others the rarest pair of a configuration was met, to the next power of two: what differs by less is a
    /// matter of chance.
    fn of(&self, words: &[u32]) -> u64 {
        let mut least = u32::MAX;
        pairs(words, |pair| least = least.min(self.0[pair].load(Ordering::Relaxed)));
        u64::from(u32::BITS - least.leading_zeros())
    }
}

/// Calls `with` with the number of each pair of things in a configuration of which one is a local state.
fn pairs(words: &[u32], mut with: impl FnMut(usize)) {
    /// Tells messages from local states.
    const PENDING: u64 = 1 << 31;
    let number = |pair: u64| (pair.wrapping_mul(MIX) >> (u64::BITS - PAIR_BITS)) as usize;
    let (locals, entries) = words.split_at(packed::first_pending(words));
    for (at, local) in locals.iter().enumerate().skip(1) {
        let local = u64::from(*local) << u32::BITS;
        locals[at + 1..].iter().for_each(|other| with(number(local | u64::from(*other) & !PENDING)));
        entries.iter().for_each(|entry| with(number(local | u64::from(*entry) | PENDING)));
    }
}

/// Configurations that a thread ranks at a time.
const RANKED: usize = 1_024;

/// Puts the places of a layer in the order of a lead. Where a witness is followed, those that came equally far take turns with the others: how
/// much can be passed over is not known before the end.
pub fn sort<W: Send>(
    lead: Lead,
    layer: &[Segment],
    places: &mut Vec<Place>,
    rarity: &mut Rarity,
    kinds: &Kinds,
    (workers, pace): (&mut [W], &mut Pace),
) {
    let pieces: Vec<&[Place]> = places.chunks(RANKED).collect();
    let words = |&(at, place): &Place| layer[at].get(place).0;
    if lead == Lead::Rare {
        rarity.0.resize_with(1 << PAIR_BITS, AtomicU32::default);
        let count = |_: &mut W, at: usize| pieces[at].iter().for_each(|place| rarity.count(words(place)));
        side_by_side(workers, pieces.len(), RANKED, pace, count);
    }
    let key = |place: &Place| {
        let (words, hash, _) = layer[place.0].get(place.1);
        let heuristic = u64::from(layer[place.0].heuristics[place.1]);
        let pending = (words.len() - packed::first_pending(words)) as u64;
        let key = match lead {
            Lead::Nearest => heuristic,
            Lead::Light(times) => u64::from(times) * heuristic + pending,
            Lead::Rare => rarity.of(words),
        };
        (key, hash, *place)
    };
    let rank = |_: &mut W, at: usize| pieces[at].iter().map(key).collect::<Vec<_>>();
    let mut ranked = side_by_side(workers, pieces.len(), RANKED, pace, rank).concat();
    ranked.sort_unstable();
    *places = ranked.into_iter().map(|(_, _, place)| place).collect();
    let mut turns = [0_u32; 1 << u8::BITS];
    let followed = |&(at, place): &Place| kinds.followed(layer[at].counts(place, kinds.counters()));
    if places.first().is_some_and(|first| followed(first).is_some()) {
        let turn = |place: &Place| {
            let turn = &mut turns[usize::from(followed(place).unwrap_or_default())];
            *turn += 1;
            *turn
        };
        let mut ranked: Vec<(u32, Place)> = places.iter().map(turn).zip(places.iter().copied()).collect();
        ranked.sort_by_key(|(turn, _)| *turn);
        places.iter_mut().zip(ranked).for_each(|(place, (_, ranked))| *place = ranked);
    }
}
