//! One thread's share of a search: it takes configurations and gives what follows from them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use demi_replay::bill::{self, Item};
use demi_replay::model::{DistanceOf, Waiting};
use demi_replay::{Model, Status, View, guard};
use demi_schemas::NetworkRule;

use crate::allowance::Allowance;
use crate::canonical::Sums;
use crate::entry::FREE;
use crate::faults::Faults;
use crate::kinds::Kinds;
use crate::packed::{self, Glance};
use crate::space::{self, Reaction, Space};

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
    /// The place of its parent in the chunk.
    pub at: u32,
}

/// A configuration of a chunk that waits for what is not known yet.
pub struct Waits {
    /// Its place in the chunk.
    pub at: u32,
    /// What its deliveries make of it that have to happen in a world.
    pub lives: Vec<Lived>,
}

/// What a delivery comes to that has to happen in a world: its index, and the configuration, or the crash that counts.
pub type Lived = (u32, Result<Vec<u32>, Option<String>>);

/// What follows from a chunk of configurations.
pub struct Chunk {
    /// Numbers of all children.
    pub words: Vec<u32>,
    /// Deliveries of each kind behind the children, where they are counted.
    pub counts: Vec<u8>,
    /// The children, by shard.
    pub children: [Vec<Child>; SHARDS],
    /// The first delivery that leads to the violation: the place of the parent in the chunk, its step, and the index.
    pub violation: Option<(u32, u32, u32)>,
    /// Deliveries made at the place that is worked on.
    states: u32,
    /// Deliveries made, by the place of their parent in the chunk.
    pub made: Vec<(u32, u32)>,
    /// Local states and entries of which nobody knows yet what comes of them.
    pub unknown: Vec<(u32, u32)>,
    /// Configurations that wait for them.
    pub waiting: Vec<Waits>,
    /// Steps of processes that it took.
    pub told: Vec<Item>,
}

impl Chunk {
    /// Deliveries made up to a place, that one included.
    pub fn states(&self, last: Option<u32>) -> u64 {
        let counts = self.made.iter().filter(|(at, _)| last.is_none_or(|last| *at <= last));
        counts.map(|(_, states)| u64::from(*states)).sum()
    }
}

impl Default for Chunk {
    fn default() -> Self {
        let children = std::array::from_fn(|_| Vec::new());
        Chunk {
            words: Vec::new(),
            counts: Vec::new(),
            children,
            violation: None,
            states: 0,
            made: Vec::new(),
            unknown: Vec::new(),
            waiting: Vec::new(),
            told: Vec::new(),
        }
    }
}

/// What all workers have in common besides the space.
pub struct Common<M: Model> {
    /// The violation.
    pub target: Vec<String>,
    /// A lower bound on the deliveries that are missing.
    pub bound: Option<Arc<DistanceOf<M>>>,
    /// Faults that may happen on the way.
    pub faults: Faults,
    /// Messages from outside that are there in the beginning.
    pub outside: usize,
    /// Most of them that may be taken ([`Limits::outside`](super::layers::Limits)).
    pub most_outside: Option<usize>,
    /// How often each kind of delivery may happen, where that is limited.
    pub kinds: Kinds,
    /// Whether processes answer, and their steps are paid for.
    pub billed: bool,
}

/// A delivery that is possible in a configuration.
struct Next {
    index: u32,
    /// Under which number it counts.
    counts_as: u16,
    /// Of the reaction.
    number: u32,
}

/// A worker, with room for its work.
pub struct Worker {
    /// Per channel, the last configuration in which its head was met.
    heads: Vec<u64>,
    now: u64,
    menu: Vec<Next>,
    after: Vec<u32>,
    sums: Sums,
    /// What the bound said, by what it looks at.
    bounds: HashMap<u128, (u16, u16), BuildHasherDefault<AsItIs>>,
}

impl Default for Worker {
    fn default() -> Self {
        let (heads, menu, after) = (Vec::new(), Vec::new(), Vec::new());
        Worker { heads, now: 0, menu, after, sums: Sums::default(), bounds: HashMap::default() }
    }
}

/// A configuration: its numbers, its hash, the step that led to it, and what it has behind it of each kind.
pub type Of<'a> = ((&'a [u32], u128, u32), &'a [u8]);

