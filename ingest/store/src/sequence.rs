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

/// The sequence numbers of one incarnation. There may be millions of incarnations: what is simple takes no memory of its own.
#[derive(Clone, Debug)]
pub(crate) enum SequenceNumbers {
    /// Counted ones that follow one another; none where the first is behind the last.
    Run { first: u64, last: u64 },
    /// Some that were taken from a clock: the first, the last, and how many there are.
    Clock { first: u64, last: u64, events: u32 },
    /// Any.
    Any(Box<Any>),
}

/// Any sequence numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Any {
    counted: IntervalSet,
    /// First and last of those taken from a clock.
    clocked: Option<(u64, u64)>,
    clocked_events: u64,
    /// What was deleted, if anything was.
    deleted: Option<Deletions>,
}

/// Sequence numbers that were deleted.
#[derive(Clone, Debug, Default)]
struct Deletions {
    numbers: IntervalSet,
    /// The counted ones of them, and those that are there: what is in neither is missing.
    known: IntervalSet,
}

impl Default for SequenceNumbers {
    fn default() -> Self {
        SequenceNumbers::Run { first: 1, last: 0 }
    }
}

impl SequenceNumbers {
    /// Whether the sequence number is there.
    pub(crate) fn holds(&self, seq: u64) -> Held {
        let counted = |held: bool| if held { Held::Yes } else { Held::No };
        match self {
            SequenceNumbers::Run { first, last } => counted(*first <= seq && seq <= *last),
            SequenceNumbers::Clock { first, last, .. } => among(seq, *first, *last),
            SequenceNumbers::Any(any) => {
                if any.deleted.as_ref().is_some_and(|deleted| deleted.numbers.contains(seq)) {
                    return Held::Deleted;
                }
                match any.clocked {
                    _ if !is_clock_seq(seq) => counted(any.counted.contains(seq)),
                    Some((first, last)) => among(seq, first, last),
                    None => Held::No,
                }
            }
        }
    }

    /// Adds a sequence number that is not there; says whether that can be so.
    pub(crate) fn add(&mut self, seq: u64) -> bool {
        let clock = is_clock_seq(seq);
        match self {
            SequenceNumbers::Run { first, last } if *first > *last => {
                *self = match clock {
                    true => SequenceNumbers::Clock { first: seq, last: seq, events: 1 },
                    false => SequenceNumbers::Run { first: seq, last: seq },
                };
                true
            }
            SequenceNumbers::Run { first, last } if !clock && *first <= seq && seq <= *last => false,
            SequenceNumbers::Run { last, .. } if !clock && seq == *last + 1 => {
                *last = seq;
                true
            }
            SequenceNumbers::Run { first, .. } if !clock && seq + 1 == *first => {
                *first = seq;
                true
            }
            SequenceNumbers::Clock { first, last, events } if clock && *events < u32::MAX => {
                (*first, *last, *events) = ((*first).min(seq), (*last).max(seq), *events + 1);
                true
            }
            _ => self.any(|any| any.add(seq)),
        }
    }

    /// Notes that the sequence numbers from `first` to `last` were deleted.
    pub(crate) fn delete(&mut self, first: u64, last: u64) {
        self.any(|any| {
            let deleted = any
                .deleted
                .get_or_insert_with(|| Deletions { numbers: IntervalSet::new(), known: any.counted.clone() });
            deleted.numbers.insert_run(first, last);
            if !is_clock_seq(last) {
                deleted.known.insert_run(first, last);
            }
        });
    }

