//! The trace lattice: the shortest sub-schedule in trace order, found breadth first.
//!
//! A node is a world and a position in the witness; an edge delivers a pending message that the rest of the
//! witness can account for by type. Worlds that were reached with fewer steps or at an earlier position are not
//! entered again. It skips freely but does not reorder.

use demi_replay::script::{Act, Want};
use demi_replay::{Model, Pending, World};
use rustc_hash::FxHashMap;

use crate::oracle::engine::Engine;
use crate::reduce::reducer::Reducer;

struct Node<M: Model> {
    world: World<M>,
    position: usize,
    parent: usize,
    /// The delivery that led here.
    act: Option<Act>,
}

/// Searches the lattice of a witness's deliveries, which has no injected faults; `max_worlds` bounds the search.
pub fn search<M: Model>(reducer: &mut Reducer<'_, M>, max_worlds: usize) {
    let start = reducer.best.clone();
    let engine = &mut reducer.engine;
    let starts: Vec<Act> = start.acts.iter().filter(|a| matches!(a, Act::Start(_))).copied().collect();
    let wants: Vec<Want> = start
        .acts
        .iter()
        .filter_map(|a| match a {
            Act::Deliver(want) => Some(*want),
            _ => None,
        })
        .collect();
    let mut world = engine.sim.empty_world();
    for act in &starts {
        engine.follow(&mut world, act);
    }
    // Messages from outside are there from the beginning: taking one early or late is the search's choice.
    for want in &wants {
        if let Some(msg) = want.external {
            engine.sim.inject(&mut world, want.to, msg);
        }
    }
    engine.meter.replays += 1;
    let mut nodes = vec![Node { world, position: 0, parent: 0, act: None }];
    let mut seen: FxHashMap<u128, usize> = FxHashMap::default();
    let max_worlds = max_worlds.min(engine.worlds_at_most());
    let (mut level, mut depth, mut cleared) = (0..1, 0, 0);
    while !level.is_empty() && depth + 1 < start.size.deliveries {
        depth += 1;
        let next = nodes.len();
        for at in level {
            if engine.meter.ended().is_some() || nodes.len() > max_worlds {
                return;
            }
            if let Some(last) = expand(engine, &mut nodes, at, &wants, &mut seen) {
                let mut path = Vec::new();
                let mut node = last;
                while let Some(act) = nodes[node].act {
                    path.push(act);
                    node = nodes[node].parent;
                }
                path.reverse();
                let mut acts = starts;
                acts.extend(path);
                let found = engine.first_witness(&acts, crate::oracle::matcher::EXACT);
                reducer.keep(found);
                return;
            }
        }
        // Worlds of older levels are not needed any more, only the way back.
        for node in &mut nodes[cleared..next] {
            node.world = engine.sim.empty_world();
        }
        cleared = next;
        level = next..nodes.len();
    }
}

/// Adds the successors of a node; gives the one that violates.
fn expand<M: Model>(
    engine: &mut Engine<M>,
    nodes: &mut Vec<Node<M>>,
    at: usize,
    wants: &[Want],
    seen: &mut FxHashMap<u128, usize>,
) -> Option<usize> {
    let from = nodes[at].position;
    let pending: Vec<Pending> = nodes[at].world.pending().to_vec();
    for (index, entry) in pending.iter().enumerate() {
        if pending[..index].contains(entry) || !engine.deliverable(&nodes[at].world, index) {
            continue;
        }
        let type_ = engine.sim.info(entry.msg).type_;
        let serves = |w: &Want| {
            w.same_place(entry) && w.type_ == type_ && w.external.is_none_or(|msg| msg == entry.msg)
        };
        let Some(found) = wants[from..].iter().position(serves) else { continue };
        let position = from + found + 1;
        let mut world = nodes[at].world.clone();
        let mut act = Vec::with_capacity(1);
        let violated = engine.deliver(&mut world, index, &mut act);
        if !violated {
            let sim = &engine.sim;
            let hash = world.configuration_hash(engine.in_order(), |p| sim.content(p));
            match seen.get_mut(&hash) {
                Some(best) if *best <= position => continue,
                Some(best) => *best = position,
                None => {
                    seen.insert(hash, position);
                }
            }
        }
        nodes.push(Node { world, position, parent: at, act: act.pop() });
        if violated {
            return Some(nodes.len() - 1);
        }
    }
    None
}
