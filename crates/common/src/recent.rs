//! A map that forgets its oldest members.

use rustc_hash::FxHashMap;

/// A map of bounded size, by numbers that are digests: when its younger half has `HALF` members, the older half is forgotten. There are at
/// most twice as many in all.
#[derive(Clone, Debug)]
pub struct Recent<T, const HALF: usize> {
    young: FxHashMap<u64, T>,
    old: FxHashMap<u64, T>,
}

impl<T, const HALF: usize> Default for Recent<T, HALF> {
    fn default() -> Self {
        Recent { young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<T, const HALF: usize> Recent<T, HALF> {
    /// Adds a member, or replaces it.
    pub fn insert(&mut self, key: u64, value: T) {
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// A member that is not forgotten.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&T> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let old = self.old.remove(&key);
        self.young.remove(&key).or(old)
    }

    /// How many members there are; one that was replaced after long may count twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All members, by key.
    #[must_use]
    pub fn sorted(&self) -> Vec<(u64, &T)> {
        let mut all: Vec<(u64, &T)> = self.old.iter().chain(&self.young).map(|(k, v)| (*k, v)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        const HALF: u64 = 1000;
        let mut recent = Recent::<u64, { HALF as usize }>::default();
        for key in 0..3 * HALF {
            recent.insert(key, key);
        }
        assert!(recent.len() <= 2 * HALF as usize);
        assert_eq!(recent.get(3 * HALF - 1), Some(&(3 * HALF - 1)));
        assert_eq!(recent.get(0), None);
        assert_eq!(recent.remove(3 * HALF - 1), Some(3 * HALF - 1));
        assert_eq!(recent.get(3 * HALF - 1), None);
    }
}
