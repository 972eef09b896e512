//! The sequence numbers of one incarnation that the store has.
//!
//! Sequence numbers that an actor counted are held as runs. Those that were taken from a clock hardly ever touch: of them only
//! the ends and the number are held, so that memory does not grow with them; whether one that lies between the ends is
//! there, the index of events knows.

use demi_schemas::event::is_clock_seq;

use crate::IntervalSet;

/// Whether a sequence number is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It lies between sequence numbers taken from a clock: the index knows.
    Perhaps,
    /// It was, and was deleted.
    Deleted,
}

/// The sequence numbers of one incarnation.
#[derive(Clone, Debug, Default)]
pub(crate) struct SequenceNumbers {
    counted: IntervalSet,
    /// First and last of those taken from a clock.
    clocked: Option<(u64, u64)>,
    clocked_events: u64,
    /// What was deleted, if anything was.
    deleted: Option<Box<Deletions>>,
}

/// Sequence numbers that were deleted.
#[derive(Clone, Debug, Default)]
struct Deletions {
    numbers: IntervalSet,
    /// The counted ones of them, and those that are there: what is in neither is missing.
    known: IntervalSet,
}

impl SequenceNumbers {
    /// Whether the sequence number is there.
    pub(crate) fn holds(&self, seq: u64) -> Held {
        if self.deleted.as_ref().is_some_and(|deleted| deleted.numbers.contains(seq)) {
            return Held::Deleted;
        }
        if !is_clock_seq(seq) {
            return if self.counted.contains(seq) { Held::Yes } else { Held::No };
        }
        match self.clocked {
            Some((first, last)) if seq == first || seq == last => Held::Yes,
            Some((first, last)) if first < seq && seq < last => Held::Perhaps,
            _ => Held::No,
        }
    }

    /// Adds a sequence number that is not there; says whether that can be so.
    pub(crate) fn add(&mut self, seq: u64) -> bool {
        if !is_clock_seq(seq) {
            if let Some(deleted) = &mut self.deleted {
                deleted.known.insert(seq);
            }
            return self.counted.insert(seq);
        }
        let (first, last) = self.clocked.unwrap_or((seq, seq));
        self.clocked = Some((first.min(seq), last.max(seq)));
        self.clocked_events += 1;
        true
    }

    /// Notes that the sequence numbers from `first` to `last` were deleted.
    pub(crate) fn delete(&mut self, first: u64, last: u64) {
        let deleted = self.deleted.get_or_insert_with(|| {
            Box::new(Deletions { numbers: IntervalSet::new(), known: self.counted.clone() })
        });
        deleted.numbers.insert_run(first, last);
        if !is_clock_seq(last) {
            deleted.known.insert_run(first, last);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.counted.len() + self.clocked_events
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<u64> {
        self.counted.first().or(self.clocked.map(|(first, _)| first))
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<u64> {
        self.clocked.map(|(_, last)| last).or(self.counted.last())
    }

    /// What is missing from 1 on, as first and last of each gap. Between sequence numbers taken from a clock nothing is.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.known().gaps(1)
    }

    /// The counted ones that are there, or were deleted.
    fn known(&self) -> &IntervalSet {
        self.deleted.as_ref().map_or(&self.counted, |deleted| &deleted.known)
    }

    /// How many are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.known().last().unwrap_or(0).saturating_sub(self.known().len())
    }

    /// Stretches held in memory.
    #[cfg(test)]
    pub(crate) fn stretches(&self) -> usize {
        self.counted.gaps(1).count() + 1 + usize::from(self.clocked.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_deleted_is_not_missing() {
        let mut numbers = SequenceNumbers::default();
        for seq in [4, 5, 8] {
            numbers.add(seq);
        }
        assert_eq!((numbers.missing(), numbers.gaps().collect::<Vec<_>>()), (5, vec![(1, 3), (6, 7)]));
        numbers.delete(1, 3);
        assert_eq!((numbers.missing(), numbers.gaps().collect::<Vec<_>>()), (2, vec![(6, 7)]));
        numbers.add(9);
        assert_eq!(
            (numbers.missing(), numbers.len(), numbers.first(), numbers.last()),
            (2, 4, Some(4), Some(9))
        );
        assert_eq!([1, 4, 6, 10].map(|n| numbers.holds(n)), [Held::Deleted, Held::Yes, Held::No, Held::No]);
        // What stood before what was deleted last is missing still.
        numbers.delete(12, 20);
        assert_eq!((numbers.missing(), numbers.holds(15)), (4, Held::Deleted));
    }
}
