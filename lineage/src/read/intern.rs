//! Strings to small numbers.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// No string, no event, no unit: the number that is never given out.
pub(crate) const NONE: u32 = u32::MAX;

/// A set of strings, each known by the number it was first given.
///
/// Numbers depend on the order of arrival: they serve to compare, never to sort.
#[derive(Default)]
pub(crate) struct Interner {
    texts: Vec<Box<str>>,
    table: HashTable<u32>,
}

impl Interner {
    /// The number of `text`, a new one if it has none.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        let hash = FxBuildHasher.hash_one(text);
        let texts = &self.texts;
        if let Some(&id) = self.table.find(hash, |&id| &*texts[id as usize] == text) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.into());
        let texts = &self.texts;
        self.table.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(&*texts[id as usize]));
        id
    }

    /// The number of `text`, if it has one.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let hash = FxBuildHasher.hash_one(text);
        self.table.find(hash, |&id| &*self.texts[id as usize] == text).copied()
    }

    /// The string of that number; empty for [`NONE`].
    pub(crate) fn text(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", |t| t)
    }

    /// How many strings there are.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_number() {
        let mut names = Interner::default();
        let ids: Vec<u32> = (0..1000).map(|i| names.intern(&format!("n{}", i % 300))).collect();
        assert_eq!(names.len(), 300);
        assert_eq!(ids[7], ids[307]);
        assert_eq!(names.text(ids[299]), "n299");
        assert_eq!((names.find("n5"), names.find("x"), names.text(NONE)), (Some(ids[5]), None, ""));
    }
}