    /// Does something to the same in the form that can be anything.
    fn any<T>(&mut self, change: impl FnOnce(&mut Any) -> T) -> T {
        let mut any = match std::mem::take(self) {
            SequenceNumbers::Any(any) => any,
            SequenceNumbers::Run { first, last } => {
                let mut any = Box::<Any>::default();
                if first <= last {
                    any.counted.insert_run(first, last);
                }
                any
            }
            SequenceNumbers::Clock { first, last, events } => Box::new(Any {
                clocked: Some((first, last)),
                clocked_events: u64::from(events),
                ..Any::default()
            }),
        };
        let done = change(&mut any);
        *self = SequenceNumbers::Any(any);
        done
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            SequenceNumbers::Run { first, last } => (last + 1).saturating_sub(*first),
            SequenceNumbers::Clock { events, .. } => u64::from(*events),
            SequenceNumbers::Any(any) => any.counted.len() + any.clocked_events,
        }
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<u64> {
        match self {
            SequenceNumbers::Run { first, last } => (first <= last).then_some(*first),
            SequenceNumbers::Clock { first, .. } => Some(*first),
            SequenceNumbers::Any(any) => any.counted.first().or(any.clocked.map(|(first, _)| first)),
        }
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<u64> {
        match self {
            SequenceNumbers::Run { first, last } => (first <= last).then_some(*last),
            SequenceNumbers::Clock { last, .. } => Some(*last),
            SequenceNumbers::Any(any) => any.clocked.map(|(_, last)| last).or(any.counted.last()),
        }
    }

    /// What is missing from 1 on, as first and last of each gap. Between sequence numbers taken from a clock nothing is.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (before, known) = match self {
            SequenceNumbers::Run { first, last } => {
                ((first <= last && *first > 1).then(|| (1, first - 1)), None)
            }
            SequenceNumbers::Clock { .. } => (None, None),
            SequenceNumbers::Any(any) => (None, Some(any.known())),
        };
        before.into_iter().chain(known.into_iter().flat_map(|known| known.gaps(1)))
    }

    /// How many are missing.
    pub(crate) fn missing(&self) -> u64 {
        match self {
            SequenceNumbers::Run { first, last } if first <= last => first.saturating_sub(1),
            SequenceNumbers::Run { .. } | SequenceNumbers::Clock { .. } => 0,
            SequenceNumbers::Any(any) => any.known().last().unwrap_or(0).saturating_sub(any.known().len()),
        }
    }

    /// Stretches held in memory.
    #[cfg(test)]
    pub(crate) fn stretches(&self) -> usize {
        match self {
            SequenceNumbers::Any(any) => any.counted.gaps(1).count() + 1 + usize::from(any.clocked.is_some()),
            _ => 1,
        }
    }
}

/// Whether a sequence number from a clock is there, where these are the ends.
fn among(seq: u64, first: u64, last: u64) -> Held {
    match seq {
        _ if seq == first || seq == last => Held::Yes,
        _ if first < seq && seq < last => Held::Perhaps,
        _ => Held::No,
    }
}

impl Any {
    fn add(&mut self, seq: u64) -> bool {
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

    /// The counted ones that are there, or were deleted.
    fn known(&self) -> &IntervalSet {
        self.deleted.as_ref().map_or(&self.counted, |deleted| &deleted.known)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use demi_schemas::event::FIRST_CLOCK_SEQ;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_short_forms_say_what_the_long_one_says(
            offered in prop::collection::vec((any::<bool>(), 0u64..12), 0..12), deleted in prop::option::of((1u64..12, 0u64..4)),
        ) {
            let (mut short, mut long, mut plain) = (SequenceNumbers::default(), SequenceNumbers::Any(Box::default()), BTreeSet::new());
            let many = offered.len() > 6;
            for (clock, n) in offered {
                let seq = if clock && many { FIRST_CLOCK_SEQ + n } else { n };
                if plain.insert(seq) {
                    prop_assert!(short.add(seq) && long.add(seq));
                }
            }
            if let Some((first, more)) = deleted {
                short.delete(first, first + more);
                long.delete(first, first + more);
            }
            let all = |n: &SequenceNumbers| (n.len(), n.first(), n.last(), n.missing(), n.gaps().collect::<Vec<_>>());
            prop_assert_eq!(all(&short), all(&long));
            prop_assert_eq!(short.len(), plain.len() as u64);
            for n in (0..14).chain((0..14).map(|n| FIRST_CLOCK_SEQ + n)) {
                prop_assert_eq!(short.holds(n), long.holds(n));
                if deleted.is_none() && short.holds(n) != Held::Perhaps {
                    prop_assert_eq!(short.holds(n) == Held::Yes, plain.contains(&n));
                }
            }
        }
    }

    #[test]
    fn most_incarnations_take_no_memory_of_their_own() {
        assert!(size_of::<SequenceNumbers>() <= 24, "{}", size_of::<SequenceNumbers>());
    }

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
