//! Layers of configurations, worked on in batches by all threads.
//!
//! A batch is expanded by all threads against the hashes that were seen before it; then each part of the hashes takes
//! in the batch's children, in their order. Neither depends on which thread does what, so the next layer, the path
//! that is found and the number of configurations are always the same.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use demi_replay::model::DistanceOf;
use demi_replay::{Model, Pending, PendingKind, Simulator, World};
use demi_schemas::NetworkRule;

use crate::faults::Faults;
use crate::kinds::Kinds;
use crate::layer::{self, Lead, Place, Rarity, Segment};
use crate::packed;
use crate::symmetry::Renaming;
use crate::tables::Tables;
use crate::worker::{Child, Chunk, Common, SHARDS, Seen, Worker, shard};

/// Configurations that one search remembers at most, all renamings counted: what is proven has to be within reach of a
/// checker that knows nothing of renamings and keeps whole worlds.
const MAX_STATES: usize = 10_000_000;
/// Numbers that the configurations of one layer may have in all: 2 GiB.
const MAX_WORDS: usize = 512 << 20;
/// Configurations that are expanded between two times of taking in what is new.
const BATCH: usize = 32_768;
/// Configurations that a thread takes at a time.
const CHUNK: usize = 256;

/// In the index of a step: it is a fault.
const FAULT: u32 = 1 << 31;

/// How long a search may go on, and how much it may do.
pub trait Allowance: Sync {
    /// Whether the time is over. It is asked before each step that may be slow.
    fn late(&self) -> bool;

    /// Whether the work must end now, for whatever reason.
    fn ended(&self) -> bool;
}

/// How a configuration was reached.
#[derive(Clone, Copy)]
struct Step {
    parent: u32,
    /// Of the pending entry that was delivered, or the number of the fault and [`FAULT`].
    index: u32,
}

/// How far a search may go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most deliveries on the way to the violation.
    pub deliveries: usize,
    /// Configurations after which it ends, not many more.
    pub states: u64,
    /// Deliveries after which a layer is left, not many more, and which configurations come first (beam search; R. Bisiani
    /// 1987). What is not found then may be there all the same.
    pub width: Option<(u64, Lead)>,
    /// Most messages from outside that are taken, where it is the search's choice which; then those configurations of a
    /// layer that have taken fewer come earlier.
    pub outside: Option<usize>,
}

/// One step of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The delivery of this pending entry.
    Deliver(usize),
    /// The fault of this number.
    Fail(usize),
}

/// How a search ended.
pub enum End {
    /// With the violation, reached by these steps.
    Found(Vec<Move>),
    /// There is none up to the limit.
    Nothing,
    /// Before; there is none with fewer deliveries than this.
    Stopped(usize, &'static str),
}

/// What a search came to.
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// Deliveries made.
    pub states: u64,
    /// Names of actors that were known in the end.
    pub names: usize,
    /// Whether the model could not rename something that was met, so that the result is worth nothing.
    pub unequal: bool,
    /// Whether a layer was left before its end.
    pub cut: bool,
}

/// A search.
pub struct Layers<M: Model> {
    common: Common<M>,
    workers: Vec<Worker<M>>,
    seen: Vec<Seen>,
    steps: Vec<Step>,
    layer: Vec<Segment>,
    states: u64,
    /// Whether a layer was left before its end.
    cut: bool,
    rarity: Rarity,
}

impl<M: Model> Layers<M> {
    /// A search from one configuration.
    pub fn new(
        sim: Simulator<M>,
        root: &World<M>,
        rule: NetworkRule,
        target: Vec<String>,
        bound: Option<Arc<DistanceOf<M>>>,
        (renamings, faults, kinds): (Vec<Renaming>, Faults, Kinds),
        jobs: usize,
    ) -> Self {
        let mut tables = Tables::new(sim, bound.clone(), (renamings.clone(), kinds.clone()));
        let mut words = Vec::new();
        packed::pack(&mut tables, (root, faults.all()), None, &mut words);
        let outside = |pending: &&Pending| pending.kind == PendingKind::External;
        let outside = root.pending().iter().filter(outside).count();
        let most_outside = None;
        let common = Common {
            tables: Mutex::new(tables),
            rule,
            target,
            bound,
            renamings,
            faults,
            outside,
            most_outside,
            kinds,
            room: usize::MAX,
            full: AtomicBool::new(false),
        };
        let workers: Vec<Worker<M>> = (0..jobs.max(1)).map(|_| Worker::new(&common)).collect();
        let hash = workers[0].hash(&words);
        let (ends, counts) = (vec![(words.len(), hash)], vec![0; common.kinds.counters()]);
        let layer = vec![Segment { ends, heuristics: vec![0], counts, words, first: 0 }];
        let seen = vec![Seen::default(); SHARDS];
        Layers {
            common,
            workers,
            seen,
            steps: vec![Step { parent: 0, index: 0 }],
            layer,
            states: 0,
            cut: false,
            rarity: Rarity::default(),
        }
    }

