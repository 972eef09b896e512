//! A bound for any model whose actors have few states: deliveries have one receiver each, so what different receivers must
//! take adds up (additive pattern databases; Felner, Korf and Hanan 2004, with a pattern for each receiver).
//!
//! For this each actor is looked at alone: whatever is ever sent to it, in any execution, may be delivered to it at any
//! time and as often as it likes. What it can become is a graph then, and from each of its states a violation that needs
//! it in another is at least as far away as in the graph. States that no invariant tells apart ([`Model::watch`]) are one
//! as ends; which of them together violate is asked of the invariants once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use demi_replay::model::{DistanceOf, Waiting};
use demi_replay::script::Act;
use demi_replay::sim::is_crash;
use demi_replay::{ActorId, Model, View, World};

use demi_space::{Faults, Reaction, Space, packed};

use super::root::started;
use crate::oracle::engine::Engine;

/// Reactions that are looked at; with more there is no bound.
const REACTIONS: usize = 200_000;
/// States of one actor; with more there is no bound.
const STATES: usize = 2_000;
/// Combinations of ends that invariants are asked about; with more there is no bound.
const COMBINATIONS: usize = 100_000;
/// Part of the seconds there are that it may take: handlers may be slow, and states large.
const PART: f64 = 0.1;
/// Further than any execution goes.
const FAR: usize = usize::MAX / 4;
/// No way in the graph.
const NEVER: u16 = u16::MAX;

/// For each state, how many deliveries each end is away.
type Distances<M> = HashMap<Arc<<M as Model>::State>, Vec<u16>>;

/// One actor alone.
struct Alone<M: Model> {
    actor: ActorId,
    /// What it can become.
    states: Vec<Arc<M::State>>,
    /// From which states each of them is one delivery away.
    before: Vec<Vec<usize>>,
    /// For each state, which end it is.
    ends: Vec<usize>,
    /// One state of each end.
    one_of: Vec<usize>,
}

/// The bound for executions without faults over the external events of some acts, or fewer of them. What some acts have of faults is left out:
/// a shorter execution often does without. Nothing where there are actions, actors share memory, or there is too much to look at.
pub fn bound<M: Model>(engine: &mut Engine<M>, acts: &[Act]) -> Option<DistanceOf<M>> {
    let crash = engine.problem.target.iter().any(|fingerprint| is_crash(fingerprint));
    let mut started_before = Vec::new();
    let acts: Vec<Act> = acts.iter().copied().filter(|act| plain(act, &mut started_before)).collect();
    Faults::of(&acts).ok()?;
    // States of programs are what they have read: there is no end of them.
    if engine.sim.stuck_counts() || crash || engine.sim.model().runtime().is_billed() {
        return None;
    }
    let (_, world) = started(engine, &acts);
    let actors = alone(engine, &world)?;
    let goals = violating(engine, &world, &actors)?;
    let far: Vec<(ActorId, Distances<M>)> =
        actors.iter().map(|alone| (alone.actor, alone.distances())).collect();
    let least = move |view: &View<'_, M::State>, _: &[Waiting<'_, M::Msg>]| {
        let rows = far.iter().map(|(actor, far)| far.get(view.state(*actor)?));
        // Nothing is known of others than these.
        let Some(rows) = rows.collect::<Option<Vec<_>>>() else { return 0 };
        let way = |goal: &Vec<usize>| {
            let steps = goal.iter().zip(&rows).map(|(end, row)| match row[*end] {
                NEVER => FAR,
                steps => usize::from(steps),
            });
            steps.fold(0, |sum: usize, steps| (sum + steps).min(FAR))
        };
        goals.iter().map(way).min().unwrap_or(FAR)
    };
    Some(DistanceOf::<M> { sees: Box::new(|_| false), lower_bound: Box::new(least), heuristic: None })
}

/// Whether an act is no fault, nor the start of an actor that has failed.
fn plain(act: &Act, started: &mut Vec<ActorId>) -> bool {
    match act {
        Act::Start(actor) if started.contains(actor) => false,
        Act::Start(actor) => {
            started.push(*actor);
            true
        }
        act => !act.is_fault(),
    }
}

