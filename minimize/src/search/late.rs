//! Searches in which actors start at any time. What is sent to an actor that has not started is lost, which under fifo is the
//! only way to be rid of a message that stands before another one.

use std::sync::Arc;

use demi_replay::model::DistanceOf;
use demi_replay::script::Act;
use demi_replay::{Model, OUTSIDE, Pending, PendingKind, Status, World};
use demi_schemas::NetworkRule;

use super::faults::Faults;
use super::layers::{End, Limits};
use super::{along, layers};
use crate::oracle::engine::Engine;
use crate::oracle::witness::Shared;

/// A violating execution over some external events, which need not violate, with at most `limit` deliveries, the actors
/// starting at any time; and whether the search came to its end. Not many more than `most` configurations are visited.
pub fn late<M: Model>(
    engine: &mut Engine<M>,
    acts: &[Act],
    (limit, most): (usize, u64),
    jobs: usize,
) -> (Option<Shared<M>>, bool) {
    let Some(faults) = Faults::with_starts(acts) else { return (None, false) };
    let root = nobody(engine, acts);
    let limits = Limits { deliveries: limit, states: most, width: None, outside: None };
    let ended = layers(engine, (&root, &faults), None, limits, jobs);
    engine.meter.executed += ended.states;
    engine.meter.replays += 1;
    match ended.end {
        End::Found(path) => (along(engine, root, (Vec::new(), &faults), &path), false),
        End::Nothing => (None, !ended.cut),
        End::Stopped(..) => (None, false),
    }
}

/// How many configurations there are on the ways of at most `limit` deliveries in which these actors are started, all recorded
/// messages from outside may be taken, and messages come in any order, if none of the ways violates; nothing if one does, or if there are
/// many more than `most`. What holds then holds of executions under any network rule in which no other actors are
/// started, and these at any time ([`none_in_any_order`](super::none_in_any_order)).
pub fn none_with<M: Model>(
    engine: &mut Engine<M>,
    (starts, recorded): (&[Act], &[Act]),
    bound: Option<&Arc<DistanceOf<M>>>,
    (limit, most): (usize, u64),
    jobs: usize,
) -> Option<u64> {
    let mut world = engine.sim.empty_world();
    for act in starts {
        engine.follow(&mut world, act);
    }
    let root = with_outside(engine, &world, recorded);
    let limits = Limits { deliveries: limit, states: most, width: None, outside: None };
    let rule = std::mem::replace(&mut engine.rule, NetworkRule::Unordered);
    let ended = layers(engine, (&root, &Faults::default()), bound, limits, jobs);
    engine.rule = rule;
    engine.meter.executed += ended.states;
    (matches!(ended.end, End::Nothing) && !ended.cut).then_some(ended.states)
}

/// Nobody started, and all messages from outside pending.
fn nobody<M: Model>(engine: &mut Engine<M>, acts: &[Act]) -> World<M> {
    let world = engine.sim.empty_world();
    with_outside(engine, &world, acts)
}

/// A world with all messages from outside pending, whether their receivers have started or not.
fn with_outside<M: Model>(engine: &Engine<M>, world: &World<M>, acts: &[Act]) -> World<M> {
    let mut pending = world.pending().to_vec();
    for act in acts {
        if let Act::Deliver(want) = act
            && let Some(msg) = want.external
        {
            let kind = PendingKind::External;
            let (to, channel) = (want.to, OUTSIDE);
            pending.push(Pending {
                from: OUTSIDE,
                to,
                channel,
                msg,
                kind,
                timer: 0,
                survives: false,
                via: None,
            });
        }
    }
    let actors = acts.iter().filter_map(Act::actor);
    let places = actors.flat_map(|actor| [actor, engine.sim.cell_of(actor)]).map(|actor| actor.index() + 1);
    let size = places.chain([world.actors(), world.cells().len()]).max().unwrap_or(0);
    let mut cells: Vec<Option<Arc<M::State>>> = world.cells().to_vec();
    let mut status: Vec<Status> =
        (0..world.actors()).map(|at| world.status(demi_replay::ActorId(at as u16))).collect();
    cells.resize_with(size, || None);
    status.resize(size, Status::Absent);
    World::assemble(cells, status, pending)
}
