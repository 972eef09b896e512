//! Searches where no bound leads the way: near a witness, over the kinds of its deliveries, and by a distance that knows nothing.

use demi_replay::Model;
use demi_replay::model::DistanceOf;
use demi_replay::script::Act;

use super::faults::Faults;
use super::kinds::{Alike, Kinds};
use super::layer::Lead;
use super::layers::{End, Limits};
use super::{along, layers_over, root};
use crate::oracle::engine::Engine;
use crate::oracle::witness::Shared;

/// How far a search near a witness goes.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// What makes two deliveries one kind.
    pub alike: Alike,
    /// Deliveries beyond what the witness has of each kind ([`Kinds`]), at most.
    pub beyond: u8,
    /// Configurations, not many more.
    pub states: u64,
    /// Deliveries made in each layer, not many more, from the rarest configurations ([`Lead::Rare`]); nothing for all.
    pub width: Option<u64>,
}

/// A violating execution with fewer deliveries than a witness, none of a kind more often than the witness has it, but for
/// those [`beyond`](Near::beyond), and without one of its external events; and whether the search came to its end, so that there is nothing else to find.
pub fn near<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    (near, without): (Near, Option<usize>),
    jobs: usize,
) -> (Option<Shared<M>>, bool) {
    let (acts, shorter) = (&witness.acts, witness.size.deliveries.saturating_sub(1));
    let left = acts.iter().enumerate().filter(|(at, _)| Some(*at) != without).map(|(_, act)| *act);
    let left: Vec<Act> = left.collect();
    let Some(faults) = Faults::of(&left) else { return (None, true) };
    let (starts, root) = root(engine, &left);
    let width = near.width.map(|width| (width, Lead::Rare));
    let limits = Limits { deliveries: shorter, states: near.states, width, outside: None };
    let kinds = Kinds::of(acts, near.alike, near.beyond);
    // Bounds are about executions without faults. Beams may be led by them all the same.
    let bound = engine.bound().filter(|_| faults.all() == 0 || near.width.is_some());
    let ended = layers_over(engine, (&root, &faults, kinds), bound.as_ref(), limits, jobs);
    engine.meter.executed += ended.states;
    engine.meter.replays += 1;
    match ended.end {
        End::Found(path) => (along(engine, root, (starts, &faults), &path), false),
        End::Nothing => (None, !ended.cut),
        End::Stopped(..) => (None, false),
    }
}

/// A distance for models that give none, by which beams are led that ask for no distance: everything is one delivery away.
pub fn blind<M: Model>() -> DistanceOf<M> {
    DistanceOf::<M> { sees: Box::new(|_| false), lower_bound: Box::new(|_, _| 1), heuristic: None }
}
