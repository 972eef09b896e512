//! The entries of a log, with digests that tell whether two logs agree.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use raft::eraftpb::Entry;
use xxhash_rust::xxh3::Xxh3;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// As the library has it.
    pub entry: Entry,
    /// A digest of it and of everything before it.
    pub chain: u64,
}

/// The entries after the last compaction.
///
/// Copies share them until one is changed.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The index of the last entry that is not there any more; 0 where there was none.
    first: u64,
    /// The term of that entry.
    term: u64,
    /// The digest up to it.
    chain: u64,
    slots: Arc<Vec<Slot>>,
}

impl Entries {
    /// No entries after that one.
    #[must_use]
    pub fn after(index: u64, term: u64, chain: u64) -> Entries {
        Entries { first: index, term, chain, slots: Arc::default() }
    }

    /// The index of the last entry that was compacted.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.first
    }

    /// The index of the last entry.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The entry at an index, if it is there.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<&Slot> {
        let at = index.checked_sub(self.first + 1)?;
        self.slots.get(usize::try_from(at).ok()?)
    }

    /// All entries.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The term of an entry, also of the last that was compacted.
    #[must_use]
    pub fn term(&self, index: u64) -> Option<u64> {
        if index == self.first { Some(self.term) } else { self.get(index).map(|slot| slot.entry.term) }
    }

    /// The digest up to an entry, also up to the last that was compacted.
    #[must_use]
    pub fn chain(&self, index: u64) -> Option<u64> {
        if index == self.first { Some(self.chain) } else { self.get(index).map(|slot| slot.chain) }
    }

    /// Puts entries in the place of those from the first one's index on. What is compacted already, or would leave a gap,
    /// is not put anywhere.
    pub fn append(&mut self, entries: &[Entry]) {
        let Some(start) = entries.first().map(|entry| entry.index) else { return };
        if start <= self.first || start > self.last() + 1 {
            return;
        }
        let kept = usize::try_from(start - self.first - 1).unwrap_or(usize::MAX);
        let mut chain = self.chain(start - 1).unwrap_or_default();
        let slots = Arc::make_mut(&mut self.slots);
        slots.truncate(kept);
        for entry in entries {
            chain = chained(chain, entry);
            slots.push(Slot { entry: entry.clone(), chain });
        }
    }

    /// Drops everything up to that entry, if it is there.
    pub fn compact(&mut self, index: u64) {
        let (Some(term), Some(chain)) = (self.term(index), self.chain(index)) else { return };
        let slots = self.slots.iter().filter(|slot| slot.entry.index > index).cloned().collect();
        *self = Entries { first: index, term, chain, slots: Arc::new(slots) };
    }

    /// Whether both are the same copy.
    pub(crate) fn same(&self, other: &Entries) -> bool {
        Arc::ptr_eq(&self.slots, &other.slots) && self.first == other.first
    }

    /// The digest of everything.
    pub(crate) fn digest(&self) -> u64 {
        self.slots.last().map_or(self.chain, |slot| slot.chain)
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        let key = |e: &Entries| (e.first, e.term, e.chain, e.slots.len(), e.digest());
        key(self) == key(other) && (Arc::ptr_eq(&self.slots, &other.slots) || self.slots == other.slots)
    }
}

impl Eq for Entries {}

impl Hash for Entries {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.first, self.term, self.slots.len(), self.digest()).hash(state);
    }
}

/// The digest of an entry after those with a digest.
pub(crate) fn chained(before: u64, entry: &Entry) -> u64 {
    let mut hasher = Xxh3::new();
    (before, entry.index, entry.term, entry.entry_type as i32).hash(&mut hasher);
    entry.data.hash(&mut hasher);
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, term: u64) -> Entry {
        Entry { index, term, ..Entry::default() }
    }

    #[test]
    fn what_is_appended_overwrites_and_compaction_keeps_the_digest() {
        let mut log = Entries::after(1, 1, 7);
        log.append(&[entry(2, 1), entry(3, 1), entry(4, 1)]);
        let chain = log.chain(2).unwrap();
        log.append(&[entry(3, 2)]);
        assert_eq!((log.last(), log.term(3), log.chain(2)), (3, Some(2), Some(chain)));
        let digest = log.digest();
        log.compact(2);
        assert_eq!((log.base(), log.slots().len(), log.digest()), (2, 1, digest));
        log.append(&[entry(2, 9)]);
        log.append(&[entry(9, 9)]);
        assert_eq!((log.last(), log.digest()), (3, digest));
    }
}
