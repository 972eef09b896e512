//! One thread's share of a search: it takes configurations and gives what follows from them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use demi_replay::guard;
use demi_replay::model::{DistanceOf, Waiting};
use demi_replay::sim::Asserted;
use demi_replay::{Model, Names, Status, View};
use demi_schemas::NetworkRule;
use rustc_hash::FxHashMap;

use crate::canonical::Canonical;
use crate::faults::Faults;
use crate::kinds::Kinds;
use crate::layers::Allowance;
use crate::packed::{self, Glance, Hot};
use crate::symmetry::Renaming;
use crate::tables::{Entry, FREE, Local, Reaction, Tables};

/// Parts by hash into which configurations are sorted; their number decides the order of a layer.
pub const SHARDS: usize = 16;

/// Answers of the bound that a worker remembers at most.
const MAX_BOUNDS: usize = 4_000_000;

/// The part of a hash.
#[inline]
pub fn shard(hash: u128) -> usize {
    (hash >> 124) as usize
}

/// Takes a hash as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64 ^ (hash >> 64) as u64;
    }
}

/// Hashes of the configurations entered, one part of them.
pub type Seen = std::collections::HashSet<u128, BuildHasherDefault<AsItIs>>;

/// A configuration that may be new.
pub struct Child {
    /// Its hash.
    pub hash: u128,
    /// The hash by which it is known: the same for all that differ in names only.
    pub key: u128,
    /// Where its numbers begin among those of the chunk.
    pub start: usize,
    /// How many they are.
    pub len: u32,
    /// The number of the step that leads to its parent.
    pub parent: u32,
    /// Which of the parent's pending entries was delivered.
    pub index: u32,
    /// The heuristic: how many deliveries seem to be missing; 1 where nobody knows.
    pub heuristic: u16,
    /// Where its counts begin among those of the chunk.
    pub counted: usize,
}

/// What follows from a chunk of configurations.
pub struct Chunk {
    /// Numbers of all children.
    pub words: Vec<u32>,
    /// Deliveries of each kind behind the children, where they are counted.
    pub counts: Vec<u8>,
    /// The children, by shard.
    pub children: [Vec<Child>; SHARDS],
    /// The first delivery that leads to the violation: the parent's step and the index.
    pub violation: Option<(u32, u32)>,
    /// Deliveries made.
    pub states: u64,
}

impl Default for Chunk {
    fn default() -> Self {
        let children = std::array::from_fn(|_| Vec::new());
        Chunk { words: Vec::new(), counts: Vec::new(), children, violation: None, states: 0 }
    }
}

/// What all workers have in common.
pub struct Common<M: Model> {
    /// What is known of states and entries.
    pub tables: Mutex<Tables<M>>,
    /// The rule.
    pub rule: NetworkRule,
    /// The violation.
    pub target: Vec<String>,
    /// A lower bound on the deliveries that are missing.
    pub bound: Option<Arc<DistanceOf<M>>>,
    /// Renamings of actors that change nothing.
    pub renamings: Vec<Renaming>,
    /// Faults that may happen on the way.
    pub faults: Faults,
    /// Messages from outside that are there in the beginning.
    pub outside: usize,
    /// Most of them that may be taken ([`Limits::outside`](super::layers::Limits)).
    pub most_outside: Option<usize>,
    /// How often each kind of delivery may happen, where that is limited.
    pub kinds: Kinds,
    /// Bytes that the local states may take.
    pub room: usize,
    /// Whether they took more.
    pub full: AtomicBool,
}

/// A worker, with its own copy of what it needs of the tables.
pub struct Worker<M: Model> {
    model: M,
    asserted: Asserted<M>,
    names: Names,
    locals: Vec<Local<M>>,
    entries: Vec<Entry<M>>,
    hot: Vec<Hot>,
    reactions: Vec<Arc<Reaction>>,
    reaction_numbers: FxHashMap<(u32, u32), u32>,
    /// Per channel, the last configuration in which its head was met.
    heads: Vec<u64>,
    at: u64,
    after: Vec<u32>,
    canonical: Canonical,
    /// What the bound said, by what it looks at.
    bounds: HashMap<u128, (u16, u16), BuildHasherDefault<AsItIs>>,
}

impl<M: Model> Worker<M> {
    /// A worker that knows nothing yet.
    pub fn new(common: &Common<M>) -> Self {
        let tables = common.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = Worker {
            model: tables.sim.model().clone(),
            asserted: tables.sim.asserted().clone(),
            names: tables.names().clone(),
            locals: Vec::new(),
            entries: Vec::new(),
            hot: Vec::new(),
            reactions: Vec::new(),
            reaction_numbers: FxHashMap::default(),
            heads: Vec::new(),
            at: 0,
            after: Vec::new(),
            canonical: Canonical::new(common.renamings.clone(), tables.names().len()),
            bounds: HashMap::default(),
        };
        worker.learn(&tables, common.rule);
        worker
    }

    /// Copies what others have entered into the tables.
    pub fn catch_up(&mut self, common: &Common<M>) {
        let tables = common.tables.lock().unwrap_or_else(PoisonError::into_inner);
        self.learn(&tables, common.rule);
    }

