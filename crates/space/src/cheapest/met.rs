//! Which moments were met, and after how few steps.
//!
//! There are millions of moments, and each is looked up once and never again soon: that is a miss of the caches, and pages that the system has
//! to clear. So a slot is small, and the highest bits of a hash say where a moment belongs: a table that grows is read and written from one end to
//! the other.

use std::collections::hash_map::Entry;
use std::hint::black_box;

use rustc_hash::FxHashMap;

use crate::system::Spent;

/// An odd number without pattern.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// The slots of a new table, as a power of two.
const FIRST: u32 = 10;
/// What stands for the steps of a moment that was met and then forgotten.
const FORGOTTEN: u64 = u64::MAX;

/// The halves of a moment's number, and one more than the fewest steps after which it was met. All are 0 where nothing is in a slot, so that the
/// pages of a new table need not be written.
type Slot = [u64; 3];

/// The slots, at least a quarter of them empty. A moment is in the first free one from where it belongs.
#[derive(Debug)]
struct Slots {
    slots: Vec<Slot>,
    /// How many bits say where a moment belongs.
    bits: u32,
    taken: usize,
}

impl Slots {
    fn new(bits: u32) -> Slots {
        Slots { slots: vec![[0; 3]; 1 << bits], bits, taken: 0 }
    }

    /// Where a moment belongs.
    fn home(&self, low: u64, high: u64) -> usize {
        ((low ^ high.rotate_left(32)).wrapping_mul(ODD) >> (u64::BITS - self.bits)) as usize
    }

    /// Which slot a moment is in, or would come into.
    fn find(&self, low: u64, high: u64) -> usize {
        let mut at = self.home(low, high);
        loop {
            let slot = &self.slots[at];
            if slot[2] == 0 || (slot[0] == low && slot[1] == high) {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The steps of a moment, whose slot is taken from now on.
    fn take(&mut self, low: u64, high: u64) -> &mut u64 {
        if self.taken >= self.slots.len() / 4 * 3 {
            let mut more = Slots::new(self.bits + 1);
            for [low, high, steps] in self.slots.iter().filter(|slot| slot[2] != 0) {
                *more.take(*low, *high) = *steps;
            }
            *self = more;
        }
        let at = self.find(low, high);
        let slot = &mut self.slots[at];
        if slot[2] == 0 {
            self.taken += 1;
            *slot = [low, high, FORGOTTEN];
        }
        &mut slot[2]
    }

    /// The moments that were met, and after how few steps.
    fn met(&self) -> impl Iterator<Item = (u128, u32)> {
        let met = self.slots.iter().filter(|slot| !matches!(slot[2], 0 | FORGOTTEN));
        met.map(|[low, high, steps]| (u128::from(*high) << 64 | u128::from(*low), (steps - 1) as u32))
    }
}

/// The moments that were met, by their numbers.
#[derive(Debug)]
pub(crate) struct Met {
    slots: Slots,
    /// What an execution has spent that comes to a moment which is met already or waits; of those that were asked for.
    ahead: FxHashMap<u128, Spent>,
    cache: bool,
}

/// The halves of a number, the low one first.
fn halves(key: u128) -> (u64, u64) {
    (key as u64, (key >> 64) as u64)
}

impl Met {
    /// No moments. Without the cache they are counted, and none is known.
    pub fn new(cache: bool) -> Met {
        Met { slots: Slots::new(FIRST), ahead: FxHashMap::default(), cache }
    }

    /// Moments that were met after so many steps.
    pub fn of(entries: &[(u128, u32)], cache: bool) -> Met {
        let mut met = Met::new(cache);
        for &(key, steps) in entries {
            _ = met.meet(key, steps);
        }
        met
    }

    /// Brings the slots of moments that are met next into the caches, all at once.
    pub fn expect(&self, keys: impl Iterator<Item = u128>) {
        let steps = |key| {
            let (low, high) = halves(key);
            self.slots.slots[self.slots.home(low, high)][2]
        };
        black_box(keys.fold(0, |sum, key| sum ^ steps(key)));
    }

    /// Meets a moment: the fewest steps after which it was met before, or, where everything is known that it leads to, an error.
    pub fn meet(&mut self, key: u128, steps: u32) -> Result<u32, u32> {
        let (low, high) = halves(key);
        let fewest = self.slots.take(low, high);
        let before = fewest.checked_sub(1).and_then(|before| before.try_into().ok()).unwrap_or(u32::MAX);
        *fewest = (*fewest).min(u64::from(steps) + 1);
        if self.cache && before <= steps { Err(before) } else { Ok(before) }
    }

    /// Undoes the last meeting with a moment, before which so many steps were the fewest.
    pub fn forget(&mut self, key: u128, before: u32) {
        let (low, high) = halves(key);
        *self.slots.take(low, high) = if before == u32::MAX { FORGOTTEN } else { u64::from(before) + 1 };
    }

    /// Whether a moment will be known when its turn comes, because another one like it was met or comes before; otherwise this one is that other
    /// one from now on.
    pub fn is_ahead(&mut self, key: u128, spent: Spent) -> bool {
        if !self.cache {
            return false;
        }
        let (low, high) = halves(key);
        let fewest = self.slots.slots[self.slots.find(low, high)][2];
        if fewest != 0 && fewest <= u64::from(spent.steps) + 1 {
            return true;
        }
        let ahead = match self.ahead.entry(key) {
            Entry::Vacant(free) => {
                free.insert(spent);
                return false;
            }
            Entry::Occupied(taken) => taken.into_mut(),
        };
        if *ahead <= spent && ahead.steps <= spent.steps {
            return true;
        }
        if spent < *ahead && spent.steps <= ahead.steps {
            *ahead = spent;
        }
        false
    }

    /// How many moments were met, and the sum of their numbers.
    pub fn sum(&self) -> (u64, u128) {
        self.slots.met().fold((0, 0), |(count, sum), (key, _)| (count + 1, u128::wrapping_add(sum, key)))
    }

    /// The moments that were met, and after how few steps, in the order of their numbers.
    pub fn entries(&self) -> Vec<(u128, u32)> {
        let mut all: Vec<(u128, u32)> = self.slots.met().collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map, with numbers that belong side by side and a table that grows.
        #[test]
        fn what_was_met_is_known(acts in prop::collection::vec((0_u128..3000, 0_u32..9, 0_u8..8), 1..4000), shift in 0_u32..128) {
            let (mut met, mut map) = (Met::new(true), BTreeMap::new());
            for (number, steps, act) in acts {
                let key = number.rotate_left(shift);
                let before = map.get(&key).copied().unwrap_or(u32::MAX);
                let expected = if before <= steps { Err(before) } else { Ok(before) };
                prop_assert_eq!(met.meet(key, steps), expected);
                if act == 0 {
                    met.forget(key, before);
                } else {
                    map.insert(key, steps.min(before));
                }
            }
            map.retain(|_, steps| *steps != u32::MAX);
            met.expect(map.keys().copied());
            let all: Vec<(u128, u32)> = map.into_iter().collect();
            let sum = all.iter().fold(0, |sum: u128, (key, _)| sum.wrapping_add(*key));
            prop_assert_eq!(met.sum(), (all.len() as u64, sum));
            prop_assert_eq!(met.entries(), all.clone());
            prop_assert_eq!(Met::of(&all, true).entries(), all);
        }
    }
}
