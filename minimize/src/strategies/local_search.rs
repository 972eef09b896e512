//! Iterated local search around a witness: disturb it a little, let the rest follow, reduce what still violates, and
//! go on from there if it is no larger (Lourenço, Martin and Stützle, "Iterated local search", 2003).
//!
//! Reduction ends where no removal helps, and other runs of the same bug end elsewhere: at the same size on a plateau,
//! or a little higher. A disturbance makes what no removal makes: it delivers early or late, lets chance deliver a
//! few things more, gives the part of one actor to another, or brings a message from outside or a fault that the witness has
//! not got: a restart may take the place of many deliveries. Equal results are taken, so that the search wanders over a plateau and does not stand on it.

use demi_replay::script::Act;
use demi_replay::{ActorId, Model, World};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::oracle::engine::Engine;
use crate::oracle::matcher::{EXACT, Policy};
use crate::oracle::witness::Shared;
use crate::reduce::reducer::Reducer;

/// Most disturbances of one kick.
const MAX_CHANGES: u32 = 3;
/// Most steps that chance adds in one disturbance.
const MAX_ADDED: usize = 5;
/// How far a step is moved at most.
const MAX_MOVE: usize = 12;
/// Kicks without gain after which the search begins again at the best.
const RETURN: u32 = 150;

/// Searches near the reducer's best witness until `deliveries` more were executed. `pool` holds the external events
/// of the recorded execution in order. Depends on nothing but its arguments.
pub fn search<M: Model>(
    reducer: &mut Reducer<'_, M>,
    pool: &[Act],
    policies: &[Policy],
    deliveries: u64,
    rng: &mut ChaCha8Rng,
) {
    let end = reducer.engine.meter.executed + deliveries;
    let actors: Vec<ActorId> = pool.iter().filter(|a| a.is_external()).filter_map(Act::actor).collect();
    let mut best = reducer.best.clone();
    let mut here = best.clone();
    let mut idle = 0;
    while reducer.engine.meter.executed < end && !reducer.ended() {
        let Some(found) = kick(&mut reducer.engine, &here, pool, &actors, policies, rng) else { continue };
        // What is reduced is worked on by itself; the reducer's best is only what beats it.
        reducer.best = found;
        reducer.descend(policies);
        let found = std::mem::replace(&mut reducer.best, best.clone());
        let key = |w: &Shared<M>| reducer.engine.objective.key(w.size);
        if key(&found) <= key(&here) && found.acts != here.acts {
            here = found.clone();
        }
        if reducer.keep(Some(found)) {
            best = reducer.best.clone();
            idle = 0;
        } else {
            idle += 1;
        }
        if idle >= RETURN {
            (idle, here) = (0, best.clone());
        }
    }
}

/// Disturbs a witness at a random place and lets the rest follow with a random policy; gives what violates.
fn kick<M: Model>(
    engine: &mut Engine<M>,
    here: &Shared<M>,
    pool: &[Act],
    actors: &[ActorId],
    policies: &[Policy],
    rng: &mut ChaCha8Rng,
) -> Option<Shared<M>> {
    let at = rng.random_range(here.pinned.min(here.acts.len() - 1)..here.acts.len());
    let (mut world, mut done) = engine.world_at(here, at);
    let mut rest: Vec<Act> = here.acts[at..].to_vec();
    let policy = *policies.choose(rng)?;
    let most = here.acts.len() + here.acts.len() / 2 + 8;
    for _ in 0..rng.random_range(1..=MAX_CHANGES) {
        match rng.random_range(0..7) {
            0 => {
                if wander(engine, &mut world, &mut done, rng) {
                    return engine.first_witness(&done, EXACT);
                }
            }
            1 => {
                let from = rng.random_range(0..rest.len());
                let to = rng.random_range(from.saturating_sub(MAX_MOVE)..=from);
                let act = rest.remove(from);
                rest.insert(to, act);
            }
            2 => {
                let from = rng.random_range(0..rest.len());
                let act = rest.remove(from);
                rest.insert((from + rng.random_range(1..=MAX_MOVE)).min(rest.len()), act);
            }
            3 => {
                let gone = rng.random_range(0..rest.len());
                // Faults and code outside the actors go together with what they belong to; reduction sees to that.
                if rest[gone].is_delivery() {
                    rest.remove(gone);
                }
            }
            4 => {
                // An actor that starts late, a client that speaks early: messages may be lost or overtaken by it.
                let outside: Vec<usize> = (0..rest.len()).filter(|&i| rest[i].is_external()).collect();
                let Some(&from) = outside.choose(rng) else { continue };
                let act = rest.remove(from);
                rest.insert(rng.random_range(0..=rest.len()), act);
            }
            5 => {
                let (Some(&a), Some(&b)) = (actors.choose(rng), actors.choose(rng)) else { continue };
                let mut used = done.clone();
                rest = rest.iter().filter_map(|act| renamed(act, (a, b), pool, &mut used)).collect();
            }
            _ => {
                let may = |a: &&Act| a.is_delivery() || a.is_fault() || matches!(a, Act::Start(_));
                let Some(extra) = pool.choose(rng).filter(may) else {
                    continue;
                };
                let of = |acts: &[Act]| acts.iter().filter(|act| *act == extra).count();
                if of(&done) + of(&rest) < of(pool) {
                    let place = rng.random_range(0..=rest.len());
                    rest.insert(place, *extra);
                    // Somebody new is told what it is sent first.
                    let first = pool.iter().find(|a| a.is_delivery() && a.actor() == extra.actor());
                    if let (Act::Start(_), Some(first)) = (extra, first) {
                        rest.insert(place + 1, *first);
                    }
                }
            }
        }
        if rest.is_empty() {
            break;
        }
    }
    let acts = engine.run(world, done, rest.iter(), policy, most)?;
    engine.first_witness(&acts, EXACT)
}

/// Delivers a few things by chance; says whether the violation is there.
fn wander<M: Model>(
    engine: &mut Engine<M>,
    world: &mut World<M>,
    done: &mut Vec<Act>,
    rng: &mut ChaCha8Rng,
) -> bool {
    for _ in 0..rng.random_range(1..=MAX_ADDED) {
        let choices: Vec<usize> =
            (0..world.pending().len()).filter(|&i| engine.deliverable(world, i)).collect();
        let Some(&index) = choices.choose(rng) else { return false };
        if engine.deliver(world, index, done) {
            return true;
        }
    }
    false
}

/// The same act with two actors in each other's place; nothing where it is a message from outside that the recorded
/// execution has not got for the other one, beside those that are used.
fn renamed(act: &Act, (a, b): (ActorId, ActorId), pool: &[Act], used: &mut Vec<Act>) -> Option<Act> {
    let other = |actor: ActorId| match actor {
        _ if actor == a => b,
        _ if actor == b => a,
        _ => actor,
    };
    let Act::Deliver(want) = act else { return Some(*act) };
    let (from, to) = (other(want.from), other(want.to));
    if want.external.is_none() || to == want.to {
        let mut want = *want;
        (want.from, want.to) = (from, to);
        used.extend(want.external.map(|_| Act::Deliver(want)));
        return Some(Act::Deliver(want));
    }
    let fits = |act: &Act| matches!(act, Act::Deliver(w) if w.external.is_some() && w.to == to && w.type_ == want.type_);
    let of = |acts: &[Act], act: &Act| acts.iter().filter(|other| *other == act).count();
    let found = pool.iter().find(|act| fits(act) && of(used, act) < of(pool, act)).copied();
    used.extend(found);
    found
}
