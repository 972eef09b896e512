//! Where each event is and what it says, for events that may come again: an index in unnamed temporary files, of which memory
//! holds a bounded part.
//!
//! Until the first one is looked for, entries are only written down as they come: most logs have every event once, and nothing is ever looked for.
//! From then on new entries are held in memory. Many of them are sorted and written together as a *stretch*; several stretches of about one size are
//! merged into one (P. O'Neil and others, "The log-structured merge-tree", Acta Informatica 33, 1996, section 2). Of a stretch memory holds
//! the first key of each block. So what is held does not grow with the incarnations, and with events by a few bytes in a hundred.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Entries that are read together.
const BLOCK: usize = 512;
/// Entries held in memory before they are written: at 40 bytes each, 10 MiB.
const MOST_OPEN: usize = 1 << 18;
/// Blocks read back that are held: at most 32 MiB.
const MOST_CACHED: usize = 2048;
/// Stretches of about one size that are merged.
const MERGED: usize = 8;
/// Entries of an incarnation in a stretch from which on its ends are held.
const MANY: usize = 64;
const ENTRY: usize = 32;

/// What is known of one stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its sequence number.
    pub seq: u64,
    /// The digest of its content.
    pub digest: u64,
    /// Where in its source it stands.
    pub offset: u64,
    /// Number of the source, given out by whoever owns the index.
    pub source: u32,
}

/// Incarnation and sequence number.
type Key = (u32, u64);

/// An entry with the incarnation that it is of.
#[derive(Clone, Copy)]
struct Located {
    slot: u32,
    entry: Entry,
}

impl Located {
    fn key(&self) -> Key {
        (self.slot, self.entry.seq)
    }
}

/// Entries in a file, sorted by key.
struct Stretch {
    file: File,
    /// Its number, by which blocks of it are known in memory.
    number: u64,
    entries: usize,
    /// The first key of each block.
    firsts: Vec<Key>,
    /// Of incarnations that have many entries: the first and the last sequence number.
    ends: Vec<(u32, u64, u64)>,
}

/// An index from (incarnation, sequence number) to [`Entry`].
pub struct Locations {
    /// Where the files are made.
    folder: PathBuf,
    /// The newest ones.
    open: Vec<Located>,
    /// The others, as they came, until the first one is looked for.
    unsorted: Option<BufWriter<File>>,
    /// Whether one was looked for.
    asked: bool,
    /// Places in what is open, by key.
    places: HashTable<u32>,
    most_open: usize,
    /// The larger ones first.
    stretches: Vec<Stretch>,
    /// How many stretches were made.
    made: u64,
    /// The stretch in which an event was found last; the next one is mostly beside it.
    hint: usize,
    /// By stretch and number: blocks.
    cache: FxHashMap<(u64, usize), Vec<Located>>,
}

impl Locations {
    /// An empty index, which makes its files in a folder.
    pub fn new(folder: &Path) -> Self {
        Locations {
            folder: folder.to_owned(),
            open: Vec::new(),
            unsorted: None,
            asked: false,
            places: HashTable::new(),
            most_open: MOST_OPEN,
            stretches: Vec::new(),
            made: 0,
            hint: 0,
            cache: FxHashMap::default(),
        }
    }

    /// Adds an event of an incarnation. The same sequence number is never added twice.
    pub fn add(&mut self, slot: u32, entry: Entry) -> io::Result<()> {
        self.open.push(Located { slot, entry });
        if self.asked {
            self.note_place(self.open.len() - 1);
        }
        match self.open.len() >= self.most_open {
            true if self.asked => self.write(),
            true => self.put_down(),
            false => Ok(()),
        }
    }

    fn note_place(&mut self, place: usize) {
        let open = &self.open;
        let key = open[place].key();
        self.places.insert_unique(hash(key), place as u32, |other| hash(open[*other as usize].key()));
    }

