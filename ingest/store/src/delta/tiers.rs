//! Which small files are merged, and how long dead ones stay.
//!
//! Files that stand next to each other are merged when the largest of them is a small part of all: then each byte ends in a file
//! several times as large as the one it came from, and is written a number of times that grows with the logarithm of the files, as
//! in the tiers of a log-structured merge tree (P. O'Neil et al., "The log-structured merge-tree", 1996).

use std::ops::Range;

/// A merged file is at least so many times as large as its largest part.
const GROWTH: u64 = 4;
/// With so many times the number of files that is merged, the best run is taken however little it grows: a sequence of sizes in which
/// no run grows enough must not make files without end.
const CROWD: usize = 8;

/// The run of files that is merged next: at least `count` of them and at most `most` bytes. Of several the one that grows most.
///
/// `sizes` are in the order of the files. Time is quadratic in their number, of which there are few.
pub(super) fn run(sizes: &[u64], count: usize, most: u64) -> Option<Range<usize>> {
    let count = count.max(2);
    let growth = GROWTH.min(count as u64);
    let crowded = sizes.len() >= count * CROWD;
    // The largest part over the whole, and the run.
    let mut best: Option<(u64, u64, Range<usize>)> = None;
    for begin in 0..sizes.len() {
        let (mut largest, mut whole) = (0, 0_u64);
        for (end, &size) in sizes.iter().enumerate().skip(begin) {
            largest = largest.max(size);
            whole = whole.saturating_add(size);
            if whole > most {
                break;
            }
            let enough = largest.saturating_mul(growth) <= whole || crowded;
            let fewer = |(l, w, _): &(u64, u64, Range<usize>)| {
                u128::from(largest) * u128::from(*w) < u128::from(*l) * u128::from(whole)
            };
            if end + 1 - begin >= count && enough && best.as_ref().is_none_or(fewer) {
                best = Some((largest, whole, begin..end + 1));
            }
        }
    }
    best.map(|(.., run)| run)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_of_like_size_are_merged() {
        assert_eq!(run(&[5, 1, 1, 1, 1], 5, 99), None, "one file is half of all");
        assert_eq!(run(&[5, 1, 1, 1, 1, 1], 5, 99), Some(1..6));
        assert_eq!(run(&[25, 5, 5, 5, 5, 5, 1], 5, 99), Some(1..7));
        assert_eq!(run(&[1, 1, 1, 1], 5, 99), None, "four are not five");
        assert_eq!(run(&[40, 40, 40], 2, 99), Some(0..2), "no more than so many bytes");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever the sizes of commits are, each byte is written few times and few files are left.
        #[test]
        fn each_byte_is_written_few_times(
            sizes in proptest::collection::vec(prop_oneof![4 => 900..1100_u64, 1 => 1..40_000_u64], 2_000),
            count in 4..13_usize,
        ) {
            let (small, mut files, mut written, mut all) = (16 << 20, Vec::new(), 0, 0);
            for size in sizes {
                files.push(size);
                (written, all) = (written + size, all + size);
                while let Some(run) = run(&files, count, 256 << 20) {
                    let merged: u64 = files[run.clone()].iter().sum();
                    written += merged;
                    files.splice(run, (merged < small).then_some(merged));
                }
                prop_assert!(files.len() < count * CROWD, "{} files", files.len());
            }
            prop_assert!(written <= 8 * all, "{} times", written / all);
        }
    }
}
