//! A set of sequence numbers, kept as runs: memory grows with the gaps, not with the numbers.

use std::collections::BTreeMap;

/// A set of `u64` that is small when its members are mostly consecutive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet {
    /// First of a run → its last; runs neither touch nor overlap.
    runs: BTreeMap<u64, u64>,
    len: u64,
}

impl IntervalSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        IntervalSet::default()
    }

    /// Adds `n`; says whether it was new.
    pub fn insert(&mut self, n: u64) -> bool {
        let before = self.runs.range_mut(..=n).next_back();
        let mut joined = None;
        if let Some((&first, last)) = before {
            if *last >= n {
                return false;
            }
            if *last + 1 == n {
                *last = n;
                joined = Some(first);
            }
        }
        let next = n.checked_add(1).and_then(|m| self.runs.remove(&m));
        match (joined, next) {
            (Some(first), Some(end)) => {
                self.runs.insert(first, end);
            }
            (None, Some(end)) => {
                self.runs.insert(n, end);
            }
            (None, None) => {
                self.runs.insert(n, n);
            }
            (Some(_), None) => {}
        }
        self.len += 1;
        true
    }

    /// Adds all numbers from `first` to `last`.
    pub fn insert_run(&mut self, first: u64, last: u64) {
        let (mut from, mut to) = (first, last);
        // Runs that overlap or touch are taken out and become part of the new one.
        while let Some((&start, &end)) = self.runs.range(..=to.saturating_add(1)).next_back() {
            if end.saturating_add(1) < from {
                break;
            }
            self.runs.remove(&start);
            self.len -= end - start + 1;
            (from, to) = (from.min(start), to.max(end));
        }
        self.len += to - from + 1;
        self.runs.insert(from, to);
    }

    /// The runs as inclusive ranges, in order.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|(&first, &last)| (first, last))
    }

    /// Whether `n` is in the set.
    #[must_use]
    pub fn contains(&self, n: u64) -> bool {
        self.runs.range(..=n).next_back().is_some_and(|(_, last)| *last >= n)
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The smallest member.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.runs.first_key_value().map(|(first, _)| *first)
    }

    /// The largest member.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.runs.last_key_value().map(|(_, last)| *last)
    }

    /// The runs between `from` and the largest member that are not in the set, as inclusive ranges, in order.
    pub fn gaps(&self, from: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut expected = from;
        self.runs.iter().filter_map(move |(&first, &last)| {
            let gap = (first > expected).then(|| (expected, first - 1));
            expected = expected.max(last.saturating_add(1));
            gap
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(numbers in proptest::collection::vec(1u64..60, 0..120)) {
            let mut set = IntervalSet::new();
            let mut plain = BTreeSet::new();
            for n in numbers {
                prop_assert_eq!(set.insert(n), plain.insert(n));
                prop_assert_eq!(set.len(), plain.len() as u64);
            }
            for n in 0..62 {
                prop_assert_eq!(set.contains(n), plain.contains(&n));
            }
            prop_assert_eq!(set.first(), plain.first().copied());
            prop_assert_eq!(set.last(), plain.last().copied());
            let missing: Vec<u64> = set.gaps(1).flat_map(|(a, b)| a..=b).collect();
            let expected: Vec<u64> =
                (1..plain.last().copied().unwrap_or(0)).filter(|n| !plain.contains(n)).collect();
            prop_assert_eq!(missing, expected);
            let runs: Vec<_> = set.runs.iter().collect();
            prop_assert!(runs.windows(2).all(|w| *w[0].1 + 1 < *w[1].0), "runs touch: {:?}", set);
        }
    }

    proptest! {
        #[test]
        fn runs_are_added_as_their_numbers_are(
            before in proptest::collection::vec(1u64..60, 0..40),
            added in proptest::collection::vec((1u64..60, 0u64..20), 0..12),
        ) {
            let (mut by_run, mut one_by_one) = (IntervalSet::new(), IntervalSet::new());
            for n in before {
                by_run.insert(n);
                one_by_one.insert(n);
            }
            for (first, more) in added {
                by_run.insert_run(first, first + more);
                (first..=first + more).for_each(|n| {
                    one_by_one.insert(n);
                });
                prop_assert_eq!(&by_run, &one_by_one);
            }
        }
    }

    #[test]
    fn the_ends_of_the_number_range_are_members_like_others() {
        let mut set = IntervalSet::new();
        assert!(set.insert(u64::MAX) && set.insert(0) && set.insert(u64::MAX - 1));
        assert!(!set.insert(u64::MAX));
        assert_eq!(set.gaps(0).collect::<Vec<_>>(), [(1, u64::MAX - 2)]);
    }
}
