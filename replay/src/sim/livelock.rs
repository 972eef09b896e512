//! Actors that go on for ever and get nowhere: livelock, and actors that give way to nobody.

use std::sync::Mutex;

use super::Simulator;
use crate::guard;
use crate::model::{Model, Status, Violation};
use crate::names::ActorId;
use crate::pending::{Pending, PendingKind};
use crate::world::World;

/// The invariant that actors break which never come to an end although everything is delivered in its turn.
const LIVELOCK: &str = "Livelock";
/// The invariant that an actor breaks which gives way to nobody.
const HOG: &str = "Hog";
/// Most deliveries of a round.
const ROUND: usize = 256;

/// Actors that never come to an end, and the round that the system makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Livelock {
    /// Who never comes to an end, in the order of their ids.
    pub actors: Vec<ActorId>,
    /// The deliveries of the round, for people. After them everything is as it was before.
    pub round: Vec<String>,
}

/// A simulator to try deliveries on while another one is looked at. It is made when it is first needed, and never copied.
pub(super) struct Scratch<M: Model>(Mutex<Option<Box<Simulator<M>>>>);

impl<M: Model> Default for Scratch<M> {
    fn default() -> Self {
        Scratch(Mutex::new(None))
    }
}

impl<M: Model> Clone for Scratch<M> {
    fn clone(&self) -> Self {
        Scratch::default()
    }
}

impl<M: Model> Simulator<M> {
    /// Whether actors that get nowhere are a violation: `livelock` of the scenario.
    #[must_use]
    pub fn livelock_counts(&self) -> bool {
        self.livelock_counts
    }

    /// The livelock that a world is in: with the oldest delivery first, whether message or timer, everything comes back to where it is,
    /// and some actors are [unfinished](crate::Runtime::unfinished) in all configurations on the way.
    ///
    /// Such a round is fair. What is pending all through it without being delivered has as many entries before it in the end as in the beginning, so
    /// that one after it was delivered, and that only happens where it could not be delivered itself. So the system can make that round for
    /// ever, and nothing is neglected in it. Rounds in other orders are not looked for, nor longer ones than 256 deliveries.
    #[must_use]
    pub fn livelock(&self, world: &World<M>) -> Option<Livelock> {
        let mut actors = self.unfinished(world);
        if actors.is_empty() || world.panic().is_some() {
            return None;
        }
        self.tried(world, |sim, first| {
            let mut at = first.clone();
            let mut round = Vec::new();
            while round.len() < ROUND {
                let index = (0..at.pending.len()).find(|&index| sim.deliverable(&at, index, sim.rule))?;
                round.push(sim.deliver(&mut at, index, sim.rule));
                let still = sim.unfinished(&at);
                actors.retain(|actor| still.contains(actor));
                if actors.is_empty() || at.panic().is_some() {
                    return None;
                }
                if sim.alike(first, &at) {
                    let round = round.iter().map(|entry| sim.told(entry)).collect();
                    return Some(Livelock { actors, round });
                }
            }
            None
        })
    }

