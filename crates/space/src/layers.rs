//! Layers of configurations, worked on in batches by all threads.
//!
//! A batch is expanded by all threads against the hashes that were seen before it; then each part of the hashes takes
//! in the batch's children, in their order. Neither depends on which thread does what, so the next layer, the path
//! that is found and the number of configurations are always the same.

use std::sync::{Arc, Mutex, PoisonError};

use demi_replay::bill::{self, Bill, Item};
use demi_replay::model::DistanceOf;
use demi_replay::{Model, Pending, PendingKind, Simulator, World};
use demi_schemas::NetworkRule;

use crate::allowance::Allowance;
use crate::crew::{Crew, Pace, side_by_side};
use crate::faults::Faults;
use crate::kinds::Kinds;
use crate::layer::{self, Lead, Place, Rarity, Segment};
use crate::packed;
use crate::space::{self, Space};
use crate::symmetry::Renaming;
use crate::worker::{self, Child, Chunk, Common, Of, SHARDS, Seen, Worker, shard};

/// Configurations that one search remembers at most, all renamings counted: what is proven has to be within reach of a
/// checker that knows nothing of renamings and keeps whole worlds.
const MAX_STATES: usize = 10_000_000;
/// Numbers that the configurations of one layer may have in all: 2 GiB.
const MAX_WORDS: usize = 512 << 20;
/// Configurations that are expanded between two times of taking in what is new.
const BATCH: usize = 32_768;
/// Configurations that a thread takes at a time, at most.
const CHUNK: usize = 256;
/// Pieces of work for each thread, so that none waits long for another one.
const PIECES: usize = 4;

/// In the index of a step: it is a fault.
const FAULT: u32 = 1 << 31;

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
    /// Whether the model could not rename something that was met, so that the result is worth nothing.
    pub unequal: bool,
    /// Whether a layer was left before its end.
    pub cut: bool,
    /// The account for steps of processes.
    pub bill: Option<Bill>,
    /// How many were paid from it.
    pub paid: u64,
}

