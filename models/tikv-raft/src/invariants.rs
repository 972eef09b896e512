//! What must never happen, each thing in one configuration alone.

use demi_replay::{ActorId, View, Violation};

use crate::client::Client;
use crate::node::Node;
use crate::settings::Invariant;
use crate::state::State;

type Named<'a, T> = (ActorId, &'a T);

/// A check: who breaks it.
type Check = fn(&[Named<'_, Node>], Option<Named<'_, Client>>) -> Option<Vec<ActorId>>;

const CHECKS: [Check; 7] = [
    |nodes, _| pair(nodes, |a, b| a.leads() && b.leads() && term(a) == term(b)),
    |nodes, _| pair(nodes, logs_differ),
    |nodes, _| pair(nodes, applied_differ),
    |nodes, _| pair(nodes, |a, b| lacks_applied(a, b) || lacks_applied(b, a)),
    |nodes, client| lost_write(nodes, client?),
    |_, client| client.filter(|(_, client)| client.stale.is_some()).map(|(actor, _)| vec![actor]),
    |nodes, _| nodes.iter().find(|(_, node)| node.died.is_some()).map(|(actor, _)| vec![*actor]),
];

/// Checks a configuration of these nodes and this client.
pub(crate) fn check(
    (nodes, client): (&[ActorId], ActorId),
    invariants: &[Invariant],
    view: &View<'_, State>,
    found: &mut Vec<Violation>,
) {
    let node = |&actor: &ActorId| Some((actor, view.state(actor)?.node()?));
    let nodes: Vec<_> = nodes.iter().filter_map(node).collect();
    let client = view.state(client).and_then(State::client).map(|state| (client, state));
    for invariant in invariants {
        if let Some(affected) = CHECKS[invariant.number()](&nodes, client) {
            found.push(Violation { fingerprint: invariant.name().into(), affected });
        }
    }
}

/// The first two nodes that break it, of those that work.
fn pair(nodes: &[Named<'_, Node>], breaks: impl Fn(&Node, &Node) -> bool) -> Option<Vec<ActorId>> {
    let working: Vec<_> = nodes.iter().filter(|(_, node)| node.died.is_none()).collect();
    for (at, (one, a)) in working.iter().enumerate() {
        for (other, b) in &working[at + 1..] {
            if breaks(a, b) {
                return Some(vec![*one, *other]);
            }
        }
    }
    None
}

fn term(node: &Node) -> u64 {
    node.disk.written.hard.term
}

/// Two logs have an entry with the same index and term, and differ up to there.
fn logs_differ(a: &Node, b: &Node) -> bool {
    let (a, b) = (&a.disk.written.entries, &b.disk.written.entries);
    let (low, high) = (a.base().max(b.base()), a.last().min(b.last()));
    let common = (low..=high).rev().find(|&index| a.term(index) == b.term(index));
    common.is_some_and(|index| a.chain(index) != b.chain(index))
}

/// Two nodes applied something else at the same index.
fn applied_differ(a: &Node, b: &Node) -> bool {
    let (a, b) = (&a.disk.written.application, &b.disk.written.application);
    let last = a.index().min(b.index());
    last > 0 && a.get(last) != b.get(last)
}

/// A leader whose term is not older than the other node's lacks something that the other has applied: what that node
/// applied was committed in its term or before.
fn lacks_applied(leader: &Node, other: &Node) -> bool {
    let applied = &other.disk.written.application;
    let (Some(last), true) = (applied.last(), leader.leads() && term(leader) >= term(other)) else {
        return false;
    };
    !has(leader, applied.index(), |chain, _| chain == Some(last.chain))
}

/// A leader whose term is not older than that in which a write was acknowledged lacks the write, or the client was told two
/// things.
fn lost_write(nodes: &[Named<'_, Node>], (actor, client): Named<'_, Client>) -> Option<Vec<ActorId>> {
    if client.twice.is_some() {
        return Some(vec![actor]);
    }
    let lacks = |node: &Node| {
        let known = client.acknowledged.iter().filter(|(_, (_, acknowledged))| term(node) >= *acknowledged);
        let mut known = known.map(|(&index, &(write, _))| (index, write));
        known.any(|(index, write)| !has(node, index, |_, found| found == Some(write)))
    };
    let lost = nodes.iter().find(|(_, node)| node.died.is_none() && node.leads() && lacks(node));
    lost.map(|(node, _)| vec![*node, actor])
}

/// Whether what a node has at an index, in its log or applied, is that: a digest up to there and a write.
fn has(node: &Node, index: u64, is: impl Fn(Option<u64>, Option<u64>) -> bool) -> bool {
    let stored = &node.disk.written;
    if let Some(slot) = stored.entries.get(index) {
        let write = <[u8; 8]>::try_from(&slot.entry.data[..]).ok().map(u64::from_be_bytes);
        return is(Some(slot.chain), write);
    }
    stored.application.get(index).is_some_and(|applied| is(Some(applied.chain), applied.write))
}
