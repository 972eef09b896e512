//! Interned names of actors and texts, so that the simulator compares numbers.

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// An actor's place in [`Names`]. Stable within one simulator only; never written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(pub u16);

/// The sender of everything that no actor sent: clients, timers, outside threads.
pub const OUTSIDE: ActorId = ActorId(0);

impl ActorId {
    /// As an index into per-actor tables.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// An interned text: equal ids mean equal texts within one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// A table of texts, each held once.
#[derive(Clone, Default)]
pub struct Texts {
    texts: Vec<Box<str>>,
    index: HashTable<u32>,
    hasher: FxBuildHasher,
}

impl Texts {
    /// The id of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> TextId {
        let hash = self.hasher.hash_one(text);
        let texts = &self.texts;
        if let Some(&id) = self.index.find(hash, |&id| &*texts[id as usize] == text) {
            return TextId(id);
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.into());
        let (texts, hasher) = (&self.texts, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(&*texts[id as usize]));
        TextId(id)
    }

    /// The text behind an id of this table.
    #[must_use]
    pub fn get(&self, id: TextId) -> &str {
        &self.texts[id.0 as usize]
    }
}

/// The names of the actors of one simulator.
#[derive(Clone)]
pub struct Names {
    texts: Texts,
}

impl Default for Names {
    fn default() -> Self {
        let mut texts = Texts::default();
        texts.intern(demi_schemas::event::DEAD_LETTERS);
        Names { texts }
    }
}

impl Names {
    /// The actor of that name, which becomes known if it was not.
    ///
    /// There can be 65,535 names; beyond that the last one stands for all others.
    pub fn id(&mut self, name: &str) -> ActorId {
        ActorId(u16::try_from(self.texts.intern(name).0).unwrap_or(u16::MAX))
    }

    /// The actor of that name, if it is known.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ActorId> {
        (0..self.len()).filter_map(|i| u16::try_from(i).ok()).map(ActorId).find(|&id| self.get(id) == name)
    }

    /// The name of an actor.
    #[must_use]
    pub fn get(&self, id: ActorId) -> &str {
        self.texts.get(TextId(u32::from(id.0)))
    }

    /// How many names there are, [`OUTSIDE`] included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.texts.len()
    }

    /// Never: [`OUTSIDE`] is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }
}
