//! Cycles of a broken log: finding short ones, and choosing the edge to do without.

use std::collections::VecDeque;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::FxHashMap;

use super::graph::{Edge, Graph};
use crate::matching::Matching;
use crate::read::NONE;

/// Most events of a cycle that are named.
const NAMED: usize = 8;

/// The edges to drop, so that no cycle is left.
#[derive(Default)]
pub(crate) struct FeedbackArcs {
    /// Preferences; the whole channel of each goes.
    pub(crate) preferences: Vec<u32>,
    /// Messages, by their receive.
    pub(crate) receives: Vec<u32>,
    /// Messages, by their receive, that stay where another of their cycle went: any of them may be the wrong one.
    pub(crate) doubted: Vec<u32>,
    /// Events whose further causes go that are no messages, and whether these are certain ones; those only where a cycle has nothing else.
    pub(crate) clocked: Vec<(u32, bool)>,
    /// What to tell.
    pub(crate) notes: Vec<String>,
}

/// One edge of one short cycle in each knot of what is left, or (`all`) every message in every knot.
pub(crate) fn edges_to_cut(
    graph: &Graph<'_>,
    matching: &Matching,
    done: &dyn Fn(u32) -> bool,
    all: bool,
) -> FeedbackArcs {
    let left: Vec<u32> = (0..graph.units().len() as u32).filter(|&u| !done(u)).collect();
    let index: FxHashMap<u32, NodeIndex> =
        left.iter().enumerate().map(|(i, &u)| (u, NodeIndex::new(i))).collect();
    let mut rest: DiGraph<u32, Edge> = DiGraph::with_capacity(left.len(), left.len() * 2);
    left.iter().for_each(|&u| {
        rest.add_node(u);
    });
    for &u in &left {
        graph.each_edge(matching, u, |to, edge| {
            if let Some(&to) = index.get(&to) {
                rest.add_edge(index[&u], to, edge);
            }
        });
    }
    let mut cut = FeedbackArcs::default();
    for knot in tarjan_scc(&rest) {
        let mut inside = knot.clone();
        inside.sort_unstable();
        let Some(&start) = inside.first() else { continue };
        if inside.len() < 2 && rest.find_edge(start, start).is_none() {
            continue;
        }
        if all {
            let edges = inside.iter().flat_map(|&n| rest.edges(n));
            for edge in edges.filter(|e| inside.binary_search(&e.target()).is_ok()) {
                match *edge.weight() {
                    Edge::Message(receive) => cut.receives.push(receive),
                    Edge::Preference(preference) => cut.preferences.push(preference),
                    Edge::Clock(effect, certain) => cut.clocked.push((effect, certain)),
                    Edge::Log => {}
                }
            }
            cut.notes
                .push(format!("{} units are knotted in cycles; their messages were dropped", inside.len()));
            cut.clocked.sort_unstable();
            cut.clocked.dedup();
            continue;
        }
        let edges = short_cycle(&rest, &inside, start);
        let preferences =
            edges.iter().filter_map(|e| if let Edge::Preference(w) = e { Some(*w) } else { None });
        // What was never delivered may have been lost at any time: such a preference is a guess, the others are seen.
        if let Some(preference) = preferences.min_by_key(|&w| !graph.is_guess(w)) {
            cut.preferences.push(preference);
            continue;
        }
        // So is what a link tells, or a parent that may be another.
        let guesses =
            edges.iter().filter_map(|e| if let Edge::Clock(e, false) = e { Some(*e) } else { None });
        if let Some(effect) = guesses.min() {
            let name = graph.events().name(effect);
            cut.notes.push(format!("cycle: what a link or an uncertain parent of {name} tells was dropped"));
            cut.clocked.push((effect, false));
            continue;
        }
        let messages = edges.iter().filter_map(|e| if let Edge::Message(r) = e { Some(*r) } else { None });
        let messages: Vec<u32> = messages.collect();
        let rank = |&r: &u32| (matching.certain[r as usize], matching.reason[r as usize], r);
        if messages.is_empty() {
            let clocked =
                edges.iter().filter_map(|e| if let Edge::Clock(e, _) = e { Some(*e) } else { None });
            if let Some(effect) = clocked.min() {
                let name = graph.events().name(effect);
                cut.notes.push(format!(
                    "cycle without a message: what the clock or the parent of {name} tells was dropped"
                ));
                cut.clocked.push((effect, true));
            }
        }
        if let Some(weakest) = messages.iter().copied().min_by_key(rank) {
            let shown = messages.iter().take(NAMED).map(|&r| {
                let send = match matching.mate(r) {
                    NONE => matching.extra_into(r).next().map_or(r, |(cause, _)| cause),
                    mate => mate,
                };
                format!("{} -> {}", graph.events().name(send), graph.events().name(r))
            });
            let mut path = shown.collect::<Vec<_>>().join(", ");
            if messages.len() > NAMED {
                path.push_str(&format!(" and {} more", messages.len() - NAMED));
            }
            let name = graph.events().name(weakest);
            cut.notes
                .push(format!("cycle: {path}; the message received at {name} was dropped from the order"));
            cut.receives.push(weakest);
            cut.doubted.extend(messages.into_iter().filter(|receive| *receive != weakest));
        }
    }
    cut
}

/// The edges of a shortest cycle through `start`, by breadth-first search within the knot.
fn short_cycle(rest: &DiGraph<u32, Edge>, inside: &[NodeIndex], start: NodeIndex) -> Vec<Edge> {
    let mut came: FxHashMap<NodeIndex, (NodeIndex, Edge)> = FxHashMap::default();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for edge in rest.edges(node) {
            let to = edge.target();
            if to == start {
                let mut path = vec![*edge.weight()];
                let mut at = node;
                while at != start {
                    let (before, edge) = came[&at];
                    path.push(edge);
                    at = before;
                }
                path.reverse();
                return path;
            }
            if inside.binary_search(&to).is_ok() && !came.contains_key(&to) {
                came.insert(to, (node, *edge.weight()));
                queue.push_back(to);
            }
        }
    }
    Vec::new()
}
