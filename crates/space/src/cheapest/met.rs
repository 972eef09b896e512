//! Which moments were met, and after how few steps.

use rustc_hash::FxHashMap;

use crate::system::Spent;

/// What is known of a moment.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The fewest steps after which it was met; none where it only waits.
    steps: u32,
    /// What an execution has spent that comes to it, which is met already or waits.
    ahead: Spent,
}

/// Nothing was spent that an execution could have.
const NEVER: Spent = Spent { cost: u32::MAX, faults: u32::MAX, steps: u32::MAX };

/// The moments that were met, by their numbers.
#[derive(Debug)]
pub(crate) struct Met {
    entries: FxHashMap<u128, Entry>,
    cache: bool,
}

impl Met {
    /// No moments. Without the cache they are counted, and none is known.
    pub fn new(cache: bool) -> Met {
        Met { entries: FxHashMap::default(), cache }
    }

    /// Moments that were met after so many steps.
    pub fn of(entries: &[(u128, u32)], cache: bool) -> Met {
        let entry =
            |&(key, steps): &(u128, u32)| (key, Entry { steps, ahead: Spent { cost: 0, faults: 0, steps } });
        Met { entries: entries.iter().map(entry).collect(), cache }
    }

    /// Meets a moment: the fewest steps after which it was met before, or, where everything is known that it leads to, an error.
    pub fn meet(&mut self, key: u128, steps: u32) -> Result<u32, u32> {
        let entry = self.entries.entry(key).or_insert(Entry { steps: u32::MAX, ahead: NEVER });
        let before = entry.steps;
        entry.steps = steps.min(before);
        if self.cache && before <= steps { Err(before) } else { Ok(before) }
    }

    /// Undoes the last meeting with a moment, before which so many steps were the fewest.
    pub fn forget(&mut self, key: u128, before: u32) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.steps = before;
        }
    }

    /// Whether a moment will be known when its turn comes, because another one like it comes before; otherwise this one is that other one
    /// from now on.
    pub fn is_ahead(&mut self, key: u128, spent: Spent) -> bool {
        if !self.cache {
            return false;
        }
        let entry = self.entries.entry(key).or_insert(Entry { steps: u32::MAX, ahead: NEVER });
        if entry.ahead <= spent && entry.ahead.steps <= spent.steps {
            return true;
        }
        if spent < entry.ahead && spent.steps <= entry.ahead.steps {
            entry.ahead = spent;
        }
        false
    }

    /// How many moments were met, and the sum of their numbers.
    pub fn sum(&self) -> (u64, u128) {
        let met = self.entries.iter().filter(|(_, entry)| entry.steps != u32::MAX);
        met.fold((0, 0), |(count, sum), (key, _)| (count + 1, sum.wrapping_add(*key)))
    }

    /// The moments that were met, and after how few steps, in the order of their numbers.
    pub fn entries(&self) -> Vec<(u128, u32)> {
        let met = self.entries.iter().filter(|(_, entry)| entry.steps != u32::MAX);
        let mut all: Vec<(u128, u32)> = met.map(|(key, entry)| (*key, entry.steps)).collect();
        all.sort_unstable();
        all
    }
}
