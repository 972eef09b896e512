//! Where each event is and what it says, for events that may come again: an index in an unnamed temporary file,
//! of which memory holds a bounded part.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rustc_hash::FxHashMap;

/// Entries of an incarnation that are written together.
const SEGMENT: usize = 512;
/// Entries held in memory before all are written: at 32 bytes each, 32 MiB.
const MOST_OPEN: usize = 1 << 20;
/// Segments read back that are held: at most 32 MiB.
const MOST_CACHED: usize = 2048;
const ENTRY: usize = 28;

/// What is known of one stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub seq: u64,
    pub digest: u64,
    pub offset: u64,
    /// Number of the source, given out by whoever owns the index.
    pub source: u32,
}

/// A run of entries in the file, sorted by sequence number.
#[derive(Clone, Copy)]
struct Segment {
    first: u64,
    last: u64,
    at: u64,
    count: u32,
    /// The least sequence number of this segment and all behind it.
    least: u64,
    /// The greatest sequence number of this segment and all before it.
    most: u64,
}

#[derive(Default)]
struct IncarnationIndex {
    open: Vec<Entry>,
    segments: Vec<Segment>,
    /// The segment found last; the next event looked for is mostly beside it.
    hint: usize,
}

/// An index from (incarnation, sequence number) to [`Entry`].
pub(crate) struct Locations {
    file: File,
    end: u64,
    incarnations: Vec<IncarnationIndex>,
    open: usize,
    most_open: usize,
    cache: FxHashMap<u64, Vec<Entry>>,
}

impl Locations {
    /// An empty index over `file`, which nobody else uses.
    pub(crate) fn new(file: File) -> Self {
        Locations {
            file,
            end: 0,
            incarnations: Vec::new(),
            open: 0,
            most_open: MOST_OPEN,
            cache: FxHashMap::default(),
        }
    }

    /// Adds an event of an incarnation. The same sequence number is never added twice.
    pub(crate) fn add(&mut self, slot: u32, entry: Entry) -> io::Result<()> {
        let slot = slot as usize;
        if self.incarnations.len() <= slot {
            self.incarnations.resize_with(slot + 1, IncarnationIndex::default);
        }
        self.incarnations[slot].open.push(entry);
        self.open += 1;
        if self.incarnations[slot].open.len() >= SEGMENT {
            self.close(slot)?;
        } else if self.open >= self.most_open {
            for slot in 0..self.incarnations.len() {
                self.close(slot)?;
                self.incarnations[slot].open.shrink_to_fit();
            }
        }
        Ok(())
    }

    /// Writes the open entries of an incarnation.
    fn close(&mut self, slot: usize) -> io::Result<()> {
        let index = &mut self.incarnations[slot];
        index.open.sort_unstable_by_key(|e| e.seq);
        let (Some(first), Some(last)) = (index.open.first(), index.open.last()) else {
            return Ok(());
        };
        let (first, last, count) = (first.seq, last.seq, index.open.len() as u32);
        let most = index.segments.last().map_or(last, |s| s.most.max(last));
        let segment = Segment { first, last, at: self.end, count, least: first, most };
        let mut bytes = Vec::with_capacity(index.open.len() * ENTRY);
        for entry in &index.open {
            bytes.extend_from_slice(&entry.seq.to_le_bytes());
            bytes.extend_from_slice(&entry.digest.to_le_bytes());
            bytes.extend_from_slice(&entry.offset.to_le_bytes());
            bytes.extend_from_slice(&entry.source.to_le_bytes());
        }
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&bytes)?;
        self.end += bytes.len() as u64;
        self.open -= index.open.len();
        index.open.clear();
        // A log is mostly in order: this ends soon.
        for before in index.segments.iter_mut().rev().take_while(|s| s.least > first) {
            before.least = first;
        }
        index.segments.push(segment);
        Ok(())
    }

    /// The entry of an event, if it was added.
    pub(crate) fn find(&mut self, slot: u32, seq: u64) -> io::Result<Option<Entry>> {
        let slot = slot as usize;
        let Some(index) = self.incarnations.get(slot) else { return Ok(None) };
        let holds = |s: &Segment| s.first <= seq && seq <= s.last;
        if index.segments.get(index.hint).is_some_and(holds) {
            let hint = index.hint;
            if let Some(entry) = self.find_in(slot, hint, seq)? {
                return Ok(Some(entry));
            }
        }
        let index = &self.incarnations[slot];
        if let Some(entry) = index.open.iter().find(|e| e.seq == seq) {
            return Ok(Some(*entry));
        }
        // Both bounds ascend: what can hold the number lies between.
        let from = index.segments.partition_point(|s| s.most < seq);
        let to = index.segments.partition_point(|s| s.least <= seq);
        let candidates: Vec<usize> = (from..to).filter(|i| holds(&index.segments[*i])).collect();
        for number in candidates {
            if let Some(entry) = self.find_in(slot, number, seq)? {
                self.incarnations[slot].hint = number;
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Entries and segments in memory, those read back left out.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.open + self.incarnations.iter().map(|slot| slot.segments.len()).sum::<usize>()
    }

    fn find_in(&mut self, slot: usize, number: usize, seq: u64) -> io::Result<Option<Entry>> {
        let segment = self.incarnations[slot].segments[number];
        if !self.cache.contains_key(&segment.at) {
            if self.cache.len() >= MOST_CACHED {
                self.cache.clear();
            }
            let entries = self.read(segment)?;
            self.cache.insert(segment.at, entries);
        }
        let entries = self.cache.get(&segment.at).map_or(&[][..], Vec::as_slice);
        Ok(entries.binary_search_by_key(&seq, |e| e.seq).ok().map(|i| entries[i]))
    }

    fn read(&mut self, segment: Segment) -> io::Result<Vec<Entry>> {
        let mut bytes = vec![0; segment.count as usize * ENTRY];
        self.file.seek(SeekFrom::Start(segment.at))?;
        self.file.read_exact(&mut bytes)?;
        let long = |b: &[u8]| b.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        Ok(bytes
            .chunks_exact(ENTRY)
            .map(|b| Entry {
                seq: long(&b[..8]),
                digest: long(&b[8..16]),
                offset: long(&b[16..24]),
                source: long(&b[24..]) as u32,
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
        #[test]
        fn finds_what_was_added_in_any_order(
            mut keys in proptest::collection::btree_set((0u32..3, 1u64..4000), 0..3000)
                .prop_map(|s| s.into_iter().collect::<Vec<_>>()),
            shuffle in any::<bool>(), most_open in 1usize..700, seed in any::<u64>(),
        ) {
            if shuffle {
                keys.sort_by_key(|k| xxhash_rust::xxh3::xxh3_64_with_seed(&k.1.to_le_bytes(), seed));
            }
            let mut index = Locations::new(tempfile::tempfile().unwrap());
            index.most_open = most_open;
            let mut plain = BTreeMap::new();
            for (n, (slot, seq)) in keys.into_iter().enumerate() {
                let entry = Entry { seq, digest: !(n as u64), offset: n as u64 * 7, source: n as u32 };
                index.add(slot, entry).unwrap();
                plain.insert((slot, seq), entry);
            }
            for slot in 0..4 {
                for seq in (0..4001).step_by(3) {
                    prop_assert_eq!(index.find(slot, seq).unwrap(), plain.get(&(slot, seq)).copied());
                }
            }
        }
    }
}
