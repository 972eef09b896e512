//! Names, each once, by number: packed, so that millions of them fit into memory.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Members of a piece of a list.
const PIECE: usize = 1 << 14;
/// Bytes of a piece of text.
const TEXT: usize = 1 << 20;
/// Parts of a table: only one at a time grows.
const PARTS: usize = 64;

/// A list that is not moved as it grows: room for it is taken piece by piece.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    pieces: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces { pieces: Vec::new(), len: 0 }
    }
}

impl<T> Pieces<T> {
    pub(super) fn push(&mut self, member: T) {
        match self.pieces.last_mut() {
            Some(piece) if piece.len() < PIECE => piece.push(member),
            Some(_) => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(member);
                self.pieces.push(piece);
            }
            None => self.pieces.push(vec![member]),
        }
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that it takes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.capacity() * size_of::<T>()).sum()
    }
}

impl<T> std::ops::Index<usize> for Pieces<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.pieces[at / PIECE][at % PIECE]
    }
}

impl<T> std::ops::IndexMut<usize> for Pieces<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at / PIECE][at % PIECE]
    }
}

/// Numbers by hash. Who has a number knows its hash and what it is of.
#[derive(Debug)]
pub(super) struct Numbers(Vec<HashTable<u32>>);

impl Default for Numbers {
    fn default() -> Self {
        Numbers((0..PARTS).map(|_| HashTable::new()).collect())
    }
}

impl Numbers {
    pub(super) fn find(&self, hash: u64, is: impl FnMut(&u32) -> bool) -> Option<u32> {
        self.0[part(hash)].find(hash, is).copied()
    }

    /// Adds a number that is not there.
    pub(super) fn add(&mut self, hash: u64, number: u32, hash_of: impl Fn(&u32) -> u64) {
        self.0[part(hash)].insert_unique(hash, number, hash_of);
    }

    /// Bytes that it takes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(HashTable::allocation_size).sum()
    }
}

/// The tables use the first and the last bits of a hash.
fn part(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

/// Names, each once, by number.
#[derive(Debug)]
pub(super) struct Names {
    /// Nobody can choose names of one hash.
    seed: u64,
    /// Each name behind its length.
    text: Vec<Vec<u8>>,
    /// By number: the piece of text, and where in it.
    places: Pieces<(u32, u32)>,
    numbers: Numbers,
    /// For how many names more the long ones count: one for each 64 bytes.
    more: usize,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            seed: RandomState::new().hash_one(0_u8),
            text: Vec::new(),
            places: Pieces::default(),
            numbers: Numbers::default(),
            more: 0,
        }
    }
}

impl Names {
    /// For how many names more the long ones count: one for each 64 bytes.
    pub(super) fn more(&self) -> usize {
        self.more
    }

    /// The number of a name, if it is there.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.find(self.hash(name.as_bytes()), |number| self.bytes_of(*number) == name.as_bytes())
    }

    /// The number of a name, which is added where it is new.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.find(name) {
            return number;
        }
        let number = self.places.len() as u32;
        let needs = name.len() + 4;
        if self.text.last().is_none_or(|piece| piece.len() + needs > TEXT) {
            // The first one grows to its size.
            self.text.push(Vec::with_capacity(if self.text.is_empty() { needs } else { needs.max(TEXT) }));
        }
        let piece = self.text.len() - 1;
        let text = &mut self.text[piece];
        self.places.push((piece as u32, text.len() as u32));
        text.extend_from_slice(&(name.len() as u32).to_le_bytes());
        text.extend_from_slice(name.as_bytes());
        let hash = self.hash(name.as_bytes());
        self.more += name.len() / 64;
        let Names { seed, text, places, numbers, .. } = self;
        numbers.add(hash, number, |other| xxh3_64_with_seed(at(text, places[*other as usize]), *seed));
        number
    }

    /// The name with a number.
    pub(super) fn get(&self, number: u32) -> &str {
        // They were text when they came.
        std::str::from_utf8(self.bytes_of(number)).unwrap_or_default()
    }

    /// A hash of something else that nobody can choose.
    pub(super) fn hash(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed)
    }

    fn bytes_of(&self, number: u32) -> &[u8] {
        at(&self.text, self.places[number as usize])
    }

    /// Bytes that they take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.text.iter().map(Vec::capacity).sum::<usize>() + self.places.bytes() + self.numbers.bytes()
    }
}

fn at(text: &[Vec<u8>], (piece, from): (u32, u32)) -> &[u8] {
    let text = &text[piece as usize][from as usize..];
    let length = text.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    &text[4..][..length as usize]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_name_has_one_number(names in prop::collection::vec(".{0,12}|[ab]{1,2}|x{0,3000}", 0..400)) {
            let (mut packed, mut plain) = (Names::default(), BTreeMap::new());
            for name in &names {
                let next = plain.len() as u32;
                prop_assert_eq!(packed.find(name), plain.get(name).copied());
                prop_assert_eq!(packed.number(name), *plain.entry(name.clone()).or_insert(next));
            }
            prop_assert_eq!(packed.more(), plain.keys().map(|name| name.len() / 64).sum::<usize>());
            for (name, number) in plain {
                prop_assert_eq!(packed.get(number), name);
            }
        }
    }

    #[test]
    fn long_names_and_many_names_are_found() {
        let mut names = Names::default();
        let long = |n: usize| format!("{n}{}", "y".repeat(n * TEXT / 3));
        let short = |n: usize| format!("actor-{n}");
        let all: Vec<String> = (0..5).map(long).chain((0..3 * PIECE).map(short)).collect();
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.number(name), number as u32);
        }
        assert!(all.iter().enumerate().all(|(number, name)| names.find(name) == Some(number as u32)));
        assert_eq!(names.find("actor-"), None);
    }
}