impl Worker {
    /// The lower bound and the heuristic of a configuration: the deliveries that are missing at least, as long as no more faults
    /// happen, and those that seem to be.
    pub fn estimate<M: Model>(
        &mut self,
        space: &Space<M>,
        words: &[u32],
        bound: Option<&DistanceOf<M>>,
    ) -> (usize, u16) {
        let Some(bound) = bound else { return (1, 1) };
        let looked_at = packed::looked_at(words, &space.locals, &space.hot);
        if let Some((lower_bound, heuristic)) = self.bounds.get(&looked_at) {
            return (usize::from(*lower_bound), *heuristic);
        }
        // Less is always right.
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let glance = Glance { words, locals: &space.locals };
        let pending = words[packed::first_pending(words)..].iter().map(|e| *e as usize);
        let waiting: Vec<Waiting<'_, M::Msg>> = pending
            .filter(|e| space.hot[*e].seen)
            .map(|e| {
                let entry = &space.entries[e];
                Waiting { from: entry.pending.from, to: entry.pending.to, msg: &entry.msg }
            })
            .collect();
        let view = View::new(&glance, space.sim.model(), space.sim.names());
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

    /// The hash by which a configuration is known, given its own.
    pub fn key<M: Model>(&mut self, space: &Space<M>, words: &[u32], hash: u128) -> u128 {
        space.canonical.of(&mut self.sums, words, hash, &space.hot)
    }

    /// Looks up what is possible in a configuration. Says whether all of it is known; what is not goes into `chunk`.
    fn look<M: Model>(
        &mut self,
        (common, space): (&Common<M>, &Space<M>),
        words: &[u32],
        counts: &[u8],
        unknown: &mut Vec<(u32, u32)>,
    ) -> bool {
        self.now += 1;
        self.menu.clear();
        self.heads.resize(space.channels().max(self.heads.len()), 0);
        let first = packed::first_pending(words);
        let in_order = space.rule() == NetworkRule::Fifo;
        let mut known = true;
        for index in 0..words.len() - first {
            let entry = words[first + index];
            let of = space.hot[entry as usize];
            if of.channel != FREE && in_order {
                let head = &mut self.heads[of.channel as usize];
                if std::mem::replace(head, self.now) == self.now {
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
            let mut ways = common.kinds.ways(counts, of.kind);
            let Some(first_way) = ways.next() else { continue };
            let local = packed::local(words, usize::from(of.cell));
            match space.number(local, entry) {
                Some(number) => {
                    let next = |counts_as| Next { index: index as u32, counts_as, number };
                    self.menu.push(next(first_way));
                    self.menu.extend(ways.map(next));
                }
                None => {
                    unknown.push((local, entry));
                    known = false;
                }
            }
        }
        known
    }

    /// The deliveries of a configuration that have to happen in a world.
    pub fn lives<M: Model>(
        &mut self,
        (common, space): (&Common<M>, &mut Space<M>),
        ((words, ..), counts): Of<'_>,
        allowance: &dyn Allowance,
    ) -> Vec<Lived> {
        self.look((common, space), words, counts, &mut Vec::new());
        let mut lives = Vec::new();
        for next in &self.menu {
            if !matches!(space.reaction(next.number), Reaction::Lives) || allowance.late() {
                continue;
            }
            let world = space::unpack(space, words);
            let after = match space.deliver(world, next.index as usize) {
                Err(crash) => Err(crash.map(|crash| crash.fingerprint)),
                Ok(world) => {
                    let mut after = Vec::new();
                    space::pack(space, (&world, packed::faults(words)), Some(words), &mut after);
                    Ok(after)
                }
            };
            lives.push((next.index, after));
        }
        lives
    }

    /// As [`Worker::expand_all`]; what is told of steps of processes goes into `chunk`.
    pub fn expand<M: Model>(
        &mut self,
        (common, space): (&Common<M>, &Space<M>),
        one: (u32, Of<'_>, Option<&[Lived]>),
        bounds: (usize, &[Seen]),
        chunk: &mut Chunk,
    ) {
        if !common.billed {
            return self.expand_all((common, space), one, bounds, chunk);
        }
        let ((), told) = bill::during(|| self.expand_all((common, space), one, bounds, chunk));
        chunk.told.extend(told);
    }

    /// Makes every delivery that is possible in a configuration, the one at a place of its chunk. What may lead to the violation
    /// within `room` further deliveries, and has not been entered, goes into `chunk`. Ends at the violation. Where something is not known that it
    /// takes, or a delivery has to happen in a world and not among `lives`, the configuration waits.
    fn expand_all<M: Model>(
        &mut self,
        (common, space): (&Common<M>, &Space<M>),
        (at, of, lives): (u32, Of<'_>, Option<&[Lived]>),
        (room, seen): (usize, &[Seen]),
        chunk: &mut Chunk,
    ) {
        let ((words, hash, step), counts) = of;
        let known = self.look((common, space), words, counts, &mut chunk.unknown);
        let lively = |next: &Next| matches!(space.reaction(next.number), Reaction::Lives);
        if lives.is_none() && (!known || self.menu.iter().any(lively)) {
            chunk.waiting.push(Waits { at, lives: Vec::new() });
            return;
        }
        let menu = std::mem::take(&mut self.menu);
        let mut after = std::mem::take(&mut self.after);
        for next in &menu {
            let lives = || lives.and_then(|all| all.iter().find(|(index, _)| *index == next.index));
            let one = (at, (words, hash, step), counts);
            if !self.one((common, space), one, (next, &lives), (room, seen), &mut after, chunk) {
                break;
            }
        }
        (self.menu, self.after) = (menu, after);
        let states = std::mem::take(&mut chunk.states);
        chunk.made.push((at, states));
    }

    /// Makes one delivery; says whether to go on.
    fn one<'l, M: Model>(
        &mut self,
        (common, space): (&Common<M>, &Space<M>),
        (at, (words, hash, step), counts): (u32, (&[u32], u128, u32), &[u8]),
        (next, lives): (&Next, &dyn Fn() -> Option<&'l Lived>),
        (room, seen): (usize, &[Seen]),
        after: &mut Vec<u32>,
        chunk: &mut Chunk,
    ) -> bool {
        let index = next.index as usize;
        let of = space.hot[words[packed::first_pending(words) + index] as usize];
        let (hash, look, idle) = match space.reaction(next.number) {
            Reaction::Refused => return true,
            Reaction::Panics { crash, .. } => {
                let Some(crash) = crash else { return true };
                chunk.states += 1;
                if common.target.contains(&crash.fingerprint) {
                    chunk.violation = Some((at, step, next.index));
                    return false;
                }
                return true;
            }
            Reaction::Plain { next: state, effects, visible } => {
                let known = (&space.locals[..], &space.hot[..]);
                let (hash, more) =
                    packed::deliver::<M, true>((words, hash), index, (*state, effects), known, after);
                // It only used something up. Not to deliver it leaves as much or more to go on with, unless it
                // stands in the way of what is behind it.
                let same = *state == packed::local(words, usize::from(of.cell));
                let idle = !more && same && !(space.rule() == NetworkRule::Fifo && of.channel != FREE);
                (hash, *visible, idle)
            }
            Reaction::Lives => match lives() {
                None => return true,
                Some((_, Err(crash))) => {
                    if crash.as_ref().is_some_and(|crash| common.target.contains(crash)) {
                        chunk.violation = Some((at, step, next.index));
                        return false;
                    }
                    return true;
                }
                Some((_, Ok(words))) => {
                    after.clone_from(words);
                    (packed::hash(after, &space.locals, &space.hot), true, false)
                }
            },
        };
        chunk.states += 1;
        // Now and then: to add up the whole costs as much as the delivery.
        debug_assert!(
            !chunk.states.is_multiple_of(8) || hash == packed::hash(after, &space.locals, &space.hot),
            "what changed adds up to the hash of the whole"
        );
        if look {
            let mut found = Vec::new();
            // A step to where an invariant panics cannot be taken.
            if space.broken(after, &mut found).is_err() {
                return true;
            }
            if found.iter().any(|v| common.target.contains(&v.fingerprint)) {
                chunk.violation = Some((at, step, next.index));
                return false;
            }
        }
        if idle {
            return true;
        }
        let counted = chunk.counts.len();
        chunk.counts.extend_from_slice(counts);
        common.kinds.count(&mut chunk.counts[counted..], next.counts_as);
        let key = self.key(space, after, hash) ^ common.kinds.apart(&chunk.counts[counted..]);
        let shard = shard(key);
        if seen[shard].contains(&key) {
            chunk.counts.truncate(counted);
            return true;
        }
        let (lower_bound, mut heuristic) = self.estimate(space, after, common.bound.as_deref());
        if let Some(most) = common.most_outside {
            let pending = &after[packed::first_pending(after)..];
            let left = pending.iter().filter(|entry| space.hot[**entry as usize].external).count();
            let taken = common.outside.saturating_sub(left);
            if taken > most {
                chunk.counts.truncate(counted);
                return true;
            }
            // What is needed brings the violation nearer by one; what is not shall not look better than that.
            heuristic = heuristic.saturating_add(taken as u16);
        }
        // The bound knows nothing of faults that are still to come.
        if lower_bound <= room || packed::faults(after) != 0 {
            let (start, len) = (chunk.words.len(), after.len() as u32);
            chunk.words.extend_from_slice(after);
            let (parent, index) = (step, next.index);
            chunk.children[shard].push(Child {
                hash,
                key,
                start,
                len,
                parent,
                index,
                heuristic,
                counted,
                at,
            });
        } else {
            chunk.counts.truncate(counted);
        }
        true
    }
}

/// What a fault makes of a configuration, into `after`. Says whether it is possible.
///
/// # Errors
/// Where it makes a handler panic, with the fingerprint of the crash if it is a violation.
pub fn fail<M: Model>(
    (faults, space): (&Faults, &mut Space<M>),
    words: &[u32],
    fault: usize,
    after: &mut Vec<u32>,
) -> Result<bool, Option<String>> {
    let (world, rule) = (space::unpack(space, words), space.rule());
    let Some(world) = faults.perform(fault, &mut space.sim, &world, rule) else { return Ok(false) };
    let world = space.went_on(world).map_err(|crash| crash.map(|crash| crash.fingerprint))?;
    let left = packed::faults(words) & !(1 << fault);
    space::pack(space, (&world, left), Some(words), after);
    Ok(true)
}