    /// Writes down what is open as it came.
    fn put_down(&mut self) -> io::Result<()> {
        let file = match &mut self.unsorted {
            Some(file) => file,
            None => {
                let file = BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(&self.folder)?);
                self.unsorted.insert(file)
            }
        };
        self.open.iter().try_for_each(|located| file.write_all(&bytes(located)))?;
        self.open.clear();
        Ok(())
    }

    /// Makes all that can be looked for of what was written down.
    fn prepare(&mut self) -> io::Result<()> {
        if self.asked {
            return Ok(());
        }
        if let Some(unsorted) = self.unsorted.take() {
            let newest = std::mem::take(&mut self.open);
            let sorted = self.sort(unsorted);
            self.open = newest;
            sorted?;
        }
        self.asked = true;
        (0..self.open.len()).for_each(|place| self.note_place(place));
        Ok(())
    }

    fn sort(&mut self, unsorted: BufWriter<File>) -> io::Result<()> {
        let mut file = unsorted.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        while let Some(located) = next(&mut reader)? {
            self.open.push(located);
            if self.open.len() >= self.most_open {
                self.write()?;
            }
        }
        if self.open.is_empty() { Ok(()) } else { self.write() }
    }

    /// Writes what is open, and merges what has become too many stretches.
    fn write(&mut self) -> io::Result<()> {
        self.open.sort_unstable_by_key(Located::key);
        let mut writer = Writer::new(&self.folder)?;
        for located in &self.open {
            writer.push(*located)?;
        }
        self.close(writer)?;
        // Only what is written is let go.
        self.open.clear();
        self.places.clear();
        while let Some(first) = self.stretches.len().checked_sub(MERGED) {
            // The oldest of them is the largest: it is of the size of the others together at most.
            let last: usize = self.stretches[first + 1..].iter().map(|stretch| stretch.entries).sum();
            if self.stretches[first].entries > last {
                break;
            }
            self.merge(first)?;
        }
        Ok(())
    }

    fn close(&mut self, writer: Writer) -> io::Result<()> {
        let stretch = writer.finish(self.made)?;
        self.made += 1;
        self.stretches.push(stretch);
        Ok(())
    }

    /// Makes one stretch of those from `first` on.
    fn merge(&mut self, first: usize) -> io::Result<()> {
        let mut writer = Writer::new(&self.folder)?;
        let mut readers = Vec::new();
        for stretch in &mut self.stretches[first..] {
            stretch.file.seek(SeekFrom::Start(0))?;
            let mut reader =
                BufReader::with_capacity(1 << 16, &stretch.file).take((stretch.entries * ENTRY) as u64);
            if let Some(located) = next(&mut reader)? {
                readers.push((located, reader));
            }
        }
        while let Some(least) = (0..readers.len()).min_by_key(|i| readers[*i].0.key()) {
            let (located, reader) = &mut readers[least];
            writer.push(*located)?;
            match next(reader)? {
                Some(following) => *located = following,
                None => drop(readers.swap_remove(least)),
            }
        }
        drop(readers);
        let merged: Vec<u64> = self.stretches[first..].iter().map(|stretch| stretch.number).collect();
        let before: Vec<Stretch> = self.stretches.drain(first..).collect();
        if let Err(error) = self.close(writer) {
            self.stretches.extend(before);
            return Err(error);
        }
        self.cache.retain(|(number, _), _| !merged.contains(number));
        Ok(())
    }

    /// The entry of an event, if it was added.
    pub fn find(&mut self, slot: u32, seq: u64) -> io::Result<Option<Entry>> {
        self.prepare()?;
        let key = (slot, seq);
        let open = &self.open;
        if let Some(place) = self.places.find(hash(key), |place| open[*place as usize].key() == key) {
            return Ok(Some(open[*place as usize].entry));
        }
        let hint = self.hint.min(self.stretches.len().saturating_sub(1));
        for stretch in (hint..self.stretches.len()).chain(0..hint) {
            if let Some(entry) = self.find_in(stretch, key)? {
                self.hint = stretch;
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Entries in memory and keys of blocks, those read back left out.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.open.len() + self.stretches.iter().map(|stretch| stretch.firsts.len()).sum::<usize>()
    }

    /// Bytes that it takes at most.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let stretches =
            self.stretches.iter().map(|s| s.firsts.capacity() * size_of::<Key>() + s.ends.capacity() * 24);
        self.open.capacity() * size_of::<Located>()
            + self.places.allocation_size()
            + stretches.sum::<usize>()
            + self.cache.len() * BLOCK * size_of::<Located>()
    }

    fn find_in(&mut self, at: usize, key: Key) -> io::Result<Option<Entry>> {
        let stretch = &mut self.stretches[at];
        if let Ok(found) = stretch.ends.binary_search_by_key(&key.0, |(slot, _, _)| *slot) {
            let (_, first, last) = stretch.ends[found];
            if !(first..=last).contains(&key.1) {
                return Ok(None);
            }
        }
        let Some(block) = stretch.firsts.partition_point(|first| *first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let place = (stretch.number, block);
        if !self.cache.contains_key(&place) {
            let entries = stretch.read(block)?;
            if self.cache.len() >= MOST_CACHED {
                self.cache.clear();
            }
            self.cache.insert(place, entries);
        }
        let entries = self.cache.get(&place).map_or(&[][..], Vec::as_slice);
        Ok(entries.binary_search_by_key(&key, Located::key).ok().map(|i| entries[i].entry))
    }
}

fn hash((slot, seq): Key) -> u64 {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&seq.to_le_bytes());
    bytes[8..].copy_from_slice(&slot.to_le_bytes());
    xxh3_64(&bytes)
}

