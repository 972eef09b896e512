//! The shortest violating execution over given external events, by exhaustive search under a bound.
//!
//! Breadth first over configurations: each is entered once, with the fewest deliveries that reach it, and left where
//! the model's lower bound ([`Model::bound`]) says that no violation is near enough. What is left when nothing is
//! found is a proof that no shorter execution exists (A* without a queue: all edges cost one; Hart, Nilsson and Raphael
//! 1968).
//!
//! Configurations that differ only in which of some interchangeable actors is which count once ([`symmetry`]).
//!
//! Configurations are numbers ([`packed`]), handlers run once for each local state and entry ([`tables`]). The layers
//! are worked on by all threads, in batches whose order is that of hashes, so that threads do not change the result.

mod canonical;
mod faults;
mod kinds;
mod late;
mod layer;
mod layers;
mod near;
mod packed;
mod partition;
mod symmetry;
mod tables;
mod worker;

use std::sync::Arc;

use demi_replay::model::DistanceOf;
use demi_replay::script::Act;
use demi_replay::{ActorId, Model, World};
use demi_schemas::NetworkRule;

use self::faults::Faults;
pub use self::kinds::Alike;
use self::kinds::Kinds;
pub use self::layer::Lead;
use self::layers::{End, Layers, Limits, Move};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::EXACT;
use crate::oracle::witness::Shared;
use crate::problem::size::starts_late;

pub use self::late::{late, none_with};
pub use self::layers::MAX_STATES;
pub use self::near::{Near, blind, near};
pub use self::partition::bound as partition;

/// What a search came to.
#[derive(Debug)]
pub struct Searched<M: Model> {
    /// A shortest violating execution, if one was found within the limit.
    pub found: Option<Shared<M>>,
    /// No violating execution with these external events has fewer deliveries.
    pub at_least: usize,
    /// Whether the search ended by itself: then `found` is optimal, or there is nothing up to the limit.
    pub complete: bool,
    /// Configurations visited.
    pub states: u64,
    /// Why it ended otherwise.
    pub stopped: Option<&'static str>,
}

/// Searches for a violating execution over the external events of `witness` with at most `limit` deliveries, on
/// `jobs` threads. Starts come first; messages from outside may be taken and faults happen at any time, each at most
/// once.
///
/// Gives nothing if the witness has other external events than these ([`Faults::of`]).
pub fn shortest<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    bound: Option<&Arc<DistanceOf<M>>>,
    limit: usize,
    jobs: usize,
) -> Option<Searched<M>> {
    at_most(engine, &witness.acts, bound, (limit, u64::MAX), jobs)
}

/// How far a beam search goes.
#[derive(Clone, Copy, Debug)]
pub struct Beam {
    /// Most deliveries of an execution.
    pub deliveries: usize,
    /// Deliveries made in each layer, not many more.
    pub width: u64,
    /// From which configurations.
    pub lead: Lead,
    /// Most messages from outside that are taken, if it is the search's choice which.
    pub outside: Option<usize>,
}

/// A short violating execution over the external events of some acts, which need not violate, by beam search: in each
/// layer some deliveries from the configurations that come first by [`Lead`]. Nothing is proven where nothing is found,
/// unless no layer was left before its end, which is said too: then a wider beam finds nothing either, whatever leads it.
/// What is found depends on nothing but the external events, the violation and the beam.
pub fn beam<M: Model>(
    engine: &mut Engine<M>,
    acts: &[Act],
    bound: &Arc<DistanceOf<M>>,
    beam: Beam,
    jobs: usize,
) -> (Option<Shared<M>>, bool) {
    let (width, outside) = (Some((beam.width, beam.lead)), beam.outside);
    let limits = Limits { deliveries: beam.deliveries, states: u64::MAX, width, outside };
    let searched = within(engine, acts, Some(bound), limits, jobs);
    let whole = searched.as_ref().is_none_or(|searched| searched.complete);
    let Some(found) = searched.and_then(|searched| searched.found) else { return (None, whole) };
    // Who takes nothing need not start.
    let takes = |actor| found.acts.iter().any(|act| act.is_delivery() && act.actor() == actor);
    let needed = |act: &&Act| !matches!(act, Act::Start(_)) || takes(act.actor());
    let rest: Vec<Act> = found.acts.iter().filter(needed).copied().collect();
    let shorter = (rest.len() < found.acts.len()).then(|| engine.first_witness(&rest, EXACT)).flatten();
    (Some(shorter.unwrap_or(found)), whole)
}

