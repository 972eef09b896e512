//! A configuration with all that the rest of an execution depends on.

use std::hash::Hash;
use std::sync::Arc;

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
    /// Numbers of the states of the cells, where they are known.
    states: Vec<u128>,
}

impl<M: Model> Clone for Moment<M> {
    fn clone(&self) -> Self {
        let Moment { done, sent, at, open, last, .. } = *self;
        Moment { world: self.world.clone(), done, sent, at, open, last, states: self.states.clone() }
    }
}

impl<M: Model> Moment<M> {
    /// A beginning.
    #[must_use]
    pub fn first(world: World<M>) -> Self {
        Moment { world, done: 0, sent: 0, at: 0, open: false, last: None, states: Vec::new() }
    }

    /// A number for the moment and the faults that were spent on it: two executions whose moments have the same number can go on alike. The
    /// order in which messages and timers are pending is part of it, because the default order is made of that. Who took something
    /// last is part of it where the cost depends on it, and so is the number of deliveries where the test driver may wait for one.
    ///
    /// States that are those of the moment `before` are not looked at again.
    #[must_use]
    pub fn key(
        &mut self,
        sim: &Simulator<M>,
        before: Option<&Moment<M>>,
        faults: u32,
        (waits, stays): (bool, bool),
    ) -> u128 {
        let mut key = Mixed::default();
        let known = before.filter(|before| before.states.len() == before.world.cells().len());
        self.states.resize(self.world.cells().len(), 0);
        for (at, cell) in self.world.cells().iter().enumerate() {
            let same = known.filter(|before| match (cell, before.world.cells().get(at)) {
                (Some(cell), Some(Some(old))) => Arc::ptr_eq(cell, old),
                (None, Some(None)) => true,
                _ => false,
            });
            self.states[at] = match (same, cell) {
                (Some(before), _) => before.states[at],
                (None, None) => 0,
                (None, Some(state)) => {
                    let mut hasher = Xxh3::new();
                    state.hash(&mut hasher);
                    hasher.digest128()
                }
            };
            key.add(self.states[at]);
            key.add(self.world.status(ActorId(at as u16)) as u128);
        }
        // Timers come after messages whatever was first, so each have an order of their own.
        for timers in [false, true] {
            let entries = self.world.pending().iter().filter(|entry| entry.kind.is_timer() == timers);
            entries.for_each(|entry| content(sim, entry, &mut key));
            key.add(u128::MAX);
        }
        // What led here may have left its state half done.
        key.add(self.world.panic().is_some().into());
        key.add((self.done as u128) << 64 | self.sent as u128);
        key.add((self.at as u128) << 64 | u128::from(faults) << 1 | u128::from(self.open));
        if waits {
            key.add(self.world.deliveries().into());
        }
        if stays {
            key.add(self.last.map_or(u128::MAX, |actor| actor.0.into()));
        }
        key.end()
    }
}

/// An entry by its content: numbers of messages and timers depend on the order in which they came up.
fn content<M: Model>(sim: &Simulator<M>, entry: &Pending, key: &mut Mixed) {
    let Pending { from, to, channel, msg: _, kind, timer: _, survives, via } = *entry;
    let actors = u128::from(from.0) << 32 | u128::from(to.0) << 16 | u128::from(channel.0);
    let via = via.map_or(0, |via| 1 + via as u128);
    key.add(actors << 32 | via << 16 | (kind as u128) << 8 | u128::from(survives));
    if kind.is_timer() {
        key.add(sim.timer_key(entry));
    }
    key.add(sim.content(entry));
}

/// A number for a sequence of numbers. Those that are added are mixed already, or few.
#[derive(Default)]
struct Mixed(u128);

impl Mixed {
    /// Odd, and as many ones as zeros: digits of the golden ratio.
    const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

    fn add(&mut self, number: u128) {
        self.0 = (self.0.rotate_left(47) ^ number).wrapping_mul(Self::FACTOR);
        self.0 ^= self.0 >> 71;
    }

    fn end(self) -> u128 {
        let mixed = (self.0 ^ self.0 >> 64).wrapping_mul(Self::FACTOR);
        mixed ^ mixed >> 67
    }
}
