//! Actors that cannot go on: they wait for each other, or for an answer that nobody is going to send.

use super::Simulator;
use crate::guard;
use crate::model::{Model, Status, Violation};
use crate::names::ActorId;
use crate::world::World;

/// The invariant that actors which wait for each other break.
const DEADLOCK: &str = "Deadlock";
/// The invariant that actors break which wait where nothing is pending.
const STUCK: &str = "Stuck";

impl<M: Model> Simulator<M> {
    /// Whether actors that cannot go on, or get nowhere, are a violation: `deadlock`, `livelock` or `hog` of the scenario. What is pending
    /// then decides too, and not states alone.
    #[must_use]
    pub fn stuck_counts(&self) -> bool {
        self.stuck_counts || self.livelock_counts || self.hog_counts.is_some()
    }

    /// The actors that can never go on by themselves, in the order of their ids: each takes nothing that is pending, and
    /// waits for another one of them ([`Runtime::waits_for`](crate::Runtime::waits_for)).
    #[must_use]
    pub fn deadlocked(&self, world: &World<M>) -> Vec<ActorId> {
        self.circles(world).into_iter().map(|(actor, _)| actor).collect()
    }

    /// Who waits for whom.
    fn waits(&self, world: &World<M>) -> Vec<(ActorId, Vec<ActorId>)> {
        let view = self.view(world);
        let waits = |actor| {
            let state = view.state(actor)?;
            let others = guard::or(Vec::new(), || self.model.runtime().waits_for(state, actor));
            (!others.is_empty()).then_some((actor, others))
        };
        view.actors().filter_map(waits).collect()
    }

    /// The actors that can never go on by themselves, each with those of them that it waits for.
    fn circles(&self, world: &World<M>) -> Vec<(ActorId, Vec<ActorId>)> {
        let takes = |actor| world.pending().iter().any(|p| p.to == actor && self.takes(world, p));
        let mut waiting = self.waits(world);
        waiting.retain(|(actor, _)| !takes(*actor));
        loop {
            let stuck: Vec<ActorId> = waiting.iter().map(|(actor, _)| *actor).collect();
            waiting.iter_mut().for_each(|(_, others)| others.retain(|other| stuck.contains(other)));
            waiting.retain(|(_, others)| !others.is_empty());
            if waiting.len() == stuck.len() {
                return waiting;
            }
        }
    }

    /// Adds what cannot go on in a world: each circle of actors that wait for each other, named from its least actor on; or, where
    /// nothing is pending at all, those who wait.
    pub(super) fn stuck(&self, world: &World<M>, found: &mut Vec<Violation>) {
        let circles = self.circles(world);
        let mut known: Vec<Vec<ActorId>> = Vec::new();
        for (first, _) in &circles {
            // Whoever follows the first of those that each waits for comes into a circle.
            let mut way = vec![*first];
            let circle = loop {
                let last = way.last().copied().unwrap_or(*first);
                let next =
                    circles.iter().find(|(actor, _)| *actor == last).and_then(|(_, others)| others.first());
                let Some(&next) = next else { break Vec::new() };
                if let Some(at) = way.iter().position(|&actor| actor == next) {
                    break way.split_off(at);
                }
                way.push(next);
            };
            let least = circle.iter().enumerate().min_by_key(|(_, actor)| **actor).map_or(0, |(at, _)| at);
            let circle = [&circle[least..], &circle[..least]].concat();
            if !circle.is_empty() && !known.contains(&circle) {
                known.push(circle);
            }
        }
        found.extend(known.into_iter().map(|circle| self.named(DEADLOCK, circle)));
        let runs = |actor| matches!(world.status(actor), Status::Running | Status::Isolated);
        let nothing = !world.pending().iter().any(|entry| runs(entry.to) && self.takes(world, entry));
        if circles.is_empty() && nothing {
            let waiting: Vec<ActorId> = self.waits(world).into_iter().map(|(actor, _)| actor).collect();
            if !waiting.is_empty() {
                found.push(self.named(STUCK, waiting));
            }
        }
    }

    pub(super) fn named(&self, invariant: &str, actors: Vec<ActorId>) -> Violation {
        let names: Vec<&str> = actors.iter().map(|&actor| self.names.get(actor)).collect();
        Violation { fingerprint: format!("{invariant}:{}", names.join(":")), affected: actors }
    }
}