impl Stretch {
    fn read(&mut self, block: usize) -> io::Result<Vec<Located>> {
        let count = BLOCK.min(self.entries - block * BLOCK);
        let mut bytes = vec![0; count * ENTRY];
        self.file.seek(SeekFrom::Start((block * BLOCK * ENTRY) as u64))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes.chunks_exact(ENTRY).map(located).collect())
    }
}

/// Writes a stretch, entry by entry in the order of their keys.
struct Writer {
    file: BufWriter<File>,
    entries: usize,
    firsts: Vec<Key>,
    ends: Vec<(u32, u64, u64)>,
    /// The incarnation at hand: its first sequence number and its last, and how many entries it has.
    at: Option<(u32, u64, u64, usize)>,
}

impl Writer {
    fn new(folder: &Path) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(folder)?);
        Ok(Writer { file, entries: 0, firsts: Vec::new(), ends: Vec::new(), at: None })
    }

    fn push(&mut self, Located { slot, entry }: Located) -> io::Result<()> {
        if self.entries.is_multiple_of(BLOCK) {
            self.firsts.push((slot, entry.seq));
        }
        self.entries += 1;
        match &mut self.at {
            Some((at, _, last, entries)) if *at == slot => (*last, *entries) = (entry.seq, *entries + 1),
            _ => {
                self.end();
                self.at = Some((slot, entry.seq, entry.seq, 1));
            }
        }
        self.file.write_all(&bytes(&Located { slot, entry }))
    }

    fn end(&mut self) {
        if let Some((slot, first, last, entries)) = self.at.take()
            && entries >= MANY
        {
            self.ends.push((slot, first, last));
        }
    }

    fn finish(mut self, number: u64) -> io::Result<Stretch> {
        self.end();
        self.firsts.shrink_to_fit();
        self.ends.shrink_to_fit();
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Stretch { file, number, entries: self.entries, firsts: self.firsts, ends: self.ends })
    }
}

/// The next entry of a stretch, if there is one.
fn next(reader: &mut impl Read) -> io::Result<Option<Located>> {
    let mut bytes = [0; ENTRY];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(located(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// An entry as it stands in a file.
fn bytes(Located { slot, entry }: &Located) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes[..4].copy_from_slice(&slot.to_le_bytes());
    bytes[4..8].copy_from_slice(&entry.source.to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.seq.to_le_bytes());
    bytes[16..24].copy_from_slice(&entry.digest.to_le_bytes());
    bytes[24..].copy_from_slice(&entry.offset.to_le_bytes());
    bytes
}

/// The entry of such bytes.
fn located(bytes: &[u8]) -> Located {
    let long = |b: &[u8]| b.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let entry = Entry {
        seq: long(&bytes[8..16]),
        digest: long(&bytes[16..24]),
        offset: long(&bytes[24..]),
        source: long(&bytes[4..8]) as u32,
    };
    Located { slot: long(&bytes[..4]) as u32, entry }
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
            let folder = tempfile::tempdir().unwrap();
            let mut index = Locations::new(folder.path());
            // Each stretch is a file.
            index.most_open = most_open.max(keys.len() / 500);
            let mut plain = BTreeMap::new();
            for (n, (slot, seq)) in keys.into_iter().enumerate() {
                let entry = Entry { seq, digest: !(n as u64), offset: n as u64 * 7, source: n as u32 };
                index.add(slot, entry).unwrap();
                plain.insert((slot, seq), entry);
                if n % 97 == 0 {
                    prop_assert_eq!(index.find(slot, seq).unwrap(), Some(entry));
                }
            }
            for slot in 0..4 {
                for seq in (0..4001).step_by(3) {
                    prop_assert_eq!(index.find(slot, seq).unwrap(), plain.get(&(slot, seq)).copied());
                }
            }
        }
    }

    /// Stretches do not become many, and what is held of them is little, also where each event is of another incarnation.
    #[test]
    fn what_is_held_does_not_grow_with_incarnations() {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Locations::new(folder.path());
        index.most_open = 1000;
        for n in 0..400_000 {
            if n == 150_000 {
                assert_eq!((index.stretches.len(), index.held()), (0, 0));
                assert!(index.find(n, 1).unwrap().is_none());
            }
            index.add(n, Entry { seq: 1, digest: u64::from(n), offset: 0, source: 0 }).unwrap();
        }
        assert!(index.stretches.len() < 4 * MERGED, "{} stretches", index.stretches.len());
        assert!(index.held() < 1000 + 400_000 / BLOCK + 4 * MERGED, "{}", index.held());
        for n in (0..400_000).step_by(9973) {
            assert_eq!(index.find(n, 1).unwrap().unwrap().digest, u64::from(n));
            assert_eq!(index.find(n, 2).unwrap(), None);
        }
    }
}
