//! A tree of worlds along explored schedules, in bounded memory: prefixes that schedules share are not run again.
//!
//! Worlds share what they have in common (states are copied on write), so a node costs little. What was not used for
//! longest goes first; the root stays, so that whatever is gone can be made again from the nearest ancestor.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A place in the tree. Parents have smaller numbers than their children.
pub type Node = u32;

/// Worlds by place in the tree.
#[derive(Debug)]
pub struct Snapshots<W> {
    root: W,
    kept: FxHashMap<Node, (u64, W)>,
    by_use: BTreeMap<u64, Node>,
    clock: u64,
    capacity: usize,
    /// How often a world was asked for, how often it was there, and how many steps were made again.
    pub uses: Uses,
}

/// What the tree was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Worlds asked for.
    pub asked: u64,
    /// Worlds that were there.
    pub there: u64,
    /// Steps made again to get at the others.
    pub again: u64,
}

impl<W: Clone> Snapshots<W> {
    /// A tree whose root, node 0, has this world; at most `capacity` others are kept.
    #[must_use]
    pub fn new(root: W, capacity: usize) -> Self {
        Snapshots {
            root,
            kept: FxHashMap::default(),
            by_use: BTreeMap::new(),
            clock: 0,
            capacity: capacity.max(1),
            uses: Uses::default(),
        }
    }

    /// Keeps the world of a node.
    pub fn put(&mut self, node: Node, world: W) {
        if node == 0 {
            return;
        }
        self.clock += 1;
        if let Some((used, _)) = self.kept.insert(node, (self.clock, world)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.clock, node);
        while self.kept.len() > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.kept.remove(&oldest);
        }
    }

    /// The world of a node, if it is there.
    fn look(&mut self, node: Node) -> Option<W> {
        if node == 0 {
            return Some(self.root.clone());
        }
        let (used, world) = self.kept.get_mut(&node)?;
        self.clock += 1;
        self.by_use.remove(used);
        *used = self.clock;
        self.by_use.insert(self.clock, node);
        Some(world.clone())
    }

    /// The world of a node. Where it is gone, `step` makes the step that leads to a node from the world of its
    /// `parent`, as often as needed. Nothing if `step` fails.
    pub fn get(
        &mut self,
        node: Node,
        parent: impl Fn(Node) -> Node,
        mut step: impl FnMut(Node, W) -> Option<W>,
    ) -> Option<W> {
        self.uses.asked += 1;
        if let Some(world) = self.look(node) {
            self.uses.there += 1;
            return Some(world);
        }
        let (mut missing, mut at) = (vec![node], parent(node));
        let mut world = loop {
            if let Some(world) = self.look(at) {
                break world;
            }
            missing.push(at);
            at = parent(at);
        };
        for &node in missing.iter().rev() {
            self.uses.again += 1;
            world = step(node, world)?;
        }
        self.put(node, world.clone());
        Some(world)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
mod tests {
    use super::*;

    /// The world of a node is the list of nodes on the way to it; the tree is a path with a branch at each node.
    fn way(node: Node) -> Vec<Node> {
        let mut way = vec![];
        let mut at = node;
        while at != 0 {
            way.push(at);
            at = parent(at);
        }
        way.reverse();
        way
    }

    fn parent(node: Node) -> Node {
        node.saturating_sub(2)
    }

    #[test]
    fn what_is_gone_is_made_again() {
        for capacity in [1, 2, 5, 100] {
            let mut tree = Snapshots::new(vec![], capacity);
            for node in 1..60 {
                tree.put(node, way(node));
                assert!(tree.kept.len() <= capacity && tree.kept.len() == tree.by_use.len());
            }
            for node in (0..60).chain((0..60).rev()) {
                let found = tree.get(node, parent, |n, mut w| {
                    w.push(n);
                    Some(w)
                });
                assert_eq!(found.unwrap(), way(node));
            }
            assert_eq!(tree.uses.again == 0, capacity == 100);
        }
    }

    #[test]
    fn what_is_used_stays() {
        let mut tree = Snapshots::new(0, 2);
        tree.put(1, 10);
        tree.put(2, 20);
        assert_eq!(tree.look(1), Some(10));
        tree.put(3, 30);
        assert_eq!((tree.look(1), tree.look(2), tree.look(3)), (Some(10), None, Some(30)));
    }
}
