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
}

/// The sequence numbers of one incarnation.
#[derive(Clone, Debug, Default)]
pub(crate) struct SequenceNumbers {
    counted: IntervalSet,
    /// First and last of those taken from a clock.
    clocked: Option<(u64, u64)>,
    clocked_events: u64,
}

impl SequenceNumbers {
    /// Whether the sequence number is there.
    pub(crate) fn holds(&self, seq: u64) -> Held {
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
            return self.counted.insert(seq);
        }
        let (first, last) = self.clocked.unwrap_or((seq, seq));
        self.clocked = Some((first.min(seq), last.max(seq)));
        self.clocked_events += 1;
        true
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
        self.counted.gaps(1)
    }

    /// How many are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.counted.last().unwrap_or(0).saturating_sub(self.counted.len())
    }

    /// Stretches held in memory.
    #[cfg(test)]
    pub(crate) fn stretches(&self) -> usize {
        self.counted.gaps(1).count() + 1 + usize::from(self.clocked.is_some())
    }
}
