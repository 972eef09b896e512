//! Up to which index a leader may commit, given what its peers have.

use std::cmp::{Ordering, Reverse};

/// The hash tables of the original enumerate up to this many keys by bucket, more of them as a trie.
const FEW: usize = 4;

/// The greatest index that more than half of the members have reached.
///
/// `None` if no value is there to take.
#[must_use]
pub fn median(values: &mut [i32]) -> Option<i32> {
    values.sort_unstable();
    values.get(values.len().div_ceil(2).checked_sub(1)?).copied()
}

/// The most frequent value. Ties go to the one that the original's hash table enumerates first.
///
/// `None` if there are no values.
#[must_use]
pub fn mode(values: &[i32]) -> Option<i32> {
    // In the order in which they are met, with their frequencies.
    let mut distinct: Vec<(i32, usize)> = Vec::with_capacity(values.len());
    for &value in values {
        match distinct.iter_mut().find(|(known, _)| *known == value) {
            Some((_, frequency)) => *frequency += 1,
            None => distinct.push((value, 1)),
        }
    }
    let few = distinct.len() <= FEW;
    let first = distinct.iter().enumerate().min_by(|(met_a, (a, fa)), (met_b, (b, fb))| {
        let enumerated = match few {
            true => (Reverse(bucket(*a)), Reverse(met_a)).cmp(&(Reverse(bucket(*b)), Reverse(met_b))),
            false => trie_order(*a, *b),
        };
        fb.cmp(fa).then(enumerated)
    });
    first.map(|(_, (value, _))| *value)
}

/// The bucket of a key in the original's small hash tables, which are enumerated from the highest bucket.
fn bucket(key: i32) -> u32 {
    const FACTOR: u32 = 0x9E37_75CD;
    let scrambled = key.cast_unsigned().wrapping_mul(FACTOR).swap_bytes().wrapping_mul(FACTOR);
    scrambled.rotate_right(4) >> 28
}

/// The order of two keys in the original's hash tries.
fn trie_order(a: i32, b: i32) -> Ordering {
    let (mut a, mut b) = (trie_hash(a), trie_hash(b));
    while a != b {
        match (a & 31).cmp(&(b & 31)) {
            Ordering::Equal => (a, b) = (a >> 5, b >> 5),
            different => return different,
        }
    }
    Ordering::Equal
}

fn trie_hash(key: i32) -> u32 {
    let key = key.cast_unsigned();
    let mut g = key.wrapping_add(!(key << 9));
    g ^= g >> 14;
    g = g.wrapping_add(g << 4);
    g ^ (g >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets() {
        let buckets: Vec<u32> = (-1..=12).map(bucket).collect();
        assert_eq!(buckets, [13, 0, 6, 12, 2, 8, 11, 1, 7, 13, 3, 6, 12, 2]);
    }

    #[test]
    fn trie_enumeration() {
        let mut keys: Vec<i32> = (0..=12).collect();
        keys.sort_by(|a, b| trie_order(*a, *b));
        assert_eq!(keys, [0, 5, 10, 1, 6, 9, 2, 12, 7, 3, 11, 8, 4]);
    }

    #[test]
    fn modes() {
        assert_eq!(mode(&[0, 1, 2, 3]), Some(2));
        assert_eq!(mode(&[0, 0, 1, 1]), Some(1));
        assert_eq!(mode(&[3, 3, 7, 7]), Some(7));
        assert_eq!(mode(&[4, 4, 5, 5]), Some(5));
        assert_eq!(mode(&[9, 7, 0, 5, 6, 1]), Some(0));
        assert_eq!(mode(&[0, 1, 1, 2]), Some(1));
        assert_eq!(mode(&[]), None);
    }

    #[test]
    fn in_a_bucket_the_value_met_last_comes_first() {
        assert_eq!(mode(&[-1, 8]), Some(8));
        assert_eq!(mode(&[8, -1]), Some(-1));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut [5, 0, 3, 4]), Some(3));
        assert_eq!(median(&mut [5, 0, 3]), Some(3));
        assert_eq!(median(&mut [7]), Some(7));
        assert_eq!(median(&mut []), None);
    }
}
