//! Prioritized backtracks (TFB, NSDI'16 section 4): where several pending messages could serve a wanted step, the
//! ones not chosen are tried too, deepest first, so that schedules near the original come first.

use std::collections::BinaryHeap;

use demi_replay::script::Act;
use demi_replay::{Model, World};
use rustc_hash::FxHashSet;

use super::chunks;
use crate::oracle::engine::Engine;
use crate::oracle::matcher::{Blocker, Matcher, Policy};
use crate::oracle::witness::Shared;
use crate::reduce::reducer::Reducer;

/// A way to go on that was not chosen.
struct Branch<M: Model> {
    depth: usize,
    order: usize,
    world: World<M>,
    done: Vec<Act>,
    next: usize,
}

impl<M: Model> PartialEq for Branch<M> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<M: Model> Eq for Branch<M> {}
impl<M: Model> PartialOrd for Branch<M> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<M: Model> Ord for Branch<M> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Deepest first; of equal depth the one found first.
        (self.depth, std::cmp::Reverse(self.order)).cmp(&(other.depth, std::cmp::Reverse(other.order)))
    }
}

/// Removes each internal step alone and explores the ambiguities of matching the rest by type, at most
/// `per_candidate` branches for each.
pub fn remove<M: Model>(reducer: &mut Reducer<'_, M>, per_candidate: usize) {
    let mut explored = FxHashSet::default();
    let mut at = 0;
    while at < reducer.best.acts.len() && !reducer.ended() {
        let best = reducer.best.clone();
        let found = chunks::internal(&best.acts[at])
            .then(|| candidate(&mut reducer.engine, &best, at, per_candidate, &mut explored))
            .flatten();
        if reducer.keep(found) {
            // Its steps have other places.
            explored.clear();
        } else {
            at += 1;
        }
    }
}

fn candidate<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    removed: usize,
    per_candidate: usize,
    explored: &mut FxHashSet<(u128, usize)>,
) -> Option<Shared<M>> {
    let (world, done) = engine.world_at(witness, removed);
    let mut heap = BinaryHeap::new();
    heap.push(Branch { depth: done.len(), order: 0, world, done, next: removed + 1 });
    let limit = engine.limit(witness, 0);
    let mut branches = 0;
    while let Some(branch) = heap.pop() {
        if branches >= per_candidate || engine.meter.ended().is_some() {
            return None;
        }
        branches += 1;
        engine.meter.replays += 1;
        if let Some(acts) = follow(engine, branch, &witness.acts, limit, &mut heap, explored)
            && let Some(found) = engine.first_witness(&acts, crate::oracle::matcher::EXACT)
            && engine.smaller(found.size, witness.size)
        {
            return Some(found);
        }
    }
    None
}

/// Goes on from a branch, choosing the newest of each type and noting the others as branches, once for each configuration
/// and place among the wanted acts.
fn follow<M: Model>(
    engine: &mut Engine<M>,
    branch: Branch<M>,
    wanted: &[Act],
    limit: usize,
    heap: &mut BinaryHeap<Branch<M>>,
    explored: &mut FxHashSet<(u128, usize)>,
) -> Option<Vec<Act>> {
    let Branch { mut world, mut done, next, .. } = branch;
    let policy = Policy::new(Matcher::TypeNewest, Blocker::Skip);
    let most = engine.worlds_at_most();
    for (at, act) in wanted.iter().enumerate().skip(next) {
        let Act::Deliver(want) = act else {
            if !matches!(act, Act::Inject(..)) {
                engine.follow(&mut world, act);
                done.push(*act);
            }
            continue;
        };
        if want.external.is_some() {
            let acts = engine.run(world.clone(), done.clone(), std::iter::once(act), policy, usize::MAX);
            if acts.is_some() {
                return acts;
            }
            if engine.follow(&mut world, act) {
                done.push(*act);
            }
            continue;
        }
        let sim = &engine.sim;
        let serving: Vec<usize> = (0..world.pending().len())
            .rev()
            .filter(|&i| {
                let p = &world.pending()[i];
                want.same_place(p) && sim.info(p.msg).type_ == want.type_ && engine.deliverable(&world, i)
            })
            .collect();
        let Some((&chosen, others)) = serving.split_first() else { continue };
        if !others.is_empty() {
            let hash = world.configuration_hash(engine.in_order(), |p| p.msg.0.into());
            if explored.insert((hash, at)) {
                for &other in others {
                    let (mut world, mut done) = (world.clone(), done.clone());
                    if engine.deliver(&mut world, other, &mut done) {
                        return Some(done);
                    }
                    if heap.len() >= most {
                        continue;
                    }
                    let order = heap.len();
                    heap.push(Branch { depth: done.len(), order, world, done, next: at + 1 });
                }
            }
        }
        if engine.deliver(&mut world, chosen, &mut done) {
            return Some(done);
        }
        if done.len() >= limit {
            return None;
        }
    }
    None
}
