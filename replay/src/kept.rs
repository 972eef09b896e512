//! What was kept of an execution, with what the model needs besides.
//!
//! The causal past of a violation is what logs say happened before it. Code outside the actors, and memory that actors
//! share, are causes that no log tells of: the piece of code that sent a kept message may have run in a step that was
//! left out. The model has these causes, so with it the part is made whole: where it cannot follow the part, steps that
//! were left out come back.

use std::collections::BTreeMap;

use demi_schemas::NetworkRule;
use demi_schemas::schedule::Schedule;
use rustc_hash::FxHashMap;

use crate::follow::follow;
use crate::model::Model;
use crate::names::OUTSIDE;
use crate::replay::ReplayOptions;
use crate::run::Run;
use crate::script::{Act, Script};
use crate::sim::Simulator;

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
    let mut keep: Vec<bool> = order.iter().map(|(index, _)| is_kept[*index]).collect();
    let options = ReplayOptions { rule, strict: true, interval: u32::MAX };
    let added = add_needed(&lanes, &mut keep, |keep| {
        let places: Vec<usize> = (0..order.len()).filter(|&at| keep[at]).collect();
        let mut run = Run::new(sim, full, (script, started), &options, followed);
        let acts = places.iter().map(|&at| (order[at].0, &order[at].1));
        run.all(sim, acts, true).map(|first| places[first])
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

/// Brings back steps that were left out until `diverges`, which gives the first step that can't be followed, finds none,
/// or nothing that stands before that step is left out. `lanes` tells each step's log. Gives how many came back.
fn add_needed(lanes: &[u16], keep: &mut [bool], mut diverges: impl FnMut(&[bool]) -> Option<usize>) -> u64 {
    let mut added = 0;
    let mut first = diverges(keep);
    while let Some(at) = first {
        let mut left_out: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        (0..at)
            .filter(|&step| !keep[step])
            .for_each(|step| left_out.entry(lanes[step]).or_default().push(step));
        let mut left_out: Vec<Vec<usize>> = left_out.into_values().collect();
        // First the logs of which the most is left out: most of all is saved where these are not needed.
        left_out.sort_by_key(|steps| std::cmp::Reverse(steps.len()));
        let mut takes: Vec<usize> = left_out.iter().map(Vec::len).collect();
        let with = |keep: &[bool], takes: &[usize]| {
            let mut keep = keep.to_vec();
            let back = left_out.iter().zip(takes).flat_map(|(steps, &take)| &steps[..take]);
            back.for_each(|&step| keep[step] = true);
            keep
        };
        let mut passes = |takes: &[usize]| match diverges(&with(keep, takes)) {
            Some(next) => (next > at).then_some(Some(next)),
            None => Some(None),
        };
        let Some(mut next) = passes(&takes).filter(|_| !takes.is_empty()) else { break };
        loop {
            let before = takes.clone();
            for log in 0..takes.len() {
                // The shortest prefix that is enough, taking for granted that a longer one than one that is enough is,
                // too.
                let (mut least, mut enough, mut middle) = (0, takes[log], 0);
                while least < enough {
                    takes[log] = middle;
                    match passes(&takes) {
                        Some(after) => (enough, next) = (middle, after),
                        None => least = middle + 1,
                    }
                    middle = usize::midpoint(least, enough);
                }
                takes[log] = enough;
            }
            // What one log no longer needs another may not need any more either.
            if takes == before {
                break;
            }
        }
        keep.copy_from_slice(&with(keep, &takes));
        added += takes.iter().sum::<usize>() as u64;
        first = next;
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps of three logs, what each needs, which are kept, and one that never can be followed.
    fn executions() -> impl Strategy<Value = (Vec<u16>, Vec<Vec<usize>>, Vec<bool>, Option<usize>)> {
        let step =
            (0_u16..3, proptest::collection::vec(any::<proptest::sample::Index>(), 0..3), any::<bool>());
        let steps = proptest::collection::vec(step, 1..25);
        (steps, proptest::option::of(0_usize..25)).prop_map(|(steps, wrong)| {
            let lanes: Vec<u16> = steps.iter().map(|(lane, _, _)| *lane).collect();
            let needs = steps.iter().enumerate().map(|(at, (_, needs, _))| {
                let earlier = needs.iter().filter(|_| at > 0);
                earlier.map(|index| index.index(at)).collect()
            });
            let needs = needs.collect();
            // Of each log a prefix is kept.
            let mut open = [true; 3];
            let kept = steps.iter().map(|(lane, _, kept)| {
                open[usize::from(*lane)] &= kept;
                open[usize::from(*lane)]
            });
            (lanes, needs, kept.collect(), wrong)
        })
    }

    /// The least set with all of `keep` in which each step has what it needs and each log is a prefix.
    fn least(lanes: &[u16], needs: &[Vec<usize>], keep: &[bool]) -> Vec<bool> {
        let mut all = keep.to_vec();
        loop {
            let before = all.clone();
            for at in 0..all.len() {
                if all[at] {
                    needs[at].iter().for_each(|&need| all[need] = true);
                    (0..at).filter(|&other| lanes[other] == lanes[at]).for_each(|other| all[other] = true);
                }
            }
            if all == before {
                return all;
            }
        }
    }

    proptest! {
        #[test]
        fn what_comes_back_is_enough_and_a_prefix_of_each_log(
            (lanes, needs, kept, wrong) in executions()
        ) {
            let diverges = |keep: &[bool]| (0..keep.len())
                .find(|&at| keep[at] && (Some(at) == wrong || needs[at].iter().any(|&need| !keep[need])));
            let mut keep = kept.clone();
            let added = add_needed(&lanes, &mut keep, diverges);
            prop_assert!(kept.iter().zip(&keep).all(|(before, after)| !before || *after));
            let count = |keep: &[bool]| keep.iter().filter(|k| **k).count();
            prop_assert_eq!(added as usize, count(&keep) - count(&kept));
            for at in 0..keep.len() {
                prop_assert!(!keep[at] || (0..at).all(|other| lanes[other] != lanes[at] || keep[other]));
            }
            let least = least(&lanes, &needs, &kept);
            // Where the whole can't be followed nothing is promised.
            if wrong.is_none_or(|wrong| wrong >= lanes.len()) {
                prop_assert_eq!(diverges(&keep), None);
                prop_assert!(least.iter().zip(&keep).all(|(needed, there)| !needed || *there));
                // Nothing comes back where nothing is missing.
                prop_assert!(least != kept || keep == kept);
            }
        }
    }
}
