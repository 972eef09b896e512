//! What was kept of an execution, with what the model needs besides.
//!
//! The causal past of a violation is what logs say happened before it. Code outside the actors, and memory that actors
//! share, are causes that no log tells of: the piece of code that sent a kept message may have run in a step that was
//! left out. The model has these causes, so with it the part is made whole: where it cannot follow the part, steps that
//! were left out come back.

mod needed;

use std::collections::VecDeque;

use demi_schemas::NetworkRule;
use demi_schemas::schedule::Schedule;
use rustc_hash::FxHashMap;

use crate::follow::follow;
use crate::model::Model;
use crate::names::OUTSIDE;
use crate::options::ReplayOptions;
use crate::pending::Pending;
use crate::run::Run;
use crate::script::{Act, Script};
use crate::sim::{Did, Simulator};
use needed::add_needed;

/// A part of an execution that the model follows.
#[derive(Clone, Debug)]
pub struct Part {
    /// Positions among the acts of the whole execution's script, in an order that the model follows.
    pub acts: Vec<(usize, Act)>,
    /// How many steps came back.
    pub added: u64,
    /// Whether the order was found by following the model.
    pub followed: bool,
}

/// Adds to what was kept of an execution what the model needs to follow it: of each actor's log a prefix, and no more
/// than is needed after what was tried. `full` is everything that was recorded, `script` the same in the simulator's
/// terms with how many acts stand before its steps.
///
/// Nothing comes back where the model can't follow the whole execution either. `None` where steps don't tell their
/// events, so that the part can't be found in the whole.
#[must_use]
pub fn complete<M: Model>(
    sim: &mut Simulator<M>,
    full: &Schedule,
    (script, started): (&Script, usize),
    kept: &Schedule,
    rule: NetworkRule,
) -> Option<Part> {
    let step = |(index, step): (usize, &demi_schemas::Step)| Some((step.event.clone()?, index + started));
    let of_event: FxHashMap<String, usize> = full.steps.iter().enumerate().filter_map(step).collect();
    let mut is_kept = vec![false; script.acts.len()];
    is_kept[..started].fill(true);
    for step in &kept.steps {
        is_kept[*of_event.get(step.event.as_ref()?)?] = true;
    }
    let order = follow(sim, full, script, rule);
    let followed = order.is_some();
    let mut order = order.map_or_else(|| script.acts.iter().copied().enumerate().collect(), |f| f.acts);
    order.retain(|(_, act)| *act != Act::Sent);
    let lanes: Vec<u16> = order.iter().map(|(_, act)| lane(act)).collect();
    let causes = causes(sim, &order, script, rule);
    let mut keep: Vec<bool> = order.iter().map(|(index, _)| is_kept[*index]).collect();
    let options = ReplayOptions { rule, strict: true, interval: u32::MAX };
    let added = add_needed(&lanes, &causes, &mut keep, |keep, last| {
        let places: Vec<usize> = (0..order.len()).filter(|&at| at <= last && keep[at]).collect();
        let mut run = Run::new(sim, full, (script, started), &options, followed);
        let acts = places.iter().map(|&at| (order[at].0, &order[at].1));
        run.all(sim, acts, true, &mut |_, _, _, _| {}).map(|first| places[first])
    });
    let mut at = 0..order.len();
    order.retain(|_| at.next().is_some_and(|at| keep[at]));
    Some(Part { acts: order, added, followed })
}

/// The log in which a step stands.
fn lane(act: &Act) -> u16 {
    match act {
        Act::Inject(..) => OUTSIDE.0,
        act => act.actor().unwrap_or(OUTSIDE).0,
    }
}

/// By delivery of the whole execution: the step that sent what it delivers. Of equal messages the oldest is delivered.
fn causes<M: Model>(
    sim: &mut Simulator<M>,
    order: &[(usize, Act)],
    script: &Script,
    rule: NetworkRule,
) -> Vec<Option<usize>> {
    let mut world = sim.empty_world();
    let mut sent: FxHashMap<Pending, VecDeque<usize>> = FxHashMap::default();
    let perform = |(at, (_, act)): (usize, &(usize, Act))| {
        let mut cause = None;
        if let Act::Deliver(want) = act {
            let index = want.locate(sim, &mut world, rule).ok()?;
            cause = sent.get_mut(&world.pending()[index]).and_then(VecDeque::pop_front);
            sim.deliver(&mut world, index, rule);
        } else {
            act.perform(sim, &mut world, &script.actions, rule).ok()?;
        }
        for did in sim.did().iter().filter(|_| !matches!(act, Act::Inject(..) | Act::Noted(_))) {
            if let Did::Sent(entry) = did {
                sent.entry(*entry).or_default().push_back(at);
            }
        }
        cause
    };
    order.iter().enumerate().map(perform).collect()
}
