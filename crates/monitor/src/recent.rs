//! A map that forgets its oldest members.

use rustc_hash::FxHashMap;

/// Members of the younger half; there are at most twice as many in all.
pub(crate) const HALF: usize = 1 << 17;

/// A map of bounded size: when its younger half is full, the older half is forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Recent<T> {
    young: FxHashMap<u64, T>,
    old: FxHashMap<u64, T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent { young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<T> Recent<T> {
    pub(crate) fn insert(&mut self, key: u64, value: T) {
        if self.young.len() >= HALF {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let old = self.old.remove(&key);
        self.young.remove(&key).or(old)
    }

    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// All members, by key.
    pub(crate) fn sorted(&self) -> Vec<(u64, &T)> {
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
        let mut recent = Recent::default();
        for key in 0..3 * HALF as u64 {
            recent.insert(key, key);
        }
        assert!(recent.len() <= 2 * HALF);
        assert_eq!(recent.get(3 * HALF as u64 - 1), Some(&(3 * HALF as u64 - 1)));
        assert_eq!(recent.get(0), None);
        assert_eq!(recent.remove(3 * HALF as u64 - 1), Some(3 * HALF as u64 - 1));
        assert_eq!(recent.get(3 * HALF as u64 - 1), None);
    }
}
