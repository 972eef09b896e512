//! Random walks over few external events: violating executions that no reduction of the recorded one reaches.
//!
//! Delta debugging follows the recorded order, so an actor or a message on which that order hinges stays for good.
//! A walk takes (some of) the external events of a small witness in their recorded order and lets chance order
//! everything else under the network rule, as fuzzing does; what breaks the same invariant is a new place to start
//! from. Walks differ in how eager timers and external events are; some begin with a part of the witness, and in some
//! an actor starts late, so that what is sent to it before is lost.

use demi_replay::script::Act;
use demi_replay::{Model, PendingKind, World};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::event_sets::same_event;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::EXACT;
use crate::oracle::witness::Shared;

/// Weight of a pending message in the draw of the next step.
const MESSAGE_WEIGHT: u32 = 10;
/// The weights of timers that walks take turns with.
const TIMER_WEIGHTS: [u32; 3] = [1, 3, 10];
/// The weights of the next external event that walks take turns with.
const EXTERNAL_WEIGHTS: [u32; 3] = [2, 5, 20];
/// Most external messages that a walk adds to those of the witness.
const MAX_EXTRAS: usize = 4;

/// Makes walks near a witness.
pub struct Walker<'a, M: Model> {
    /// External events of the recorded execution, in order.
    pool: &'a [Act],
    /// The witness whose external events are taken.
    base: &'a Shared<M>,
    /// Which of the pool's these are.
    members: Vec<usize>,
    /// Whether some walks take fewer messages than the witness.
    fewer: bool,
    rng: ChaCha8Rng,
}

