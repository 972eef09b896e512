//! What an executed schedule tells of others: the races in it, and what could have happened in it and did not.

use demi_replay::{Model, network};
use demi_schemas::NetworkRule;

use super::races::Order;
use super::step::{Named, Step, Tracked};
use super::wakeup::weak_initial;
use super::{Explorer, Guide};
use crate::oracle::snapshots::Node;

impl<M: Model, G: Guide<M>> Explorer<'_, M, G> {
    /// Reads the races of an executed schedule and opens the branches that reverse them.
    pub(super) fn reverse(&mut self, way: &[Node], steps: &[Step], end: Option<&Tracked<M>>) {
        let order = Order::of(steps);
        for later in 1..steps.len() {
            for earlier in order.races(steps, later) {
                match self.places[way[later] as usize].entry {
                    // Another place could not tell.
                    Some(_) if steps[later].place != steps[earlier].place => {
                        self.wake(way, steps, &order, (earlier, later), steps[later]);
                    }
                    Some(entry) => {
                        let named = (entry, (steps[later].proc, steps[later].creator));
                        self.reverse_before(way, steps, &order, named, (earlier, later));
                    }
                    None => self.wake(way, steps, &order, (earlier, later), steps[later]),
                }
            }
        }
        // What never happened, for a step took it away or left it impossible, could have happened before that.
        for at in 0..way.len() {
            for lost in self.places[way[at] as usize].lost.clone() {
                self.reverse_before(way, steps, &order, lost, (at, usize::MAX));
            }
        }
        let left: Vec<Named> = end.map(|end| end.named().collect()).unwrap_or_default();
        if let Some(last) = steps.len().checked_sub(1) {
            for left in left {
                self.reverse_before(way, steps, &order, left, (last, usize::MAX));
            }
        }
    }

    /// Opens the branch in which a delivery happens before the last of the steps up to `last` that it could be
    /// exchanged with. Where it was `made` that is a step of the schedule.
    fn reverse_before(
        &mut self,
        way: &[Node],
        steps: &[Step],
        order: &Order,
        (entry, name): Named,
        (last, made): (usize, usize),
    ) {
        let step = self.ground.outlined(&(entry, name));
        let creator = steps.iter().position(|s| s.proc == step.creator);
        for at in (0..=last).rev().filter(|at| steps[*at].conflicts(&step)) {
            let behind = self.places[way[at] as usize]
                .entry
                .is_some_and(|e| self.ground.rule == NetworkRule::Fifo && network::same_channel(&e, &entry));
            if behind || creator.is_some_and(|c| c == at || order.is_before(at, c)) {
                return;
            }
            let Some(world) = self.world(before(way, at)) else { return };
            if let Some(instead) = self.ground.instead(&world.world, &entry, step) {
                self.wake(way, steps, order, (at, made), instead);
                return;
            }
        }
    }

    /// Opens the branch in which `instead` happens before the step `at`, unless that is covered.
    fn wake(
        &mut self,
        way: &[Node],
        steps: &[Step],
        order: &Order,
        (at, made): (usize, usize),
        instead: Step,
    ) {
        let mut sequence = order.apart(steps, at, made);
        sequence.push(instead);
        let mut node = before(way, at);
        // Where a step that is taken already begins it, the rest is a matter of what follows that: steps that slept
        // there may have told of it, and nobody else will.
        loop {
            let place = &mut self.places[node as usize];
            let full = place.depth >= self.limits.depth;
            if full || sequence.is_empty() || place.sleep.iter().any(|step| weak_initial(step, &sequence)) {
                return;
            }
            match place.taken.iter().find(|(step, _)| weak_initial(step, &sequence)) {
                Some((step, child)) => {
                    sequence.retain(|s| s.proc != step.proc);
                    node = *child;
                }
                None => break,
            }
        }
        if let Some(proc) = self.places[node as usize].wakeup.insert(&sequence)
            && let Some(world) = self.world(node)
        {
            self.wait(node, proc, &world);
        }
    }
}

/// The node before a step of a way.
fn before(way: &[Node], at: usize) -> Node {
    if at == 0 { 0 } else { way[at - 1] }
}
