//! Window search: between two points of the witness all orders of all pending messages are tried, and the rest
//! must follow (large neighbourhood search on schedules).

use std::hash::Hash;

use demi_replay::Model;
use demi_replay::script::Act;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::Xxh3;

use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::reduce::reducer::Reducer;

/// For each window of `width` deliveries, tries every way to spend fewer deliveries there and then runs the rest
/// with each policy.
pub fn search<M: Model>(reducer: &mut Reducer<'_, M>, width: usize, policies: &[Policy]) {
    let mut at = 0;
    while at + width <= reducer.best.acts.len() {
        let best = reducer.best.clone();
        let found = one(&mut reducer.engine, &best, at, width, policies);
        if reducer.keep(found) {
            at = at.saturating_sub(width);
        } else {
            at += 1;
        }
        if reducer.ended() {
            return;
        }
    }
}

fn one<M: Model>(
    engine: &mut Engine<M>,
    witness: &Shared<M>,
    at: usize,
    width: usize,
    policies: &[Policy],
) -> Option<Shared<M>> {
    let inside = &witness.acts[at..at + width];
    if !inside.iter().all(|a| a.is_delivery() && !a.is_external()) {
        return None;
    }
    let rest: Vec<Act> = witness.acts[at + width..].to_vec();
    let limit = engine.limit(witness, 0);
    let mut hasher = Xxh3::new();
    rest.hash(&mut hasher);
    let digest = hasher.digest();
    let mut seen = FxHashSet::default();
    let most = engine.worlds_at_most();
    let mut level = vec![engine.world_at(witness, at)];
    for _ in 0..width - 1 {
        let mut next = Vec::new();
        for (world, done) in level {
            for index in 0..world.pending().len() {
                if engine.meter.ended().is_some() {
                    return None;
                }
                if !engine.deliverable(&world, index) {
                    continue;
                }
                let (mut world, mut done) = (world.clone(), done.clone());
                if engine.deliver(&mut world, index, &mut done) {
                    let found = engine.first_witness(&done, crate::oracle::matcher::EXACT)?;
                    return engine.smaller(found.size, witness.size).then_some(found);
                }
                let hash = world.configuration_hash(engine.in_order(), |p| p.msg.0.into());
                if !seen.insert(hash) {
                    continue;
                }
                for policy in policies {
                    if let Some(acts) =
                        engine.run_once((&world, hash), &done, (&rest, digest), *policy, limit)
                        && let Some(found) = engine.first_witness(&acts, crate::oracle::matcher::EXACT)
                        && engine.smaller(found.size, witness.size)
                    {
                        return Some(found);
                    }
                }
                if next.len() < most {
                    next.push((world, done));
                }
            }
        }
        level = next;
        if level.len() > 400 {
            break;
        }
    }
    None
}
