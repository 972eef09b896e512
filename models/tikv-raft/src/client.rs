//! The client: it knows what was acknowledged before it asks.

use std::collections::BTreeMap;

/// What the client knows. It never fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// By index of the log: the write that was acknowledged there, and the term of the node that did.
    pub acknowledged: BTreeMap<u64, (u64, u64)>,
    /// The newest index that a read has returned.
    pub read: u64,
    /// Reads without an answer, with the index that the answer must reach.
    pub reads: BTreeMap<u64, u64>,
    /// The first read that returned something older than what was known before it was asked.
    pub stale: Option<u64>,
    /// An index at which two writes were acknowledged.
    pub twice: Option<u64>,
}

impl Client {
    /// A write was acknowledged.
    pub(crate) fn done(&mut self, write: u64, index: u64, term: u64) {
        let known = self.acknowledged.entry(index).or_insert((write, term));
        if known.0 != write {
            self.twice.get_or_insert(index);
        }
        known.1 = known.1.min(term);
    }

    /// A read is asked now.
    pub(crate) fn ask(&mut self, read: u64) {
        let acknowledged = self.acknowledged.last_key_value().map_or(0, |(&index, _)| index);
        self.reads.insert(read, acknowledged.max(self.read));
    }

    /// A read is answered.
    pub(crate) fn value(&mut self, read: u64, index: u64) {
        let Some(least) = self.reads.remove(&read) else { return };
        if index < least {
            self.stale.get_or_insert(read);
        }
        self.read = self.read.max(index);
    }
}