fn at_most<M: Model>(
    engine: &mut Engine<M>,
    acts: &[Act],
    bound: Option<&Arc<DistanceOf<M>>>,
    (limit, most): (usize, u64),
    jobs: usize,
) -> Option<Searched<M>> {
    within(engine, acts, bound, Limits { deliveries: limit, states: most, width: None, outside: None }, jobs)
}

fn within<M: Model>(
    engine: &mut Engine<M>,
    acts: &[Act],
    bound: Option<&Arc<DistanceOf<M>>>,
    limits: Limits,
    jobs: usize,
) -> Option<Searched<M>> {
    let faults = Faults::of(acts)?;
    // Bounds are about executions without faults. Beams may be led by them all the same.
    let bound = bound.filter(|_| faults.all() == 0 || limits.width.is_some());
    let (limit, (starts, root)) = (limits.deliveries, root(engine, acts));
    let ended = layers(engine, (&root, &faults), bound, limits, jobs);
    engine.meter.executed += ended.states;
    let mut searched =
        Searched { found: None, at_least: 0, complete: false, states: ended.states, stopped: None };
    match ended.end {
        End::Found(path) => {
            searched.at_least = deliveries(&path);
            searched.found = along(engine, root, (starts, &faults), &path);
            searched.complete = searched.found.is_some() && !ended.cut;
        }
        End::Nothing if ended.cut => {}
        End::Nothing => (searched.at_least, searched.complete) = (limit + 1, true),
        End::Stopped(depth, why) => (searched.at_least, searched.stopped) = (depth, Some(why)),
    }
    Some(searched)
}

/// A shortest way to the violation from before act `at` of a witness, after which there are deliveries only, with at
/// most `limit` of them: the whole execution, if one was found, and whether the search was complete. Not many more than
/// `most` configurations are visited, on `jobs` threads. The message from outside at the place `without` is left out.
///
/// Gives nothing if something else than deliveries and faults follows.
pub fn ending<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    (at, without): (usize, Option<usize>),
    bound: Option<&Arc<DistanceOf<M>>>,
    (limit, most): (usize, u64),
    jobs: usize,
) -> Option<(Option<Shared<M>>, bool)> {
    let rest = &witness.acts[at..];
    let faults = Faults::of(rest).filter(|_| !rest.iter().any(|act| matches!(act, Act::Start(_))))?;
    let (mut world, acts) = engine.world_at(witness, at);
    for (place, act) in witness.acts.iter().enumerate().skip(at) {
        if let Act::Deliver(want) = act
            && let Some(msg) = want.external.filter(|_| Some(place) != without)
        {
            engine.sim.inject(&mut world, want.to, msg);
        }
    }
    engine.meter.replays += 1;
    let limits = Limits { deliveries: limit, states: most, width: None, outside: None };
    let ended = layers(engine, (&world, &faults), bound, limits, jobs);
    engine.meter.executed += ended.states;
    let End::Found(path) = ended.end else { return Some((None, matches!(ended.end, End::Nothing))) };
    let found = along(engine, world, (acts, &faults), &path);
    let whole = found.is_some();
    Some((found, whole))
}