    /// The first actor that gives way to nobody in a world: it takes messages that it sent to itself, so many of them one after the other or
    /// until everything is as it was before, while another actor could take something. A delivery that changes nothing and sends nothing gives
    /// way, and so does waiting for a timer.
    #[must_use]
    pub fn hog(&self, world: &World<M>, most: u32) -> Option<ActorId> {
        let own = |entry: &Pending| entry.kind == PendingKind::Message && entry.channel == entry.to;
        let mut candidates: Vec<ActorId> =
            world.pending().iter().filter(|entry| own(entry)).map(|entry| entry.to).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|&actor| {
            let others = world.pending().iter().enumerate().filter(|(_, entry)| entry.to != actor);
            others.map(|(index, _)| index).any(|index| self.deliverable(world, index, self.rule))
        });
        candidates.into_iter().find(|&actor| {
            let keeps_on = self.tried(world, |sim, first| {
                let mut at = first.clone();
                for _ in 0..most.max(1) {
                    let next = |index: &usize| {
                        let entry = &at.pending[*index];
                        entry.to == actor && own(entry) && sim.deliverable(&at, *index, sim.rule)
                    };
                    let index = (0..at.pending.len()).find(next)?;
                    let before = at.clone();
                    sim.deliver(&mut at, index, sim.rule);
                    if at.panic().is_some() || sim.did.is_empty() && at.same_states(&before) {
                        return None;
                    }
                    if sim.alike(first, &at) {
                        break;
                    }
                }
                Some(())
            });
            keeps_on.is_some()
        })
    }

    /// Adds what gets nowhere in a world.
    pub(super) fn nowhere(&self, world: &World<M>, found: &mut Vec<Violation>) {
        if self.livelock_counts
            && let Some(livelock) = self.livelock(world)
        {
            found.push(self.named(LIVELOCK, livelock.actors));
        }
        if let Some(actor) = self.hog_counts.and_then(|most| self.hog(world, most)) {
            found.push(self.named(HOG, vec![actor]));
        }
    }

    /// The actors that have begun something and are not done.
    fn unfinished(&self, world: &World<M>) -> Vec<ActorId> {
        let view = self.view(world);
        let runs = |actor: &ActorId| matches!(world.status(*actor), Status::Running | Status::Isolated);
        let unfinished = |actor: &ActorId| {
            view.state(*actor)
                .is_some_and(|state| guard::or(false, || self.model.runtime().unfinished(state, *actor)))
        };
        view.actors().filter(runs).filter(unfinished).collect()
    }

    /// Tries something on a copy of a world, in a simulator of its own.
    fn tried<T>(
        &self,
        world: &World<M>,
        trial: impl FnOnce(&mut Simulator<M>, &World<M>) -> Option<T>,
    ) -> Option<T> {
        // Whoever panicked with it left it as it was before or without what it would have added.
        let mut scratch = self.scratch.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if scratch.as_ref().is_some_and(|sim| sim.names.len() != self.names.len()) {
            *scratch = None;
        }
        let sim = scratch.get_or_insert_with(|| Box::new(self.clone()));
        let mut copy = world.clone();
        let mut pending = Vec::with_capacity(world.pending.len());
        for entry in world.pending() {
            pending.push(sim.adopted(self, entry)?);
        }
        copy.pending = pending.into();
        let answer = trial(sim, &copy);
        // Actors that came up in the trial may be other ones here.
        if sim.names.len() != self.names.len() {
            *scratch = None;
        }
        answer
    }

    /// An entry of another simulator in this one's numbers; `None` where there are too many timers.
    fn adopted(&mut self, other: &Simulator<M>, entry: &Pending) -> Option<Pending> {
        let msg = self.intern(other.info(entry.msg).msg.clone());
        let timer = match other.timers.get(usize::from(entry.timer)).filter(|_| entry.kind.is_timer()) {
            Some(&named) => self.number_of(named)?,
            None => entry.timer,
        };
        Some(Pending { msg, timer, ..*entry })
    }

    /// Whether two worlds go on alike: equal states, and equal entries in the same order. Of timers that counts which a log shows.
    fn alike(&self, one: &World<M>, other: &World<M>) -> bool {
        let same = |(a, b): (&Pending, &Pending)| {
            let content = self.info(a.msg).fingerprint == self.info(b.msg).fingerprint;
            let equal = if a.kind.is_timer() { content } else { a.msg == b.msg };
            equal && Pending { msg: b.msg, ..*a } == *b
        };
        one.pending.len() == other.pending.len()
            && one.pending.iter().zip(other.pending.iter()).all(same)
            && one.same_states(other)
    }

    /// A delivery, for people.
    #[must_use]
    pub fn told(&self, entry: &Pending) -> String {
        let (from, to) = (self.names.get(entry.from), self.names.get(entry.to));
        match entry.kind.is_timer() {
            true => format!("{to}: {}", self.handling(entry)),
            false => format!("{from} to {to}: {}", self.handling(entry)),
        }
    }
}