    /// The same with local states of so many bytes at most.
    pub fn within(mut self, room: usize) -> Self {
        self.common.room = room;
        self
    }

    /// Looks for the violation within the limits.
    pub fn search(mut self, limits: Limits, meter: &dyn Allowance) -> Ended {
        let (limit, most) = (limits.deliveries, limits.states);
        if self.unequal() {
            return self.ended(End::Nothing);
        }
        self.common.most_outside = limits.outside;
        for depth in 1..=limit {
            let mut layer = std::mem::take(&mut self.layer);
            if let Some((step, index)) = self.fail(&mut layer, limit - depth + 1, meter) {
                let path = self.path(step, index);
                return self.ended(End::Found(path));
            }
            if meter.late() {
                return self.ended(End::Stopped(depth, "budget"));
            }
            // Whole batches only: what is where in a layer is the same for any number of threads.
            let mut places = layer::places(&layer);
            if let Some((_, lead)) = limits.width {
                layer::sort(lead, &layer, &mut places, &mut self.rarity);
            }
            let enough = limits.width.map_or(u64::MAX, |(width, _)| self.states.saturating_add(width));
            let batch = if limits.width.is_some() { CHUNK } else { BATCH };
            let last = places.len().div_ceil(batch).saturating_sub(1);
            for (number, batch) in places.chunks(batch).enumerate() {
                if meter.ended() {
                    return self.ended(End::Stopped(depth, "budget"));
                }
                let chunks = self.expand(&layer, batch, limit - depth, meter);
                self.states += chunks.iter().map(|c| c.states).sum::<u64>();
                // Which of the threads came how far then is chance.
                if self.common.full.load(Ordering::Relaxed) {
                    return self.ended(End::Stopped(depth, "memory"));
                }
                if let Some((step, index)) = chunks.iter().find_map(|c| c.violation) {
                    let path = self.path(step, index);
                    return self.ended(End::Found(path));
                }
                // What a batch that was broken off has left out may be what is looked for.
                if meter.late() {
                    return self.ended(End::Stopped(depth, "budget"));
                }
                self.take_in(&chunks);
                if self.unequal() {
                    return self.ended(End::Nothing);
                }
                let words: usize = self.layer.iter().map(|s| s.words.len()).sum();
                let alike = self.common.renamings.len() + 1;
                let known =
                    if limits.width.is_some() { self.steps.len() / 4 } else { self.steps.len() * alike };
                if known > MAX_STATES || words > MAX_WORDS {
                    return self.ended(End::Stopped(depth, "memory"));
                }
                if self.states.saturating_mul(alike as u64) > most {
                    return self.ended(End::Stopped(depth, "states"));
                }
                if self.states >= enough {
                    self.cut |= number < last;
                    break;
                }
            }
            if self.layer.is_empty() {
                break;
            }
        }
        // A fault after the last delivery is no delivery more.
        let mut layer = std::mem::take(&mut self.layer);
        if let Some((step, index)) = self.fail(&mut layer, 0, meter) {
            let path = self.path(step, index);
            return self.ended(End::Found(path));
        }
        if self.common.faults.all() != 0 && meter.late() {
            return self.ended(End::Stopped(limit.saturating_add(1), "budget"));
        }
        self.ended(End::Nothing)
    }

    /// Adds to a layer what faults make of its configurations, where no more than `room` deliveries are missing. Gives the first that
    /// violates by itself: the step before the fault, and the fault.
    fn fail(&mut self, layer: &mut Vec<Segment>, room: usize, meter: &dyn Allowance) -> Option<(u32, u32)> {
        let (worker, common) = (&mut self.workers[0], &self.common);
        let (mut at, mut after) = (0, Vec::new());
        while at < layer.len() && common.faults.all() != 0 {
            let mut new = Segment { first: self.steps.len() as u32, ..Segment::default() };
            for place in 0..layer[at].ends.len() {
                let (words, _, parent) = layer[at].get(place);
                for fault in common.faults.next(packed::faults(words)) {
                    if meter.late() {
                        return None;
                    }
                    let (hash, key) = match worker.fail(common, words, fault, &mut after) {
                        Ok(Some(known)) => known,
                        Err(Some(crash)) if common.target.contains(&crash) => {
                            return Some((parent, FAULT | fault as u32));
                        }
                        Ok(None) | Err(_) => continue,
                    };
                    if worker.violates(&after, &common.target) == Some(true) {
                        return Some((parent, FAULT | fault as u32));
                    }
                    let (lower_bound, heuristic) = worker.estimate(&after, common.bound.as_deref());
                    let enough = lower_bound <= room || packed::faults(&after) != 0;
                    if !enough || !self.seen[shard(key)].insert(key) {
                        continue;
                    }
                    new.words.extend_from_slice(&after);
                    new.ends.push((new.words.len(), hash));
                    new.heuristics.push(heuristic);
                    new.counts.extend_from_slice(layer[at].counts(place, self.common.kinds.counters()));
                    self.steps.push(Step { parent, index: FAULT | fault as u32 });
                }
            }
            if !new.ends.is_empty() {
                layer.push(new);
            }
            at += 1;
        }
        None
    }

