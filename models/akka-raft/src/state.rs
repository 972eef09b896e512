//! A member's variables and what is done to its log.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::tables::{Table, Tally};
use demi_replay::names::ActorId;

/// Entries that one append carries at most.
const BATCH: usize = 5;

/// A log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// The command: the word to append.
    pub word: u64,
    /// Term of the leader that took the command.
    pub term: i32,
    /// The index it was given; may differ from its position in a zero-indexed log.
    pub index: i32,
}

/// What a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// It knows no configuration.
    #[default]
    Init,
    /// It takes entries and votes.
    Follower,
    /// It collects votes.
    Candidate,
    /// It replicates its log.
    Leader,
}

impl Role {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Init => "Init",
            Role::Follower => "Follower",
            Role::Candidate => "Candidate",
            Role::Leader => "Leader",
        }
    }
}

/// A member's variables.
///
/// Equality leaves out the counters: they only number timers.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// What it is.
    pub role: Role,
    /// Its term.
    pub term: i32,
    /// All members by name; empty as long as none are known.
    pub config: Arc<[ActorId]>,
    /// Whom it voted for in which term, by term.
    pub votes: Vec<(i32, ActorId)>,
    /// Votes for it as a candidate; empty otherwise.
    pub tally: Tally,
    /// Its log; changed by the methods only, which keep the digest.
    pub log: Vec<Entry>,
    /// Changes with the log.
    pub log_digest: u64,
    /// Index up to which it has committed.
    pub committed: i32,
    /// As leader: the index each member gets next.
    pub next: Table,
    /// As leader: the index up to which each member's log is known to agree.
    pub matched: Table,
    /// The commands it has applied; changed by [`Member::commit`] only, which keeps the digest.
    pub words: Vec<u64>,
    /// Changes with the words.
    pub words_digest: u64,
    /// Generation of the next timer.
    pub timer_gen: u32,
    /// Messages received.
    pub events: u32,
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        self.role == other.role
            && self.term == other.term
            && self.log_digest == other.log_digest
            && self.committed == other.committed
            && self.votes == other.votes
            && self.tally == other.tally
            && self.next == other.next
            && self.matched == other.matched
            && self.config == other.config
            && self.log == other.log
            && self.words == other.words
    }
}

impl Eq for Member {}

impl Hash for Member {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The digests stand for the long lists.
        (self.role, self.term, self.committed, self.log_digest, self.words_digest).hash(state);
        self.config.hash(state);
        (&self.votes, &self.tally, &self.next, &self.matched).hash(state);
    }
}

impl Member {
    /// Whom it voted for in a term.
    #[must_use]
    pub fn vote(&self, term: i32) -> Option<ActorId> {
        // Almost always the question is about the latest term.
        match self.votes.last() {
            Some((last, candidate)) if *last == term => Some(*candidate),
            Some((last, _)) if *last > term => {
                self.votes.binary_search_by_key(&term, |(t, _)| *t).ok().map(|at| self.votes[at].1)
            }
            _ => None,
        }
    }

    /// Records a vote.
    pub fn set_vote(&mut self, term: i32, candidate: ActorId) {
        match self.votes.binary_search_by_key(&term, |(t, _)| *t) {
            Ok(at) => self.votes[at].1 = candidate,
            Err(at) => self.votes.insert(at, (term, candidate)),
        }
    }

    /// Term of the last entry, 0 if there is none.
    #[must_use]
    pub fn last_term(&self) -> i32 {
        self.log.last().map_or(0, |entry| entry.term)
    }

    /// Index of the last entry, 0 if there is none.
    #[must_use]
    pub fn last_index(&self) -> i32 {
        self.log.last().map_or(0, |entry| entry.index)
    }

    /// Length of the log, as an index.
    #[must_use]
    pub fn length(&self) -> i32 {
        i32::try_from(self.log.len()).unwrap_or(i32::MAX)
    }

    /// Term of the first entry that carries an index; 0 below the first.
    #[must_use]
    pub fn term_at(&self, index: i32) -> Option<i32> {
        if index <= 0 {
            return Some(0);
        }
        // One-indexed logs have each entry in its place, zero-indexed ones need not.
        match usize::try_from(index - 1).ok().and_then(|at| self.log.get(at)) {
            Some(entry) if entry.index == index => Some(entry.term),
            _ => self.log.iter().find(|entry| entry.index == index).map(|entry| entry.term),
        }
    }

    /// At most five entries of one term from a position on.
    #[must_use]
    pub fn batch(&self, position: i32) -> &[Entry] {
        let end = place(position.saturating_add(BATCH as i32)).min(self.log.len());
        let entries = self.log.get(place(position)..end).unwrap_or_default();
        let same = entries.iter().take_while(|entry| entry.term == entries[0].term).count();
        &entries[..same]
    }

