//! Cuts along the structure of a run, each as one candidate: a cause with everything that exists only because of it,
//! an epoch of the logical clock, a channel, and what lies between two moments at which all actors are in the same
//! states.
//!
//! Chunks follow the order of steps, in which what belongs together is scattered; here it goes together.

use std::hash::{Hash, Hasher};

use demi_replay::script::Act;
use demi_replay::{ActorId, Model};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::Xxh3;

use crate::oracle::causes::Causes;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::reduce::reducer::Reducer;

/// Longest witness, in steps, of which the cone of every step is tried, and not only of those from outside and timers.
const ALL_CONES: usize = 150;
/// Policies with which each candidate is tried.
const POLICIES: usize = 3;
/// Repeated states that are cut between in one round, the farthest apart first.
const CYCLES: usize = 48;

/// What one run of a witness shows, by act.
pub(super) struct Survey {
    /// The act that sent the message or armed the timer.
    pub(super) cause: Vec<Option<usize>>,
    /// The clock of the actor after the act; where actors have none, that of the message (Spark: its job).
    epoch: Vec<Option<i64>>,
    /// A hash of all actors' states after the act.
    states: Vec<u128>,
}

pub(super) fn survey<M: Model>(engine: &mut Engine<M>, witness: &Shared<M>) -> Survey {
    let mut world = engine.sim.empty_world();
    let mut causes = Causes::default();
    let n = witness.acts.len();
    let mut survey =
        Survey { cause: Vec::with_capacity(n), epoch: Vec::with_capacity(n), states: Vec::with_capacity(n) };
    let mut cells: FxHashMap<ActorId, u128> = FxHashMap::default();
    for (at, act) in witness.acts.iter().enumerate() {
        let delivered = match act {
            Act::Deliver(want) => want.find(&engine.sim, &world),
            _ => None,
        };
        let message = delivered.and_then(|at| engine.sim.info(world.pending()[at].msg).clock);
        engine.follow(&mut world, act);
        survey.cause.push(causes.follow(world.pending(), delivered, engine.sim.did(), at).map(|c| c.0));
        let sim = &engine.sim;
        let view = sim.view(&world);
        let epoch = act.actor().and_then(|a| view.state(a)).and_then(|s| sim.actor_clock(s));
        survey.epoch.push(epoch.or(message));
        // Only what the act touched is hashed anew, unless it may have touched more.
        let touched: Vec<ActorId> = match act {
            Act::Deliver(want) if sim.did().iter().all(|d| d.failed().is_none()) => vec![want.to],
            _ => view.actors().collect(),
        };
        for actor in touched {
            let mut hasher = Xxh3::new();
            view.state(actor).hash(&mut hasher);
            hasher.write_u16(actor.0);
            cells.insert(actor, hasher.digest128());
        }
        survey.states.push(cells.values().fold(0, |sum: u128, hash| sum.wrapping_add(*hash)));
    }
    survey
}

/// Tries candidates one after the other, each with the first policies; the first that gains ends it.
pub(super) fn try_all<M: Model>(
    reducer: &mut Reducer<'_, M>,
    policies: &[Policy],
    candidates: impl IntoIterator<Item = Vec<bool>>,
) -> bool {
    // Without clocks those that go by clocks do what others do.
    let clocks =
        reducer.best.acts.iter().any(|act| matches!(act, Act::Deliver(want) if want.clock.is_some()));
    let policies: Vec<Policy> =
        policies.iter().filter(|p| clocks || !p.by_clock()).take(POLICIES).copied().collect();
    for removed in candidates {
        if !removed.contains(&true) {
            continue;
        }
        for policy in &policies {
            if reducer.ended() {
                return false;
            }
            if reducer.without(&removed, *policy) {
                return true;
            }
        }
    }
    false
}

/// Leaves out an act together with everything that exists only because of it: what it sent, what that set off, and
/// so on. Messages from outside first, the latest first; then timers; then, in short witnesses, all others.
pub fn cones<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    loop {
        let best = reducer.best.clone();
        let survey = survey(&mut reducer.engine, &best);
        let rank = |act: &Act| match act {
            Act::Deliver(want) if want.external.is_some() => Some(0),
            Act::Deliver(want) if want.timer => Some(1),
            Act::Deliver(_) if best.acts.len() <= ALL_CONES => Some(2),
            _ => None,
        };
        let mut heads: Vec<(u8, usize)> =
            best.acts.iter().enumerate().filter_map(|(at, act)| Some((rank(act)?, at))).collect();
        heads.sort_by_key(|&(rank, at)| (rank, std::cmp::Reverse(at)));
        let candidates = heads.into_iter().map(|(_, head)| cone(&survey.cause, head));
        if !try_all(reducer, policies, candidates) {
            return;
        }
    }
}