/// A search.
pub struct Layers<M: Model> {
    space: Space<M>,
    common: Common<M>,
    workers: Vec<Worker>,
    crew: Crew<M>,
    /// Of expanding a configuration, of taking one in, and of ranking one.
    paces: (Pace, Pace, Pace),
    seen: Vec<Seen>,
    steps: Vec<Step>,
    layer: Vec<Segment>,
    states: u64,
    /// Whether a layer was left before its end.
    cut: bool,
    rarity: Rarity,
    room: usize,
    /// Whether the limit left no room for steps of processes that a batch needs.
    short: bool,
    /// What was paid for steps of processes, where these answer.
    bill: Option<Bill>,
    /// How many that were.
    paid: u64,
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
        let mut space = Space::new(sim, rule).bounded(bound.clone()).alike(renamings, kinds.clone());
        let mut words = Vec::new();
        space::pack(&mut space, (root, faults.all()), None, &mut words);
        let outside = |pending: &&Pending| pending.kind == PendingKind::External;
        let outside = root.pending().iter().filter(outside).count();
        let common = Common { target, bound, faults, outside, most_outside: None, kinds, billed: false };
        let workers = (0..jobs.max(1)).map(|_| Worker::default()).collect();
        let hash = packed::hash(&words, &space.locals, &space.hot);
        let (ends, counts) = (vec![(words.len(), hash)], vec![0; common.kinds.counters()]);
        let layer = vec![Segment { ends, heuristics: vec![0], counts, words, first: 0 }];
        Layers {
            space,
            common,
            workers,
            crew: Crew::of(jobs),
            paces: Default::default(),
            seen: vec![Seen::default(); SHARDS],
            steps: vec![Step { parent: 0, index: 0 }],
            layer,
            states: 0,
            cut: false,
            rarity: Rarity::default(),
            room: usize::MAX,
            short: false,
            bill: None,
            paid: 0,
        }
    }

    /// The same with local states of so many bytes at most.
    #[must_use]
    pub fn within(self, room: usize) -> Self {
        Layers { room, ..self }
    }

    /// The same with an account for steps of processes.
    #[must_use]
    pub fn paying(self, bill: Option<Bill>) -> Self {
        Layers { common: Common { billed: bill.is_some(), ..self.common }, bill, ..self }
    }

    /// Looks for the violation within the limits.
    pub fn search(mut self, limits: Limits, meter: &dyn Allowance) -> Ended {
        let (limit, most) = (limits.deliveries, limits.states);
        if self.space.unequal() {
            return self.ended(End::Nothing);
        }
        self.common.most_outside = limits.outside;
        for depth in 1..=limit {
            let mut layer = std::mem::take(&mut self.layer);
            let (failed, told) = bill::during(|| self.fail(&mut layer, limit - depth + 1, meter));
            self.pay(&told);
            if let Some((step, index)) = failed {
                let path = self.path(step, index);
                return self.ended(End::Found(path));
            }
            if meter.late() {
                return self.ended(End::Stopped(depth, "budget"));
            }
            // Whole batches only: what is where in a layer is the same for any number of threads.
            let mut places = layer::places(&layer);
            if let Some((_, lead)) = limits.width {
                let crew = (&mut self.workers[..], &mut self.paces.2);
                layer::sort(lead, &layer, &mut places, &mut self.rarity, &self.common.kinds, crew);
            }
            let enough = limits.width.map_or(u64::MAX, |(width, _)| self.states.saturating_add(width));
            let batch = if limits.width.is_some() { CHUNK } else { BATCH };
            let last = places.len().div_ceil(batch).saturating_sub(1);
            for (number, batch) in places.chunks(batch).enumerate() {
                if meter.ended() {
                    return self.ended(End::Stopped(depth, "budget"));
                }
                let (chunks, violation) = self.expand(&layer, batch, limit - depth, (most, meter));
                if self.space.bytes() > self.room {
                    return self.ended(End::Stopped(depth, "memory"));
                }
                if let Some((step, index)) = violation {
                    let path = self.path(step, index);
                    return self.ended(End::Found(path));
                }
                // What a batch that was broken off has left out may be what is looked for.
                if self.short {
                    return self.ended(End::Stopped(depth, "states"));
                }
                if meter.late() {
                    return self.ended(End::Stopped(depth, "budget"));
                }
                self.take_in(&chunks);
                if self.space.unequal() {
                    return self.ended(End::Nothing);
                }
                let words: usize = self.layer.iter().map(|s| s.words.len()).sum();
                let alike = self.space.canonical.renamings().len() + 1;
                let known =
                    if limits.width.is_some() { self.steps.len() / 4 } else { self.steps.len() * alike };
                if known > MAX_STATES || words > MAX_WORDS {
                    return self.ended(End::Stopped(depth, "memory"));
                }
                if self.states.saturating_mul(alike as u64).saturating_add(self.paid) > most {
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
        let (worker, common, space) = (&mut self.workers[0], &self.common, &mut self.space);
        let (mut at, mut after) = (0, Vec::new());
        while at < layer.len() && common.faults.all() != 0 {
            let mut new = Segment { first: self.steps.len() as u32, ..Segment::default() };
            for place in 0..layer[at].ends.len() {
                let (words, _, parent) = layer[at].get(place);
                for fault in common.faults.next(packed::faults(words)) {
                    if meter.late() {
                        return None;
                    }
                    match worker::fail((&common.faults, space), words, fault, &mut after) {
                        Ok(true) => {}
                        Err(Some(crash)) if common.target.contains(&crash) => {
                            return Some((parent, FAULT | fault as u32));
                        }
                        Ok(false) | Err(_) => continue,
                    }
                    let hash = packed::hash(&after, &space.locals, &space.hot);
                    let counts = layer[at].counts(place, common.kinds.counters());
                    let key = worker.key(space, &after, hash) ^ common.kinds.apart(counts);
                    let mut found = Vec::new();
                    let judged = space.broken(&after, &mut found);
                    if judged.is_ok() && found.iter().any(|v| common.target.contains(&v.fingerprint)) {
                        return Some((parent, FAULT | fault as u32));
                    }
                    let (lower_bound, heuristic) = worker.estimate(space, &after, common.bound.as_deref());
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

    fn ended(self, end: End) -> Ended {
        let (unequal, cut, bill) = (self.space.unequal(), self.cut, self.bill);
        Ended { end, states: self.states, unequal, cut, bill, paid: self.paid }
    }

    /// Makes all deliveries of a batch, chunk by chunk, while there is time; gives the first that leads to the violation, with the step before it.
    fn expand(
        &mut self,
        layer: &[Segment],
        batch: &[Place],
        room: usize,
        (most, meter): (u64, &dyn Allowance),
    ) -> (Vec<[Chunk; 2]>, Option<(u32, u32)>) {
        let size = batch.len().div_ceil(self.workers.len() * PIECES).clamp(1, CHUNK);
        let pieces: Vec<&[Place]> = batch.chunks(size).collect();
        let kinds = self.common.kinds.counters();
        let of = |(segment, place): Place| -> Of<'_> {
            (layer[segment].get(place), layer[segment].counts(place, kinds))
        };
        let context = (&self.common, &self.space);
        let bounds = (room, &self.seen[..]);
        let mut chunks: Vec<Chunk> =
            side_by_side(&mut self.workers, pieces.len(), size, &mut self.paces.0, |worker, at| {
                let mut chunk = Chunk::default();
                for (place, &configuration) in pieces[at].iter().enumerate() {
                    if meter.late() {
                        break;
                    }
                    worker.expand(context, (place as u32, of(configuration), None), bounds, &mut chunk);
                    if chunk.violation.is_some() {
                        break;
                    }
                }
                chunk
            });
        // What comes after the first violation has nothing to say.
        let last = chunks.iter().position(|chunk| chunk.violation.is_some());
        chunks.truncate(last.map_or(chunks.len(), |last| last + 1));
        // Handlers run between two looks at the space, and nobody waits for another one's.
        let unknown: Vec<(u32, u32)> =
            chunks.iter_mut().flat_map(|chunk| std::mem::take(&mut chunk.unknown)).collect();
        let told = match &self.bill {
            None => self.space.learn(&unknown, &mut self.crew, meter),
            Some(_) => {
                // What there is no room for is not known afterwards, and nothing may be said of what it leads to.
                let room = most.saturating_sub(self.states.saturating_add(self.paid)).saturating_add(1);
                let few = unknown.len().min(usize::try_from(room).unwrap_or(usize::MAX));
                self.short = few < unknown.len();
                self.space.learn(&unknown[..few], &mut self.crew, meter)
            }
        };
        if let Some(bill) = &mut self.bill {
            self.paid += bill.pay(&told);
        }
        if self.short {
            return (Vec::new(), None);
        }
        for (chunk, piece) in chunks.iter_mut().zip(&pieces) {
            for waits in &mut chunk.waiting {
                let configuration = of(piece[waits.at as usize]);
                let context = (&self.common, &mut self.space);
                let (lives, told) = bill::during(|| self.workers[0].lives(context, configuration, meter));
                waits.lives = lives;
                chunk.told.extend(told);
            }
        }
        let context = (&self.common, &self.space);
        let waiting: Vec<usize> = (0..chunks.len()).filter(|&at| !chunks[at].waiting.is_empty()).collect();
        let mut later =
            side_by_side(&mut self.workers, waiting.len(), size, &mut self.paces.0, |worker, at| {
                let mut chunk = Chunk::default();
                let at = waiting[at];
                for waits in &chunks[at].waiting {
                    if meter.late() {
                        break;
                    }
                    let one = (waits.at, of(pieces[at][waits.at as usize]), Some(&waits.lives[..]));
                    worker.expand(context, one, bounds, &mut chunk);
                    if chunk.violation.is_some() {
                        break;
                    }
                }
                chunk
            })
            .into_iter();
        let mut waiting = waiting.into_iter().peekable();
        let mut violation = None;
        let mut both = Vec::with_capacity(chunks.len());
        for (at, chunk) in chunks.into_iter().enumerate() {
            let late = waiting.next_if_eq(&at).and_then(|_| later.next()).unwrap_or_default();
            let first = [chunk.violation, late.violation].into_iter().flatten().min();
            let last = first.map(|(place, ..)| place);
            self.states += chunk.states(last) + late.states(last);
            violation = first.map(|(_, step, index)| (step, index));
            self.pay(&chunk.told);
            self.pay(&late.told);
            both.push([chunk, late]);
            if violation.is_some() {
                break;
            }
        }
        (both, violation)
    }

    /// Pays for steps of processes.
    fn pay(&mut self, told: &[Item]) {
        if let Some(bill) = &mut self.bill {
            self.paid += bill.pay(told);
        }
    }

    /// Enters the children that are new, first come first.
    fn take_in(&mut self, chunks: &[[Chunk; 2]]) {
        let slots: Vec<Mutex<&mut Seen>> = self.seen.iter_mut().map(Mutex::new).collect();
        let kinds = self.common.kinds.counters();
        let children = chunks.iter().flatten().flat_map(|chunk| &chunk.children).map(Vec::len).sum::<usize>();
        let work = |_: &mut Worker, shard: usize| {
            let mut seen = slots[shard].lock().unwrap_or_else(PoisonError::into_inner);
            let (mut segment, mut steps) = (Segment::default(), Vec::new());
            for [chunk, late] in chunks {
                let (mut soon, mut later) = (&chunk.children[shard][..], &late.children[shard][..]);
                loop {
                    // In the order of their parents.
                    let (from, child) = match (soon, later) {
                        ([], []) => break,
                        ([child, rest @ ..], []) => {
                            soon = rest;
                            (chunk, child)
                        }
                        ([child, rest @ ..], [other, ..]) if child.at < other.at => {
                            soon = rest;
                            (chunk, child)
                        }
                        (_, [child, rest @ ..]) => {
                            later = rest;
                            (late, child)
                        }
                    };
                    if seen.insert(child.key) {
                        let Child { start, len, parent, index, hash, heuristic, counted, .. } = *child;
                        segment.counts.extend_from_slice(&from.counts[counted..counted + kinds]);
                        segment.heuristics.push(heuristic);
                        segment.words.extend_from_slice(&from.words[start..start + len as usize]);
                        segment.ends.push((segment.words.len(), hash));
                        steps.push(Step { parent, index });
                    }
                }
            }
            (segment, steps)
        };
        let each = children.div_ceil(SHARDS);
        let entered = side_by_side(&mut self.workers, SHARDS, each, &mut self.paces.1, work);
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