    /// Takes entries into the log. `base` is the index of position 0; `truncate` cuts behind them even where
    /// nothing conflicts.
    pub fn append(&mut self, entries: &[Entry], base: i32, truncate: bool) {
        let Some(smallest) = entries.iter().map(|entry| entry.index).min() else { return };
        let start = place(smallest.saturating_sub(base));
        let same = |(k, entry): &(usize, &Entry)| {
            self.log.get(start + k).is_some_and(|mine| mine.term == entry.term && mine.index == entry.index)
        };
        let kept = if truncate { 0 } else { entries.iter().enumerate().take_while(same).count() };
        if truncate || kept < entries.len() {
            self.log.truncate(start + kept);
            self.log.extend_from_slice(&entries[kept..]);
            self.log_digest = self.log.iter().fold(0, digest);
        }
    }

    /// Adds an entry at the end of the log.
    pub fn push(&mut self, entry: Entry) {
        self.log.push(entry);
        self.log_digest = digest(self.log_digest, &entry);
    }

    /// Applies the commands up to an index, and counts each as committed.
    pub fn commit(&mut self, upto: i32, base: i32) {
        for position in self.uncommitted(upto, base) {
            let Entry { word, index, .. } = self.log[position];
            self.words.push(word);
            self.words_digest = mix(self.words_digest, word);
            self.committed = index;
        }
    }

    /// The positions of the entries to apply when the commit index becomes `upto`.
    fn uncommitted(&self, upto: i32, base: i32) -> std::ops::Range<usize> {
        let end = place(upto.saturating_add(1 - base)).min(self.log.len());
        place(self.committed.saturating_add(1 - base)).min(end)..end
    }
}

/// A digest of one more entry.
fn digest(so_far: u64, entry: &Entry) -> u64 {
    let place = (u64::from(entry.term.cast_unsigned()) << 32) | u64::from(entry.index.cast_unsigned());
    mix(mix(so_far, entry.word), place)
}

/// A digest of one more number.
#[must_use]
pub fn mix(so_far: u64, number: u64) -> u64 {
    // The addend makes an empty list differ from one of zeros.
    let z = (so_far.rotate_left(23) ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

/// A position, the first one for what lies before it.
fn place(position: i32) -> usize {
    usize::try_from(position).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: &[(u64, i32, i32)]) -> Vec<Entry> {
        entries.iter().map(|&(word, term, index)| Entry { word, term, index }).collect()
    }

    fn member(entries: &[(u64, i32, i32)]) -> Member {
        Member { log: log(entries), ..Member::default() }
    }

    #[test]
    fn truncating_append_cuts_behind_a_prefix() {
        let mut m = member(&[(1, 1, 1), (2, 1, 2), (3, 1, 3)]);
        m.append(&log(&[(1, 1, 1)]), 1, true);
        assert_eq!(m.log, log(&[(1, 1, 1)]));
    }

    #[test]
    fn repaired_append_cuts_only_at_a_conflict() {
        let all = [(1, 1, 1), (2, 1, 2), (3, 1, 3)];
        let mut m = member(&all);
        m.append(&log(&[(1, 1, 1), (2, 1, 2)]), 1, false);
        assert_eq!(m.log, log(&all));
        m.append(&log(&[(1, 1, 1), (9, 2, 2)]), 1, false);
        assert_eq!(m.log, log(&[(1, 1, 1), (9, 2, 2)]));
        m.append(&log(&[(9, 2, 2), (10, 2, 3)]), 1, false);
        assert_eq!(m.log, log(&[(1, 1, 1), (9, 2, 2), (10, 2, 3)]));
    }

    #[test]
    fn zero_indexed_append_leaves_gaps_unnoticed() {
        let mut m = member(&[(1, 1, 0)]);
        m.append(&log(&[(5, 2, 4)]), 0, true);
        assert_eq!(m.log, log(&[(1, 1, 0), (5, 2, 4)]));
        assert_eq!(m.term_at(4), Some(2));
        assert_eq!(m.term_at(1), None);
    }

    #[test]
    fn a_batch_is_short_and_of_one_term() {
        let m =
            member(&[(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4), (5, 2, 5), (6, 2, 6), (7, 2, 7), (8, 2, 8)]);
        assert_eq!(m.batch(0).len(), 2);
        assert_eq!(m.batch(2).len(), 5);
        assert_eq!(m.batch(6).len(), 2);
        assert!(m.batch(8).is_empty() && m.batch(20).is_empty());
    }

    #[test]
    fn what_is_to_apply_depends_on_the_family() {
        let mut m = member(&[(1, 1, 1), (2, 1, 2), (3, 1, 3)]);
        assert_eq!(m.uncommitted(2, 1), 0..2);
        m.committed = 2;
        assert_eq!(m.uncommitted(9, 1), 2..3);
        assert!(m.uncommitted(1, 1).is_empty());
        m.committed = -1;
        assert_eq!(m.uncommitted(0, 0), 0..1);
        m.committed = 0;
        assert_eq!(m.uncommitted(1, 0), 1..2);
    }

    #[test]
    fn votes_are_found_by_term() {
        let mut m = Member::default();
        m.set_vote(3, ActorId(1));
        m.set_vote(1, ActorId(2));
        assert_eq!(
            (m.vote(1), m.vote(2), m.vote(3), m.vote(4)),
            (Some(ActorId(2)), None, Some(ActorId(1)), None)
        );
    }
}