/// The act and all that it brought about.
pub(super) fn cone(cause: &[Option<usize>], head: usize) -> Vec<bool> {
    let mut inside = vec![false; cause.len()];
    inside[head] = true;
    for at in head + 1..cause.len() {
        inside[at] = cause[at].is_some_and(|c| inside[c]);
    }
    inside
}

/// Leaves out what happened in one epoch, in all but the last few, or in the first few, where actors or messages have a
/// logical clock such as a term, a ballot or the number of a job.
pub fn epochs<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    loop {
        let best = reducer.best.clone();
        let survey = survey(&mut reducer.engine, &best);
        let mut known: Vec<i64> = survey.epoch.iter().flatten().copied().collect();
        known.sort_unstable();
        known.dedup();
        let internal = |at: usize| best.acts[at].is_delivery() && !best.acts[at].is_external();
        let within = |low: i64, high: i64| -> Vec<bool> {
            let inside = |at: usize| survey.epoch[at].is_some_and(|e| low <= e && e <= high) && internal(at);
            (0..best.acts.len()).map(inside).collect()
        };
        let mut candidates = Vec::new();
        let mut width = known.len() / 2;
        while width > 0 {
            candidates.extend(known.chunks(width).filter_map(|c| Some(within(*c.first()?, *c.last()?))));
            width /= 2;
        }
        if !try_all(reducer, policies, candidates) {
            return;
        }
    }
}

/// Leaves out all that one actor sends another, or all of one type that an actor takes.
pub fn channels<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    loop {
        let best = reducer.best.clone();
        let wants = || {
            best.acts.iter().filter_map(|act| match act {
                Act::Deliver(want) if want.external.is_none() => Some(want),
                _ => None,
            })
        };
        let mut pairs: Vec<_> = wants().filter(|w| !w.timer).map(|w| (w.from, w.to)).collect();
        let sim = &reducer.engine.sim;
        let mut types: Vec<_> = wants().map(|w| (w.to, sim.text(w.type_), w.type_)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        types.sort_unstable();
        types.dedup();
        let mask = |of: &dyn Fn(&demi_replay::script::Want) -> bool| -> Vec<bool> {
            let inside = |act: &Act| matches!(act, Act::Deliver(w) if w.external.is_none() && of(w));
            best.acts.iter().map(inside).collect()
        };
        let between = pairs.iter().map(|&(from, to)| mask(&|w| !w.timer && w.from == from && w.to == to));
        let taken = types.iter().map(|&(to, _, type_)| mask(&|w| w.to == to && w.type_ == type_));
        let candidates: Vec<Vec<bool>> = between.chain(taken).collect();
        if !try_all(reducer, policies, candidates) {
            return;
        }
    }
}

/// Leaves out what happened between two moments at which all actors were in the same states, the longest stretch
/// first. What is pending may differ, so it is tried and not taken for granted.
pub fn cycles<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    loop {
        let best = reducer.best.clone();
        let survey = survey(&mut reducer.engine, &best);
        let mut first: FxHashMap<u128, usize> = FxHashMap::default();
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for (at, hash) in survey.states.iter().enumerate() {
            let before = *first.entry(*hash).or_insert(at);
            if before + 1 < at {
                stretches.push((before, at));
            }
        }
        stretches.sort_by_key(|&(a, b)| (std::cmp::Reverse(b - a), a));
        stretches.truncate(CYCLES);
        let candidates = stretches.into_iter().map(|(a, b)| {
            let internal = |act: &Act| act.is_delivery() && !act.is_external();
            best.acts.iter().enumerate().map(|(at, act)| a < at && at <= b && internal(act)).collect()
        });
        let candidates: Vec<Vec<bool>> = candidates.collect();
        if !try_all(reducer, policies, candidates) {
            return;
        }
    }
}
