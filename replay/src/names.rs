//! Interned names of actors and texts, so that the simulator compares numbers.

use std::cell::RefCell;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};

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
    /// The id of `text`, if it is in the table.
    fn known(&self, text: &str) -> Option<TextId> {
        let hash = self.hasher.hash_one(text);
        self.index.find(hash, |&id| &*self.texts[id as usize] == text).map(|&id| TextId(id))
    }

    /// The id of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> TextId {
        if let Some(id) = self.known(text) {
            return id;
        }
        let hash = self.hasher.hash_one(text);
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

/// The names of the actors of one simulator. Copies share one table until one of them learns a new name.
#[derive(Clone)]
pub struct Names {
    texts: Arc<Texts>,
}

impl Default for Names {
    fn default() -> Self {
        let mut texts = Texts::default();
        texts.intern(demi_schemas::event::DEAD_LETTERS);
        Names { texts: Arc::new(texts) }
    }
}

impl Names {
    /// The actor of that name, which becomes known if it was not.
    ///
    /// There can be 65,535 names; beyond that the last one stands for all others.
    pub fn id(&mut self, name: &str) -> ActorId {
        let known = self.texts.known(name);
        ActorId(
            u16::try_from(known.unwrap_or_else(|| Arc::make_mut(&mut self.texts).intern(name)).0)
                .unwrap_or(u16::MAX),
        )
    }

    /// The actor of that name, if it is known.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ActorId> {
        self.texts.known(name).and_then(|id| u16::try_from(id.0).ok()).map(ActorId)
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

thread_local! {
    /// The names by which this thread writes and reads actors now.
    static CURRENT: RefCell<Option<Names>> = const { RefCell::new(None) };
}

/// Puts back what stood there, also where the work panics.
struct Restore(Option<Names>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs what writes or reads actors with serde: by these names. Names that are read become known.
pub(crate) fn by_name<T>(names: &mut Names, work: impl FnOnce() -> T) -> T {
    let restore = Restore(CURRENT.replace(Some(names.clone())));
    let done = work();
    if let Some(now) = CURRENT.take() {
        *names = now;
    }
    drop(restore);
    done
}

/// An actor is written by its name. Only the simulator knows names, so this works where the simulator asks:
/// [`Serialized`](crate::model::Serialized) does.
impl Serialize for ActorId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        CURRENT.with_borrow(|names| match names {
            Some(names) => serializer.serialize_str(names.get(*self)),
            None => Err(S::Error::custom("actors are written by name in a simulator alone")),
        })
    }
}

impl<'de> Deserialize<'de> for ActorId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = ActorId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an actor")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ActorId, E> {
                let id = CURRENT.with_borrow_mut(|names| names.as_mut().map(|names| names.id(name)));
                id.ok_or_else(|| E::custom("actors are read by name in a simulator alone"))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// Actors of one kind, in order: the servers, the clients.
///
/// A copy shares the list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    role: Arc<str>,
    members: Arc<[ActorId]>,
}

impl Group {
    /// So many actors called `ROLE-1`, `ROLE-2` and so on.
    pub fn numbered(names: &mut Names, role: &str, count: usize) -> Self {
        let members = (1..=count).map(|n| names.id(&format!("{role}-{n}"))).collect();
        Group { role: role.into(), members }
    }

    /// One actor, called as its role.
    pub fn single(names: &mut Names, role: &str) -> Self {
        Group { role: role.into(), members: Arc::new([names.id(role)]) }
    }

    /// What the actors are: `server`, `client`.
    #[must_use]
    pub fn role(&self) -> &str {
        &self.role
    }

    /// The actors, in order.
    #[must_use]
    pub fn members(&self) -> &[ActorId] {
        &self.members
    }

    /// The place of an actor, from 0; nothing for one that is not of this group.
    #[must_use]
    pub fn index(&self, actor: ActorId) -> Option<usize> {
        self.members.iter().position(|&member| member == actor)
    }

    /// The member after an actor, the first after the last; nothing for one that is not of this group.
    #[must_use]
    pub fn after(&self, actor: ActorId) -> Option<ActorId> {
        self.index(actor).map(|at| self.members[(at + 1) % self.members.len()])
    }

    /// All members but one.
    pub fn others(&self, actor: ActorId) -> impl Iterator<Item = ActorId> + '_ {
        self.members.iter().copied().filter(move |&member| member != actor)
    }

    /// How many members are more than half of them.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }
}
