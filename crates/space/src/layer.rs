//! The configurations of one layer, and in which order a beam takes them.

use rustc_hash::FxHashMap;

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

/// How often two things stood beside each other in the layers so far.
#[derive(Default)]
pub struct Rarity(FxHashMap<(u32, u32), u32>);

impl Rarity {
    /// Counts the configurations of a layer.
    fn count(&mut self, layer: &[Segment], places: &[Place]) {
        for &(at, place) in places {
            pairs(layer[at].get(place).0, |pair| *self.0.entry(pair).or_insert(0) += 1);
        }
    }

    /// In how many others the rarest pair of a configuration was met, to the next power of two: what differs by less is a
    /// matter of chance.
    fn of(&self, words: &[u32]) -> u64 {
        let mut least = u32::MAX;
        pairs(words, |pair| least = least.min(self.0.get(&pair).copied().unwrap_or(0)));
        u64::from(u32::BITS - least.leading_zeros())
    }
}

/// Calls `with` with each pair of things in a configuration of which one is a local state.
fn pairs(words: &[u32], mut with: impl FnMut((u32, u32))) {
    /// Tells messages from local states.
    const PENDING: u32 = 1 << 31;
    let first = packed::first_pending(words);
    for at in 1..first {
        words[at + 1..first].iter().for_each(|other| with((words[at] & !PENDING, other & !PENDING)));
        words[first..].iter().for_each(|entry| with((words[at] & !PENDING, entry | PENDING)));
    }
}

/// Puts the places of a layer in the order of a lead. Where a witness is followed, those that came equally far take turns with the others: how
/// much can be passed over is not known before the end.
pub fn sort(lead: Lead, layer: &[Segment], places: &mut [Place], rarity: &mut Rarity, kinds: &Kinds) {
    if lead == Lead::Rare {
        rarity.count(layer, places);
    }
    places.sort_by_cached_key(|&(at, place)| {
        let (words, hash, _) = layer[at].get(place);
        let heuristic = u64::from(layer[at].heuristics[place]);
        let pending = (words.len() - packed::first_pending(words)) as u64;
        let key = match lead {
            Lead::Nearest => heuristic,
            Lead::Light(times) => u64::from(times) * heuristic + pending,
            Lead::Rare => rarity.of(words),
        };
        (key, hash)
    });
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
