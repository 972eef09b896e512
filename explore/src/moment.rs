//! A configuration with all that the rest of an execution depends on.

use std::hash::Hash;

use demi_replay::{ActorId, Model, Pending, Simulator, World};
use xxhash_rust::xxh3::Xxh3;

/// A point of an execution.
#[derive(Debug)]
pub struct Moment<M: Model> {
    /// States, and what is pending.
    pub world: World<M>,
    /// How many steps of the test driver's program are done.
    pub done: usize,
    /// How many messages from outside were sent.
    pub sent: usize,
    /// How much of the recorded execution is done or passed over.
    pub at: usize,
    /// Whether messages from outside may come.
    pub open: bool,
    /// Who took something last.
    pub last: Option<ActorId>,
}

impl<M: Model> Clone for Moment<M> {
    fn clone(&self) -> Self {
        let Moment { done, sent, at, open, last, .. } = *self;
        Moment { world: self.world.clone(), done, sent, at, open, last }
    }
}

impl<M: Model> Moment<M> {
    /// A beginning.
    #[must_use]
    pub fn first(world: World<M>) -> Self {
        Moment { world, done: 0, sent: 0, at: 0, open: false, last: None }
    }

    /// A number for the moment and the faults that were spent on it: two executions whose moments have the same number can go on alike. The
    /// order in which messages and timers are pending is part of it, because the default order is made of that. Who took something
    /// last is part of it where the cost depends on it, and so is the number of deliveries where the test driver may wait for one.
    #[must_use]
    pub fn key(&self, sim: &Simulator<M>, faults: u32, (waits, stays): (bool, bool)) -> u128 {
        let mut hasher = Xxh3::new();
        for (at, cell) in self.world.cells().iter().enumerate() {
            self.world.status(ActorId(at as u16)).hash(&mut hasher);
            cell.hash(&mut hasher);
        }
        // Timers come after messages whatever was first, so each have an order of their own.
        for timers in [false, true] {
            let entries = self.world.pending().iter().filter(|entry| entry.kind.is_timer() == timers);
            entries.for_each(|entry| content(sim, entry, &mut hasher));
            u8::MAX.hash(&mut hasher);
        }
        (self.done, self.sent, self.at, self.open, faults).hash(&mut hasher);
        if waits {
            self.world.deliveries().hash(&mut hasher);
        }
        if stays {
            self.last.hash(&mut hasher);
        }
        hasher.digest128()
    }
}

/// An entry by its content: numbers of messages and timers depend on the order in which they came up. Of what a timer carries only that counts
/// which masks leave, because equal states may number their timers differently.
fn content<M: Model>(sim: &Simulator<M>, entry: &Pending, hasher: &mut Xxh3) {
    let Pending { from, to, channel, msg, kind, timer: _, survives, via } = *entry;
    (from, to, channel, kind, survives, via).hash(hasher);
    match kind.is_timer() {
        true => (sim.timer_name(entry), sim.text(sim.info(msg).fingerprint)).hash(hasher),
        false => sim.info(msg).msg.hash(hasher),
    }
}