/// What each actor can become if everything that is ever sent may come at any time.
fn alone<M: Model>(engine: &Engine<M>, world: &World<M>) -> Option<Vec<Alone<M>>> {
    let mut space = Space::new(engine.sim.clone(), engine.rule);
    let mut words = Vec::new();
    demi_space::space::pack(&mut space, (world, 0), None, &mut words);
    let places: Vec<usize> = (0..world.actors()).filter(|at| packed::local(&words, *at) != 0).collect();
    let shared = |at: &usize| engine.sim.cell_of(ActorId(*at as u16)).index() != *at;
    if places.iter().any(shared) {
        return None;
    }
    let mut found: Vec<Vec<u32>> = places.iter().map(|at| vec![packed::local(&words, *at)]).collect();
    let mut steps: Vec<Vec<(usize, usize)>> = vec![Vec::new(); places.len()];
    let mut tried: HashMap<u32, usize> = HashMap::new();
    let mut reactions = 0;
    loop {
        let mut grown = false;
        for (which, place) in places.iter().enumerate() {
            let mut at = 0;
            while at < found[which].len() {
                let local = found[which][at];
                let from = std::mem::replace(tried.entry(local).or_default(), space.cells().len());
                let known = space.cells().len();
                for entry in from..known {
                    if usize::from(space.hot(entry as u32).cell) != *place {
                        continue;
                    }
                    grown = true;
                    reactions += 1;
                    if reactions > REACTIONS || engine.meter.gone(PART) || space.bytes() > engine.room() {
                        return None;
                    }
                    let number = space.react(local, entry as u32);
                    match space.reaction(number) {
                        Reaction::Refused | Reaction::Panics { .. } => {}
                        Reaction::Lives => return None,
                        Reaction::Plain { next, .. } => {
                            let known = found[which].iter().position(|state| state == next);
                            let to = known.unwrap_or(found[which].len());
                            if known.is_none() {
                                found[which].push(*next);
                                if found[which].len() > STATES {
                                    return None;
                                }
                            }
                            steps[which].push((at, to));
                        }
                    }
                }
                at += 1;
            }
        }
        if !grown {
            break;
        }
    }
    let graphs = places.iter().zip(found).zip(steps);
    Some(graphs.map(|((place, found), steps)| Alone::new(&space, *place, &found, &steps)).collect())
}

/// Which ends violate together, an end for each actor.
fn violating<M: Model>(engine: &Engine<M>, world: &World<M>, actors: &[Alone<M>]) -> Option<Vec<Vec<usize>>> {
    let size = actors.iter().try_fold(1_usize, |size, alone| size.checked_mul(alone.one_of.len()))?;
    if size > COMBINATIONS {
        return None;
    }
    let status: Vec<_> = (0..world.actors()).map(|at| world.status(ActorId(at as u16))).collect();
    let mut goals = Vec::new();
    for number in 0..size {
        if engine.meter.gone(PART) {
            return None;
        }
        let (mut left, mut cells) = (number, world.cells().to_vec());
        let mut ends = Vec::with_capacity(actors.len());
        for alone in actors {
            let end = left % alone.one_of.len();
            left /= alone.one_of.len();
            cells[alone.actor.index()] = Some(Arc::clone(&alone.states[alone.one_of[end]]));
            ends.push(end);
        }
        let mut found = Vec::new();
        let world = World::assemble(cells, status.clone(), Vec::new());
        engine.sim.check(&world, &mut M::History::default(), &mut found);
        if found.iter().any(|violation| engine.problem.target.contains(&violation.fingerprint)) {
            goals.push(ends);
        }
    }
    Some(goals)
}

impl<M: Model> Alone<M> {
    /// An actor at a place, with the numbers of what it can become and the steps between them.
    fn new(space: &Space<M>, place: usize, found: &[u32], steps: &[(usize, usize)]) -> Self {
        let mut before = vec![Vec::new(); found.len()];
        steps.iter().filter(|(from, to)| from != to).for_each(|(from, to)| before[*to].push(*from));
        let (mut ends, mut one_of): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for (at, local) in found.iter().enumerate() {
            let watch = space.watch(*local);
            let same = |other: &usize| watch.is_some() && space.watch(found[*other]) == watch;
            let known = one_of.iter().position(same);
            ends.push(known.unwrap_or(one_of.len()));
            if known.is_none() {
                one_of.push(at);
            }
        }
        let states = found.iter().map(|local| Arc::clone(space.state(*local))).collect();
        Alone { actor: ActorId(place as u16), states, before, ends, one_of }
    }

    fn distances(&self) -> Distances<M> {
        let columns: Vec<Vec<u16>> = (0..self.one_of.len()).map(|end| self.away_from(end)).collect();
        let row = |state: usize| columns.iter().map(|column| column[state]).collect();
        self.states.iter().enumerate().map(|(at, state)| (Arc::clone(state), row(at))).collect()
    }

    /// How many deliveries each state is away from an end.
    fn away_from(&self, end: usize) -> Vec<u16> {
        let mut away = vec![NEVER; self.states.len()];
        let mut queue: VecDeque<usize> =
            (0..self.states.len()).filter(|state| self.ends[*state] == end).collect();
        queue.iter().for_each(|state| away[*state] = 0);
        while let Some(state) = queue.pop_front() {
            for &before in &self.before[state] {
                if away[before] == NEVER {
                    away[before] = away[state].saturating_add(1).min(NEVER - 1);
                    queue.push_back(before);
                }
            }
        }
        away
    }
}
