//! Wakeup trees: which steps to take first in the orders that are still to be explored from a world.
//!
//! Optimal dynamic partial order reduction, Abdulla, Aronis, Jonsson and Sagonas, "Source Sets: A Foundation for
//! Optimal Dynamic Partial Order Reduction", JACM 64(4), 2017, sections 4 and 6.

use super::step::{Proc, Step};

/// Orders to explore, the oldest branch first. A branch without branches of its own ends an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// The branches.
    pub branches: Vec<Branch>,
}

/// A step and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The step.
    pub step: Step,
    /// What follows.
    pub rest: Wakeup,
}

/// How a step stands to a sequence of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The sequence can begin with it: this is its place.
    Within(usize),
    /// It is not in the sequence, and nothing there depends on it.
    Apart,
    /// Neither.
    Against,
}

/// Whether the sequence, or one that differs in the order of independent steps only, can begin with the step or be
/// preceded by it without a difference: whether it is a weak initial.
fn standing(step: &Step, sequence: &[Step]) -> Standing {
    for (at, other) in sequence.iter().enumerate() {
        if other.proc == step.proc {
            return Standing::Within(at);
        }
        if other.depends(step) {
            return Standing::Against;
        }
    }
    Standing::Apart
}

/// Whether a step is a weak initial of a sequence.
#[must_use]
pub fn weak_initial(step: &Step, sequence: &[Step]) -> bool {
    standing(step, sequence) != Standing::Against
}

impl Wakeup {
    /// Adds the sequence unless an order in the tree covers it. Gives the first step if it became a new branch at the
    /// top.
    pub fn insert(&mut self, sequence: &[Step]) -> Option<Proc> {
        let mut left = sequence.to_vec();
        let mut tree = self;
        let mut at_the_top = true;
        loop {
            let fits = tree.branches.iter().position(|b| weak_initial(&b.step, &left));
            let Some(at) = fits else { break };
            if let Standing::Within(place) = standing(&tree.branches[at].step, &left) {
                left.remove(place);
            }
            at_the_top = false;
            tree = &mut tree.branches[at].rest;
            // The end of an order: all that follows it will be explored.
            if tree.branches.is_empty() {
                return None;
            }
        }
        let mut rest = Wakeup::default();
        let first = left.first().copied()?;
        for step in left.into_iter().rev() {
            rest = Wakeup { branches: vec![Branch { step, rest }] };
        }
        tree.branches.append(&mut rest.branches);
        at_the_top.then_some(first.proc)
    }

    /// Drops the orders that can begin with one of the steps, which were taken from here meanwhile: all that follows
    /// them is explored there. (Of what only stands apart from such a step nothing is known: it is asleep then.)
    /// Says whether anything is left.
    fn prune(&mut self, taken: &[Step], prefix: &mut Vec<Step>) -> bool {
        self.branches.retain_mut(|branch| {
            prefix.push(branch.step);
            let kept = if branch.rest.branches.is_empty() {
                !taken.iter().any(|step| matches!(standing(step, prefix), Standing::Within(_)))
            } else {
                branch.rest.prune(taken, prefix)
            };
            prefix.pop();
            kept
        });
        !self.branches.is_empty()
    }

    /// Takes out the branch that begins with a step, without the orders that steps taken meanwhile cover.
    pub fn take(&mut self, proc: Proc, taken: &[Step]) -> Option<Branch> {
        let at = self.branches.iter().position(|b| b.step.proc == proc)?;
        let mut alone = Wakeup { branches: vec![self.branches.remove(at)] };
        alone.prune(taken, &mut Vec::new()).then(|| alone.branches.pop()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(proc: Proc, place: u16) -> Step {
        Step { proc, creator: 0, place, visible: false, global: false }
    }

    #[test]
    fn covered_sequences_change_nothing() {
        let (a, b, c) = (step(1, 1), step(2, 1), step(3, 2));
        let mut tree = Wakeup::default();
        assert_eq!(tree.insert(&[b, a]), Some(2));
        let before = tree.clone();
        // The same but for the order of independent steps, and something more.
        assert_eq!(tree.insert(&[c, b, a]), None);
        assert_eq!(tree.insert(&[b, c, a]), None);
        assert_eq!(tree, before);
        assert_eq!(tree.insert(&[a, c]), Some(1));
        assert_eq!(tree.branches.len(), 2);
    }

    #[test]
    fn what_shares_a_beginning_shares_the_branch() {
        let (a, b, c) = (step(1, 1), step(2, 2), step(3, 2));
        let mut tree = Wakeup::default();
        tree.insert(&[a, b, c]);
        assert_eq!(tree.insert(&[a, c, b]), None);
        assert_eq!((tree.branches.len(), tree.branches[0].rest.branches.len()), (1, 2));
    }

    #[test]
    fn what_was_taken_meanwhile_is_dropped() {
        let (a, b, c) = (step(1, 1), step(2, 1), step(3, 2));
        let mut tree = Wakeup::default();
        tree.insert(&[a, c, b]);
        assert!(tree.clone().take(1, &[c]).is_none());
        assert!(tree.clone().take(1, &[b]).is_some());
        assert!(tree.clone().take(1, &[step(4, 3)]).is_some());
        assert!(tree.take(2, &[]).is_none());
    }

    #[test]
    fn creators_come_first() {
        let made = Step { creator: 1, ..step(2, 2) };
        assert!(!weak_initial(&made, &[step(1, 1), made]));
        assert!(weak_initial(&step(1, 1), &[step(1, 1), made]));
    }
}