/// The length of a shortest way from one configuration to the violation, if it has at most `limit` deliveries, and how
/// many configurations were visited.
pub fn shortest_from<M: Model>(
    engine: &Engine<M>,
    world: &World<M>,
    bound: Option<&Arc<DistanceOf<M>>>,
    limit: usize,
    jobs: usize,
) -> (Option<usize>, u64) {
    let limits = Limits { deliveries: limit, states: u64::MAX, width: None, outside: None };
    let ended = layers(engine, (world, &Faults::default()), bound, limits, jobs);
    match ended.end {
        End::Found(path) => (Some(deliveries(&path)), ended.states),
        End::Nothing | End::Stopped(..) => (None, ended.states),
    }
}

fn layers<M: Model>(
    engine: &Engine<M>,
    (root, faults): (&World<M>, &Faults),
    bound: Option<&Arc<DistanceOf<M>>>,
    limits: Limits,
    jobs: usize,
) -> layers::Ended {
    layers_over(engine, (root, faults, Kinds::default()), bound, limits, jobs)
}

fn layers_over<M: Model>(
    engine: &Engine<M>,
    (root, faults, kinds): (&World<M>, &Faults, Kinds),
    bound: Option<&Arc<DistanceOf<M>>>,
    limits: Limits,
    jobs: usize,
) -> layers::Ended {
    if engine.sim.stuck_counts() {
        // Who cannot go on is seen with what is pending, and searches ask invariants about states alone.
        let (end, names) = (End::Stopped(0, "deadlock"), engine.sim.names().len());
        return layers::Ended { end, states: 0, names, unequal: false, cut: true };
    }
    let (wanted, unbounded) = (limits.states, bound.is_none());
    let limits = Limits { states: wanted.min(engine.meter.left()), ..limits };
    let search = |renamings, jobs| {
        let (sim, target) = (engine.sim.clone(), engine.problem.target.clone());
        let apart = (renamings, faults.clone(), kinds.clone());
        Layers::new(sim, root, engine.rule, target, bound.cloned(), apart, jobs).search(limits, &engine.meter)
    };
    let alike = match faults.repeat() {
        true => Vec::new(),
        false => symmetry::renamings(&engine.sim, root, &engine.problem.target, &faults.actors()),
    };
    let with = |jobs| {
        let ended = search(alike.clone(), jobs);
        if !ended.unequal {
            return ended;
        }
        let again = search(Vec::new(), jobs);
        layers::Ended { states: ended.states + again.states, ..again }
    };
    let mut ended = with(jobs);
    if jobs > 1 && ended.names != engine.sim.names().len() {
        // Names are numbered as they come up, which threads do in no certain order.
        ended = with(1);
    }
    if let End::Stopped(_, why @ "states") = &mut ended.end {
        *why = match (limits.states < wanted, unbounded) {
            (true, _) => "budget",
            (false, true) => "no bound",
            (false, false) => "states",
        };
    }
    ended
}

/// Searches with ever higher limits until something shorter than the witness is found, which then is the shortest
/// there is, or it is proven that there is nothing, or the budget ends. Without a bound not many more than `few`
/// configurations are visited, for then the end is out of reach; with one not many more than `most`. Where an actor of the
/// witness starts late something just as long is looked for too, in which all start first.
pub fn prove<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    bound: Option<&Arc<DistanceOf<M>>>,
    (few, most): (u64, u64),
    jobs: usize,
) -> Option<Searched<M>> {
    let late = usize::from(starts_late(&witness.acts));
    let longest = (witness.size.deliveries + late).saturating_sub(1);
    over(engine, &witness.acts, bound, (longest, if bound.is_none() { few } else { most }), jobs)
}

/// How many configurations there are on the ways of at most `limit` deliveries over the external events of some acts, if
/// messages may come in any order and none of the ways violates; nothing if one does, or if there are many more than `most`.
///
/// What holds then holds of executions under any network rule in which actors start at any time: if all start first and
/// messages come in any order, whatever is sent to who has not started yet may as well never be delivered.
pub fn none_in_any_order<M: Model>(
    engine: &mut Engine<M>,
    acts: &[Act],
    bound: Option<&Arc<DistanceOf<M>>>,
    (limit, most): (usize, u64),
    jobs: usize,
) -> Option<u64> {
    let (_, world) = root(engine, acts);
    let limits = Limits { deliveries: limit, states: most, width: None, outside: None };
    let rule = std::mem::replace(&mut engine.rule, NetworkRule::Unordered);
    let ended = layers(engine, (&world, &Faults::default()), bound, limits, jobs);
    engine.rule = rule;
    engine.meter.executed += ended.states;
    matches!(ended.end, End::Nothing).then_some(ended.states)
}

