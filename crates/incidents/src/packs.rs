//! Packs: old entries of the journal in one file each hundred, in place of one file each.
//!
//! A pack is written once under a name that says which entries it has, and only then do these go. So an entry is read by itself until its pack is there,
//! and from its pack from then on, whatever stands under its own name: a writer that slept for long may write one there that nobody else believes.

use std::io::{self, Read as _};

use crate::event::MOST_BYTES;

/// Compression. Entries are packed once, and mostly never read again.
const LEVEL: i32 = 9;
/// Most bytes of an entry with its digest.
const MOST_ENTRY: u64 = MOST_BYTES as u64 + 256;

/// The first and the last entry of the pack in which an entry is, where packs have so many entries.
pub(crate) fn range(n: u64, entries: u64) -> (u64, u64) {
    let first = n.saturating_sub(1) / entries * entries + 1;
    (first, first + entries - 1)
}

/// The name of a pack.
pub(crate) fn name((first, last): (u64, u64)) -> String {
    format!("pack/{first:020}-{last:020}.ndjson.zst")
}

/// Entries as they were written, one after the other.
pub(crate) fn pack(entries: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    zstd::encode_all(&*entries.concat(), LEVEL)
}

/// The entries of a pack as they were written; `None` where it is damaged.
pub(crate) fn unpack(packed: &[u8], (first, last): (u64, u64)) -> Option<Vec<Vec<u8>>> {
    let count = last - first + 1;
    let mut bytes = Vec::new();
    let mut reader = zstd::Decoder::new(packed).ok()?.take(count.saturating_mul(MOST_ENTRY));
    reader.read_to_end(&mut bytes).ok()?;
    // Two lines each: what was said, and its digest.
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let entries: Vec<Vec<u8>> = lines.chunks(2).map(<[_]>::concat).collect();
    let whole = lines.len() as u64 == 2 * count && bytes.last() == Some(&b'\n');
    whole.then_some(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_entry_is_in_one_range() {
        for size in 1..7 {
            for n in 1..50 {
                let (first, last) = range(n, size);
                assert!(
                    first <= n && n <= last && last - first + 1 == size && (first - 1).is_multiple_of(size)
                );
                assert!((first..=last).all(|other| range(other, size) == (first, last)));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked_and_half_of_it_is_not(
            texts in prop::collection::vec("[a-z]{0,20}", 1..9), cut in any::<prop::sample::Index>()
        ) {
            let entries: Vec<Vec<u8>> = texts.iter().map(|text| format!("{text}\n{{}}\n").into_bytes()).collect();
            let packed = pack(&entries).unwrap();
            let count = entries.len() as u64;
            prop_assert_eq!(unpack(&packed, (1, count)), Some(entries.clone()));
            prop_assert_eq!(unpack(&packed, (1, count + 1)), None);
            prop_assert_eq!(unpack(&packed[..cut.index(packed.len())], (1, count)), None);
        }
    }
}
