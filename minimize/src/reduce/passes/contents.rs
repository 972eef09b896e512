//! Smaller contents: components of messages from outside that nobody needs, such as members of a bootstrap list. A
//! component that names an actor goes with the actor, which shrinks the cluster.
//!
//! Contents are no part of the size that is compared, so a smaller content is taken only where neither of the two
//! figures grows.

use std::collections::BTreeSet;

use demi_replay::Model;
use demi_replay::script::{Act, Want};

use crate::oracle::engine::Engine;
use crate::oracle::matcher::EXACT;
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::problem::text::payload_key;
use crate::reduce::reducer::Reducer;
use crate::search::{Query, Root, deepen};

/// Configurations that the search for another way without a component may visit.
const SEARCHED: u64 = 2_000_000;

/// Leaves out components one by one, each from all messages that have it, until nothing gains. Gives those that went,
/// in order.
pub fn shrink<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) -> Vec<String> {
    let mut gone = Vec::new();
    loop {
        let components = components(&reducer.engine, &reducer.best);
        let one = components.into_iter().rev().find(|c| !reducer.ended() && without(reducer, c, policies));
        match one {
            Some(component) => gone.push(component),
            None => return gone,
        }
    }
}

fn external(act: &Act) -> Option<&Want> {
    match act {
        Act::Deliver(want) if want.external.is_some() => Some(want),
        _ => None,
    }
}

/// Whether a message from outside has a component that could go.
pub fn any<M: Model>(engine: &Engine<M>, witness: &Shared<M>) -> bool {
    !components(engine, witness).is_empty()
}

fn components<M: Model>(engine: &Engine<M>, witness: &Shared<M>) -> BTreeSet<String> {
    let sim = &engine.sim;
    let messages = witness.acts.iter().filter_map(external).filter_map(|w| w.external);
    messages.flat_map(|m| sim.smaller(m)).map(|s| s.without).collect()
}

/// Tries to do without a component; keeps what is no larger in either figure.
fn without<M: Model>(reducer: &mut Reducer<'_, M>, component: &str, policies: &[Policy]) -> bool {
    let best = reducer.best.clone();
    let Some(acts) = lacking(&mut reducer.engine, &best.acts, component) else { return false };
    let most = best.acts.len() * 2 + 8;
    for policy in policies {
        if reducer.ended() {
            break;
        }
        let world = reducer.engine.sim.empty_world();
        let ran = reducer.engine.run(world, Vec::new(), acts.iter(), *policy, most);
        let Some(found) = ran.and_then(|acts| reducer.engine.first_witness(&acts, EXACT)) else { continue };
        reducer.best = found;
        reducer.descend(policies);
        if reducer.best.size == best.size || reducer.best.size.dominates(best.size) {
            let found = reducer.best.clone();
            reducer.take(found);
            return true;
        }
    }
    // With fewer actors another way may be the only one: no part of the recorded order leads there.
    let bound = reducer.engine.own_bound();
    let most = if bound.is_some() { SEARCHED } else { SEARCHED / 4 };
    let limit = best.size.deliveries;
    let query = Query::from(Root::Started).over(&acts).deliveries(limit).states(most).bound(bound.as_ref());
    let searched = deepen(&query, &mut reducer.engine);
    let found = reducer.searched(searched).and_then(|s| s.found);
    if let Some(found) = found.filter(|f| f.size == best.size || f.size.dominates(best.size)) {
        reducer.take(found);
        return true;
    }
    reducer.best = best;
    false
}

/// The acts with smaller messages, and without the actor that the component names; nothing if no message has it.
pub fn lacking<M: Model>(engine: &mut Engine<M>, acts: &[Act], component: &str) -> Option<Vec<Act>> {
    let actor = engine.sim.names().find(component);
    let mut changed = false;
    let mut left = Vec::with_capacity(acts.len());
    for act in acts {
        let of_actor = match act {
            Act::Deliver(want) => actor.is_some_and(|a| want.to == a || want.from == a),
            other => actor.is_some() && other.actor() == actor,
        };
        if of_actor {
            continue;
        }
        let Some((want, msg)) = external(act).and_then(|w| Some((w, w.external?))) else {
            left.push(*act);
            continue;
        };
        let smaller = engine.sim.smaller(msg);
        let Some(smaller) = smaller.into_iter().find(|s| s.without == component) else {
            left.push(*act);
            continue;
        };
        changed = true;
        let msg = engine.sim.intern(smaller.msg);
        let (payload, fingerprint) = (engine.sim.info(msg).payload, engine.sim.info(msg).fingerprint);
        let to = engine.sim.names().get(want.to).to_owned();
        engine.fields.insert(payload_key(&to, engine.sim.text(payload)), smaller.fields);
        left.push(Act::Deliver(Want { payload, fingerprint, external: Some(msg), ..*want }));
    }
    changed.then_some(left)
}