    /// Whether something was met that has no other name.
    fn unequal(&self) -> bool {
        self.common.tables.lock().unwrap_or_else(PoisonError::into_inner).unequal
    }

    fn ended(&self, end: End) -> Ended {
        let tables = self.common.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Ended {
            end,
            states: self.states,
            names: tables.names().len(),
            unequal: tables.unequal,
            cut: self.cut,
        }
    }

    /// Makes all deliveries of a batch, chunk by chunk, while there is time.
    fn expand(
        &mut self,
        layer: &[Segment],
        batch: &[Place],
        room: usize,
        meter: &dyn Allowance,
    ) -> Vec<Chunk> {
        let (common, seen) = (&self.common, &self.seen[..]);
        self.workers.iter_mut().for_each(|worker| worker.catch_up(common));
        let pieces: Vec<&[Place]> = batch.chunks(CHUNK).collect();
        let work = |worker: &mut Worker<M>, at: usize| {
            let mut chunk = Chunk::default();
            for &(segment, place) in pieces[at] {
                if meter.late() {
                    break;
                }
                let counts = layer[segment].counts(place, common.kinds.counters());
                let configuration = (layer[segment].get(place), counts);
                worker.expand(common, configuration, room, (seen, meter), &mut chunk);
                if chunk.violation.is_some() {
                    break;
                }
            }
            chunk
        };
        side_by_side(&mut self.workers, pieces.len(), pieces.len() < 4, work)
    }

    /// Enters the children that are new, first come first.
    fn take_in(&mut self, chunks: &[Chunk]) {
        let slots: Vec<Mutex<&mut Seen>> = self.seen.iter_mut().map(Mutex::new).collect();
        let kinds = self.common.kinds.counters();
        let work = |_: &mut Worker<M>, shard: usize| {
            let mut seen = slots[shard].lock().unwrap_or_else(PoisonError::into_inner);
            let (mut segment, mut steps) = (Segment::default(), Vec::new());
            for chunk in chunks {
                for child in &chunk.children[shard] {
                    if seen.insert(child.key) {
                        let Child { start, len, parent, index, hash, heuristic, counted, .. } = *child;
                        segment.counts.extend_from_slice(&chunk.counts[counted..counted + kinds]);
                        segment.heuristics.push(heuristic);
                        segment.words.extend_from_slice(&chunk.words[start..start + len as usize]);
                        segment.ends.push((segment.words.len(), hash));
                        steps.push(Step { parent, index });
                    }
                }
            }
            (segment, steps)
        };
        let entered = side_by_side(&mut self.workers, SHARDS, chunks.len() < 4, work);
        for (mut segment, steps) in entered {
            segment.first = self.steps.len() as u32;
            self.steps.extend(steps);
            if !segment.ends.is_empty() {
                self.layer.push(segment);
            }
        }
    }

    fn path(&self, step: u32, last: u32) -> Vec<Move> {
        let of = |index: u32| match index & FAULT {
            0 => Move::Deliver(index as usize),
            _ => Move::Fail((index & !FAULT) as usize),
        };
        let mut path = vec![of(last)];
        let mut at = step as usize;
        while at != 0 {
            path.push(of(self.steps[at].index));
            at = self.steps[at].parent as usize;
        }
        path.reverse();
        path
    }
}

/// Does `count` pieces of work with the workers there are, or with one where it is `little`; the results come in the
/// order of their numbers.
fn side_by_side<M: Model, R: Send>(
    workers: &mut [Worker<M>],
    count: usize,
    little: bool,
    work: impl Fn(&mut Worker<M>, usize) -> R + Sync,
) -> Vec<R> {
    if workers.len() == 1 || little {
        return (0..count).map(|at| work(&mut workers[0], at)).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for worker in workers.iter_mut() {
            let (next, results, work) = (&next, &results, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let result = work(worker, at);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