impl<'a, M: Model> Walker<'a, M> {
    /// A walker whose walks depend on nothing but its arguments.
    pub fn new(pool: &'a [Act], base: &'a Shared<M>, seed: u64, fewer: bool) -> Self {
        let mut members: Vec<usize> = Vec::new();
        for act in base.acts.iter().filter(|a| a.is_external()) {
            let found = (0..pool.len()).find(|i| !members.contains(i) && same_event(&pool[*i], act));
            members.extend(found);
        }
        members.sort_unstable();
        Walker { pool, base, members, fewer, rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Makes one walk; gives the witness if it breaks the invariant.
    pub fn walk(&mut self, engine: &mut Engine<M>) -> Option<Shared<M>> {
        engine.meter.replays += 1;
        let timer_weight = self.pick(&TIMER_WEIGHTS);
        let external_weight = self.pick(&EXTERNAL_WEIGHTS);
        let most = self.rng.random_range(1..=4) * self.base.acts.len() + 40;
        let mut externals = self.externals();
        let (mut world, mut done) = (engine.sim.empty_world(), Vec::new());
        if self.rng.random_ratio(1, 4) {
            let at = self.rng.random_range(0..self.base.acts.len());
            (world, done) = engine.world_at(self.base, at);
            externals.retain(|e| !done.iter().any(|d| same_event(d, e)));
        }
        self.delay_a_start(&mut externals);
        externals.reverse();
        let mut repeated = None;
        let mut candidates = Vec::new();
        while done.len() < most {
            // Whoever starts before anything else does so at once.
            let first = done.iter().all(|act| matches!(act, Act::Start(_)));
            if let Some(act) = externals.pop_if(|act| first && matches!(act, Act::Start(_))) {
                engine.follow(&mut world, &act);
                done.push(act);
                continue;
            }
            weigh(engine, &world, timer_weight, repeated, &mut candidates);
            // A test driver waits until the system has started.
            let waits = externals.is_empty() || engine.sim.starting_up(&world);
            let outside = if waits { 0 } else { external_weight };
            let total = candidates.iter().map(|(_, w)| w).sum::<u32>() + outside;
            if total == 0 {
                if repeated.take().is_some() {
                    continue;
                }
                return None;
            }
            let mut draw = self.rng.random_range(0..total);
            if draw < outside {
                let violated =
                    externals.pop().is_some_and(|act| perform(engine, &mut world, &act, &mut done));
                if violated {
                    return engine.first_witness(&done, EXACT);
                }
                repeated = None;
                continue;
            }
            draw -= outside;
            let drawn = candidates.iter().position(|(_, weight)| {
                let here = draw < *weight;
                draw = draw.saturating_sub(*weight);
                here
            });
            let index = drawn.map_or(0, |at| candidates[at].0);
            let entry = world.pending()[index];
            repeated = (entry.kind == PendingKind::Repeating).then_some((entry.to, entry.timer));
            if engine.deliver(&mut world, index, &mut done) {
                return engine.first_witness(&done, EXACT);
            }
        }
        None
    }

    /// Leaves out some messages, in most walks; in some all but one or two.
    fn leave_out(&mut self, chosen: &mut Vec<usize>) {
        let messages = chosen.iter().filter(|i| self.pool[**i].is_delivery()).count();
        if messages < 2 || self.rng.random_ratio(1, 4) {
            return;
        }
        let gone = match self.rng.random_ratio(1, 2) {
            true => self.rng.random_range(1..=messages.min(3) - 1),
            false => self.rng.random_range(1..messages),
        };
        for _ in 0..gone {
            let messages: Vec<usize> =
                (0..chosen.len()).filter(|at| self.pool[chosen[*at]].is_delivery()).collect();
            chosen.remove(messages[self.rng.random_range(0..messages.len())]);
        }
    }

    /// Adds the start of an actor that the witness does without, and what it is sent first from outside.
    fn add_an_actor(&mut self, chosen: &mut Vec<usize>) {
        let absent: Vec<usize> = (0..self.pool.len())
            .filter(|i| matches!(self.pool[*i], Act::Start(_)) && !chosen.contains(i))
            .collect();
        if absent.is_empty() {
            return;
        }
        let start = absent[self.rng.random_range(0..absent.len())];
        chosen.push(start);
        let actor = self.pool[start].actor();
        chosen.extend(
            (0..self.pool.len()).find(|&i| self.pool[i].is_delivery() && self.pool[i].actor() == actor),
        );
    }

    /// In some walks, moves a start to a random place, and messages from outside for that actor behind it.
    fn delay_a_start(&mut self, externals: &mut Vec<Act>) {
        let starts: Vec<usize> =
            (0..externals.len()).filter(|&i| matches!(externals[i], Act::Start(_))).collect();
        if starts.len() < 2 || !self.rng.random_ratio(1, 4) {
            return;
        }
        let start = externals[starts[self.rng.random_range(0..starts.len())]];
        let (mut late, rest): (Vec<Act>, Vec<Act>) =
            externals.drain(..).partition(|act| act.actor() == start.actor());
        *externals = rest;
        let mut at = self.rng.random_range(0..=externals.len());
        for act in late.drain(..) {
            externals.insert(at, act);
            at = self.rng.random_range(at + 1..=externals.len());
        }
    }

    fn pick(&mut self, from: &[u32]) -> u32 {
        from[self.rng.random_range(0..from.len())]
    }

    /// The external events of one walk, in recorded order: those of the witness, sometimes without one actor,
    /// with some more messages of the recorded ones.
    fn externals(&mut self) -> Vec<Act> {
        let mut chosen = self.members.clone();
        let starts: Vec<&Act> =
            chosen.iter().map(|&i| &self.pool[i]).filter(|a| matches!(a, Act::Start(_))).collect();
        if starts.len() > 1 && self.rng.random_ratio(1, 2) {
            let gone = starts[self.rng.random_range(0..starts.len())].actor();
            chosen.retain(|&i| self.pool[i].actor() != gone);
        }
        if self.rng.random_ratio(1, 4) {
            self.add_an_actor(&mut chosen);
        }
        if self.fewer {
            self.leave_out(&mut chosen);
        }
        let present: Vec<_> = chosen.iter().filter_map(|&i| self.pool[i].actor()).collect();
        let most = match self.fewer {
            // What was left out shall not come back.
            true => self.rng.random_range(0..=1) * MAX_EXTRAS / 4,
            false => MAX_EXTRAS,
        };
        let extras = if self.pool.is_empty() { 0 } else { self.rng.random_range(0..=most) };
        for _ in 0..extras {
            let extra = self.rng.random_range(0..self.pool.len());
            let act = &self.pool[extra];
            let known = act.actor().is_some_and(|a| present.contains(&a));
            if act.is_delivery() && known && !chosen.contains(&extra) {
                chosen.push(extra);
            }
        }
        chosen.sort_unstable();
        chosen.into_iter().map(|i| self.pool[i]).collect()
    }
}

/// What may be delivered next, with weights. A repeating timer that just fired waits until something else happened.
fn weigh<M: Model>(
    engine: &Engine<M>,
    world: &World<M>,
    timer_weight: u32,
    repeated: Option<(demi_replay::ActorId, u16)>,
    candidates: &mut Vec<(usize, u32)>,
) {
    candidates.clear();
    for (index, entry) in world.pending().iter().enumerate() {
        let waits = entry.kind == PendingKind::Repeating && repeated == Some((entry.to, entry.timer));
        if !waits && engine.deliverable(world, index) {
            candidates.push((index, if entry.kind.is_timer() { timer_weight } else { MESSAGE_WEIGHT }));
        }
    }
}

/// Performs an external event; says whether the violation is there now.
fn perform<M: Model>(engine: &mut Engine<M>, world: &mut World<M>, act: &Act, done: &mut Vec<Act>) -> bool {
    let Act::Deliver(want) = act else {
        if engine.follow(world, act) {
            done.push(*act);
        }
        return false;
    };
    let index = want.external.and_then(|msg| engine.sim.inject(world, want.to, msg));
    match index {
        // What cannot be taken now stays pending and may be later.
        Some(index) if engine.sim.takes(world, &world.pending()[index]) => engine.deliver(world, index, done),
        _ => false,
    }
}