    /// Copies what is new in the tables.
    fn learn(&mut self, tables: &Tables<M>, rule: NetworkRule) {
        if tables.locals.len() == self.locals.len() && tables.entries.len() == self.entries.len() {
            return;
        }
        tables.locals[self.locals.len()..].iter().for_each(|l| self.canonical.add_local(&l.renamed));
        tables.entries[self.entries.len()..].iter().for_each(|e| self.canonical.add_entry(&e.renamed));
        self.locals.extend_from_slice(&tables.locals[self.locals.len()..]);
        self.entries.extend_from_slice(&tables.entries[self.entries.len()..]);
        self.hot.extend(self.entries[self.hot.len()..].iter().map(|e| Hot::of(e, rule)));
        let channels = self.hot.iter().map(|h| h.channel as usize + 1).max().unwrap_or(0);
        self.heads.resize(channels.max(self.heads.len()), 0);
        if tables.names().len() != self.names.len() {
            self.names = tables.names().clone();
        }
    }

    /// The hash of a configuration.
    pub fn hash(&self, words: &[u32]) -> u128 {
        packed::hash(words, &self.locals, &self.hot)
    }

    /// The lower bound and the heuristic of a configuration: the deliveries that are missing at least, as long as no more faults
    /// happen, and those that seem to be.
    pub fn estimate(&mut self, words: &[u32], bound: Option<&DistanceOf<M>>) -> (usize, u16) {
        let Some(bound) = bound else { return (1, 1) };
        let looked_at = packed::looked_at(words, &self.locals, &self.hot);
        if let Some((lower_bound, heuristic)) = self.bounds.get(&looked_at) {
            return (usize::from(*lower_bound), *heuristic);
        }
        // Less is always right.
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let glance = Glance { words, locals: &self.locals };
        let pending = words[packed::first_pending(words)..].iter().map(|e| *e as usize);
        let waiting: Vec<Waiting<'_, M::Msg>> = pending
            .filter(|e| self.hot[*e].seen)
            .map(|e| {
                let entry = &self.entries[e];
                Waiting { from: entry.pending.from, to: entry.pending.to, msg: &entry.msg }
            })
            .collect();
        let view = View::new(&glance, &self.model, &self.names);
        let lower_bound = short(guard::or(0, || (bound.lower_bound)(&view, &waiting)).max(1));
        let heuristic = bound
            .heuristic
            .as_ref()
            .map_or(lower_bound, |heuristic| guard::or(lower_bound, || short(heuristic(&view, &waiting))));
        if self.bounds.len() >= MAX_BOUNDS {
            self.bounds.clear();
        }
        self.bounds.insert(looked_at, (lower_bound, heuristic));
        (usize::from(lower_bound), heuristic)
    }

    /// Whether a configuration violates; `None` where an invariant panics.
    pub fn violates(&self, words: &[u32], target: &[String]) -> Option<bool> {
        let glance = Glance { words, locals: &self.locals };
        let mut found = Vec::new();
        let view = View::new(&glance, &self.model, &self.names);
        guard::guarded(|| self.model.check(&view, &mut M::History::default(), &mut found)).ok()?;
        self.asserted.check(&self.model, &view, &mut found).ok()?;
        Some(found.iter().any(|v| target.contains(&v.fingerprint)))
    }

    fn new_reaction(&mut self, common: &Common<M>, local: u32, entry: u32) -> u32 {
        let mut tables = common.tables.lock().unwrap_or_else(PoisonError::into_inner);
        self.reactions.push(tables.reaction(local, entry));
        if tables.bytes > common.room {
            common.full.store(true, Ordering::Relaxed);
        }
        self.learn(&tables, common.rule);
        let number = self.reactions.len() as u32 - 1;
        self.reaction_numbers.insert((local, entry), number);
        number
    }

    /// What a fault makes of a configuration, into `after`, with its hash and the one by which it is known. Nothing where it is not
    /// possible.
    ///
    /// # Errors
    /// Where it makes a handler panic, with the fingerprint of the crash if it is a violation.
    pub fn fail(
        &mut self,
        common: &Common<M>,
        words: &[u32],
        fault: usize,
        after: &mut Vec<u32>,
    ) -> Result<Option<(u128, u128)>, Option<String>> {
        let mut tables = common.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let world = packed::unpack(&tables, words);
        let Some(world) = common.faults.perform(fault, &mut tables.sim, &world, common.rule) else {
            return Ok(None);
        };
        let world = tables.went_on(world)?;
        let left = packed::faults(words) & !(1 << fault);
        packed::pack(&mut tables, (&world, left), Some(words), after);
        self.learn(&tables, common.rule);
        let hash = self.hash(after);
        Ok(Some((hash, self.canonical.of(after, hash, &self.hot))))
    }