/// Searches with ever higher limits, up to `limit`, for a violating execution over the external events of some acts,
/// which need not violate. Not many more than `most` configurations are visited.
pub fn over<M: Model>(
    engine: &mut Engine<M>,
    acts: &[Act],
    bound: Option<&Arc<DistanceOf<M>>>,
    (longest, most): (usize, u64),
    jobs: usize,
) -> Option<Searched<M>> {
    if bound.is_none() {
        // Limits prune nothing then: one search goes as deep as it may.
        return at_most(engine, acts, None, (longest, most), jobs);
    }
    let (_, world) = root(engine, acts);
    let first = bound.map_or(1, |bound| engine.sim.lower_bound(&world, bound).max(1));
    let first = first.min(longest + 1);
    let mut best = Searched { found: None, at_least: first, complete: false, states: 0, stopped: None };
    for limit in first..=longest {
        let left = most.saturating_sub(best.states);
        let searched = at_most(engine, acts, bound, (limit, left), jobs)?;
        best.states += searched.states;
        if !searched.complete {
            best.at_least = best.at_least.max(searched.at_least);
            best.stopped = searched.stopped;
            return Some(best);
        }
        best.at_least = limit + 1;
        if searched.found.is_some() {
            best.at_least = limit;
            best.found = searched.found;
            break;
        }
    }
    best.complete = true;
    Some(best)
}

/// The actors of some external events that are interchangeable: those that the target does not name, where the model
/// says how to rename.
pub fn interchangeable<M: Model>(engine: &mut Engine<M>, acts: &[Act]) -> Vec<ActorId> {
    let (_, world) = root(engine, acts);
    let free = symmetry::free(&engine.sim, &world, &engine.problem.target);
    let view = engine.sim.view(&world);
    let state = free.first().and_then(|actor| view.state(*actor));
    match state.and_then(|state| engine.sim.renamed_state(state, &|actor| actor)) {
        Some(_) => free,
        None => Vec::new(),
    }
}

/// All actors started and all messages from outside pending.
fn root<M: Model>(engine: &mut Engine<M>, acts: &[Act]) -> (Vec<Act>, World<M>) {
    let starts: Vec<Act> = acts.iter().filter(|a| matches!(a, Act::Start(_))).copied().collect();
    let mut world = engine.sim.empty_world();
    for act in &starts {
        engine.follow(&mut world, act);
    }
    for act in acts {
        if let Act::Deliver(want) = act
            && let Some(msg) = want.external
        {
            engine.sim.inject(&mut world, want.to, msg);
        }
    }
    (starts, world)
}

/// How many steps of a way are deliveries.
fn deliveries(path: &[Move]) -> usize {
    path.iter().filter(|step| matches!(step, Move::Deliver(_))).count()
}

/// Follows a way from a world, which some acts lead to, and has the whole verified.
fn along<M: Model>(
    engine: &mut Engine<M>,
    mut world: World<M>,
    (mut acts, faults): (Vec<Act>, &Faults),
    path: &[Move],
) -> Option<Shared<M>> {
    for step in path {
        match *step {
            Move::Deliver(index) if index < world.pending().len() => {
                engine.deliver(&mut world, index, &mut acts);
            }
            Move::Deliver(_) => return None,
            Move::Fail(number) => {
                world = faults.perform(number, &mut engine.sim, &world, engine.rule)?;
                acts.push(*faults.get(number)?);
            }
        }
    }
    engine.first_witness(&acts, EXACT)
}
