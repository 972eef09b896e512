//! Where each actor is in its log.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHasher};

/// Maps, so that threads seldom wait for each other.
const SHARDS: usize = 64;

/// An actor's place in its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Actor {
    pub(crate) incarnation: u32,
    /// Sequence number of its last event in this incarnation.
    pub(crate) seq: u64,
    /// Events lost since the last record that was kept, one entry for each incarnation.
    pub(crate) lost: Vec<Lost>,
}

/// Events of one incarnation that were dropped and not told of yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) count: u64,
    pub(crate) incarnation: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

type Shard = FxHashMap<Box<str>, Actor>;

/// All actors that ever logged.
pub(crate) struct Actors {
    shards: Vec<Mutex<Shard>>,
    base: u32,
}

impl Actors {
    /// No actors yet; first incarnations have the number `base`.
    pub(crate) fn new(base: u32) -> Self {
        Actors { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), base }
    }

    fn shard(&self, name: &str) -> MutexGuard<'_, Shard> {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(name);
        let shard = &self.shards[(hash >> 40) as usize % SHARDS];
        // What a panicking thread left is whole: counters are changed one by one.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with the actor; nobody else sees it meanwhile.
    pub(crate) fn with<T>(&self, name: &str, f: impl FnOnce(&mut Actor) -> T) -> T {
        let mut shard = self.shard(name);
        if let Some(actor) = shard.get_mut(name) {
            return f(actor);
        }
        let new = Actor { incarnation: self.base, ..Actor::default() };
        f(shard.entry(name.into()).or_insert(new))
    }

    /// Calls `f` with each actor that lost something, by name.
    pub(crate) fn each_lost(&self, mut f: impl FnMut(&str, &mut Actor)) {
        let mut names: Vec<Box<str>> = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            names.extend(shard.iter().filter(|(_, a)| !a.lost.is_empty()).map(|(name, _)| name.clone()));
        }
        names.sort_unstable();
        names.iter().for_each(|name| self.with(name, |actor| f(name, actor)));
    }
}

impl Actor {
    /// Notes that the event at the present sequence number was dropped.
    pub(crate) fn lose(&mut self) {
        match self.lost.last_mut().filter(|lost| lost.incarnation == self.incarnation) {
            Some(lost) => {
                lost.count += 1;
                lost.last = self.seq;
            }
            None => self.lost.push(Lost {
                count: 1,
                incarnation: self.incarnation,
                first: self.seq,
                last: self.seq,
            }),
        }
    }
}