    /// Makes every delivery that is possible in a configuration, which `step` led to. What may lead to the violation
    /// within `room` further deliveries, and has not been entered, goes into `chunk`. Ends at the violation, and where the time ends.
    pub fn expand(
        &mut self,
        common: &Common<M>,
        ((words, hash, step), counts): ((&[u32], u128, u32), &[u8]),
        room: usize,
        (seen, meter): (&[Seen], &dyn Allowance),
        chunk: &mut Chunk,
    ) {
        self.at += 1;
        let first = packed::first_pending(words);
        let in_order = common.rule == NetworkRule::Fifo;
        for index in 0..words.len() - first {
            let entry = words[first + index];
            let of = self.hot[entry as usize];
            if of.channel != FREE && in_order {
                let head = &mut self.heads[of.channel as usize];
                if std::mem::replace(head, self.at) == self.at {
                    continue;
                }
            } else if words[first..first + index].contains(&entry) {
                // Of equal entries only the oldest.
                continue;
            }
            // Nothing from outside reaches who is cut off.
            match packed::status(words, of.to) {
                Status::Running => {}
                Status::Isolated if !of.external => {}
                _ => continue,
            }
            let Some(counts_as) = common.kinds.room(counts, of.kind) else { continue };
            let local = packed::local(words, usize::from(of.cell));
            let number = match self.reaction_numbers.get(&(local, entry)) {
                Some(number) => *number,
                // What a handler does may take long.
                None if meter.late() || common.full.load(Ordering::Relaxed) => return,
                None => self.new_reaction(common, local, entry),
            };
            let reaction = &self.reactions[number as usize];
            let mut after = std::mem::take(&mut self.after);
            let (hash, look, idle) = match &**reaction {
                Reaction::Refused => {
                    self.after = after;
                    continue;
                }
                Reaction::Crashes(crash) => {
                    self.after = after;
                    chunk.states += 1;
                    if common.target.contains(crash) {
                        chunk.violation = Some((step, index as u32));
                        return;
                    }
                    continue;
                }
                Reaction::Plain { next, effects, visible } => {
                    let known = (&self.locals[..], &self.hot[..]);
                    let (hash, more) =
                        packed::deliver((words, hash), index, (*next, effects), known, &mut after);
                    // It only used something up. Not to deliver it leaves as much or more to go on with, unless it
                    // stands in the way of what is behind it.
                    let idle = !more && *next == local && !(in_order && of.channel != FREE);
                    (hash, *visible, idle)
                }
                Reaction::Lives if meter.late() => {
                    self.after = after;
                    return;
                }
                Reaction::Lives => {
                    let mut tables = common.tables.lock().unwrap_or_else(PoisonError::into_inner);
                    let world = packed::unpack(&tables, words);
                    let world = match tables.deliver(world, index, common.rule) {
                        Ok(world) => world,
                        Err(crash) => {
                            drop(tables);
                            self.after = after;
                            if crash.is_some_and(|crash| common.target.contains(&crash)) {
                                chunk.violation = Some((step, index as u32));
                                return;
                            }
                            continue;
                        }
                    };
                    packed::pack(&mut tables, (&world, packed::faults(words)), Some(words), &mut after);
                    self.learn(&tables, common.rule);
                    (self.hash(&after), true, false)
                }
            };
            chunk.states += 1;
            // Now and then: to add up the whole costs as much as the delivery.
            debug_assert!(
                !chunk.states.is_multiple_of(8) || hash == self.hash(&after),
                "what changed adds up to the hash of the whole"
            );
            match if look { self.violates(&after, &common.target) } else { Some(false) } {
                Some(false) => {}
                Some(true) => {
                    chunk.violation = Some((step, index as u32));
                    self.after = after;
                    return;
                }
                // A step to where an invariant panics cannot be taken.
                None => {
                    self.after = after;
                    continue;
                }
            }
            if idle {
                self.after = after;
                continue;
            }
            let key = self.canonical.of(&after, hash, &self.hot);
            let shard = shard(key);
            if seen[shard].contains(&key) {
                self.after = after;
                continue;
            }
            let (lower_bound, mut heuristic) = self.estimate(&after, common.bound.as_deref());
            if let Some(most) = common.most_outside {
                let pending = &after[packed::first_pending(&after)..];
                let left = pending.iter().filter(|entry| self.hot[**entry as usize].external).count();
                let taken = common.outside.saturating_sub(left);
                if taken > most {
                    self.after = after;
                    continue;
                }
                // What is needed brings the violation nearer by one; what is not shall not look better than that.
                heuristic = heuristic.saturating_add(taken as u16);
            }
            // The bound knows nothing of faults that are still to come.
            if lower_bound <= room || packed::faults(&after) != 0 {
                let (start, len) = (chunk.words.len(), after.len() as u32);
                chunk.words.extend_from_slice(&after);
                let counted = chunk.counts.len();
                chunk.counts.extend_from_slice(counts);
                if let Some(count) = chunk.counts.get_mut(counted + usize::from(counts_as)) {
                    *count += 1;
                }
                chunk.children[shard].push(Child {
                    hash,
                    key,
                    start,
                    len,
                    parent: step,
                    index: index as u32,
                    heuristic,
                    counted,
                });
            }
            self.after = after;
        }
    }
}
