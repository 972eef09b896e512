//! Numbers for local states, pending entries and reactions, so that a configuration is a list of numbers and a
//! delivery is a look-up.
//!
//! A system has few local states and few messages beside its many configurations: each handler runs once for each
//! pair of them. Every state and entry has a 128-bit hash of its content, so that the hash of a configuration is a sum
//! that each delivery changes in a few places, and that depends on nothing but the content.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use demi_replay::model::DistanceOf;
use demi_replay::{ActorId, Model, Names, Op, Pending, PendingKind, Simulator, World, network};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::Xxh3;

use crate::kinds::Kinds;
use crate::symmetry::Renaming;

/// No channel: the entry may be delivered at any time.
pub const FREE: u32 = 0;

/// A local state at its place.
pub struct Local<M: Model> {
    /// The state.
    pub state: Arc<M::State>,
    /// Hash of the place and the content.
    pub hash: u128,
    /// What [`Model::watch`] says.
    pub watch: Option<u64>,
    /// The hashes of what it is under each renaming.
    pub renamed: Arc<[u128]>,
}

impl<M: Model> Clone for Local<M> {
    fn clone(&self) -> Self {
        Local { state: Arc::clone(&self.state), renamed: Arc::clone(&self.renamed), ..*self }
    }
}

/// A kind of pending entry. Timers that differ in nothing that a handler reads are one.
#[derive(Clone)]
pub struct Entry<M: Model> {
    /// One of them.
    pub pending: Pending,
    /// Its message.
    pub msg: M::Msg,
    /// Hash of the content and of whom it goes to.
    pub hash: u128,
    /// Its channel, or [`FREE`].
    pub channel: u32,
    /// The cell its receiver works on.
    pub cell: usize,
    /// For timers: which timer of which actor, never 0; 0 for messages.
    pub timer: u32,
    /// Whether the bound looks at it.
    pub seen: bool,
    /// Its kind ([`Kinds`]).
    pub kind: u16,
    /// The hashes of what it is under each renaming.
    pub renamed: Arc<[u128]>,
}

/// What a delivery does besides changing a state. Numbers are of entries.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// A message becomes pending unless its receiver or sender cannot be reached.
    Send(u32),
    /// A timer is armed in place of the live one.
    Arm(u32),
    /// A timer ends, if it is live.
    Disarm(u32),
}

/// What the delivery of an entry to a local state does.
#[derive(Debug)]
pub enum Reaction {
    /// The receiver does not take it now, or its handler panics and that counts as no violation.
    Refused,
    /// The handler panics: the violation of that fingerprint, and nothing comes after it.
    Crashes(String),
    /// It starts, stops or fails actors: it has to happen in a world.
    Lives,
    /// It goes to another state and has effects.
    Plain {
        /// The state afterwards.
        next: u32,
        /// What else happens, in order.
        effects: Box<[Effect]>,
        /// Whether an invariant may look different now.
        visible: bool,
    },
}

/// All that is known so far.
pub struct Tables<M: Model> {
    /// The simulator on which handlers run.
    pub sim: Simulator<M>,
    /// The local states, by number from 1.
    pub locals: Vec<Local<M>>,
    /// The entries, by number.
    pub entries: Vec<Entry<M>>,
    /// Renamings of actors that change nothing.
    pub renamings: Vec<Renaming>,
    /// Bytes of the local states.
    pub bytes: usize,
    /// Whether the model could not rename something, so that there must be no renamings.
    pub unequal: bool,
    bound: Option<Arc<DistanceOf<M>>>,
    kinds: Kinds,
    local_numbers: FxHashMap<(usize, Arc<M::State>), u32>,
    entry_numbers: FxHashMap<u128, u32>,
    channels: FxHashMap<(ActorId, ActorId), u32>,
    reactions: FxHashMap<(u32, u32), Arc<Reaction>>,
}

impl<M: Model> Tables<M> {
    /// Empty tables.
    pub fn new(
        sim: Simulator<M>,
        bound: Option<Arc<DistanceOf<M>>>,
        (renamings, kinds): (Vec<Renaming>, Kinds),
    ) -> Self {
        Tables {
            sim,
            renamings,
            bytes: 0,
            unequal: false,
            locals: Vec::new(),
            entries: Vec::new(),
            bound,
            kinds,
            local_numbers: HashMap::default(),
            entry_numbers: HashMap::default(),
            channels: HashMap::default(),
            reactions: HashMap::default(),
        }
    }

    /// Names of the actors.
    pub fn names(&self) -> &Names {
        self.sim.names()
    }

    /// The number of a state at a place.
    pub fn local(&mut self, place: usize, state: Arc<M::State>) -> u32 {
        if let Some(&known) = self.local_numbers.get(&(place, Arc::clone(&state))) {
            return known;
        }
        let (hash, watch) = (local_hash(place, &*state), self.sim.watch_state(&state));
        let mut renamed = Vec::with_capacity(self.renamings.len());
        for renaming in &self.renamings {
            let of = |actor| renaming.of(actor);
            match self.sim.renamed_state(&state, &of) {
                Some(state) => renamed.push(local_hash(of(ActorId(place as u16)).index(), &state)),
                None => {
                    self.unequal = true;
                    renamed.push(hash);
                }
            }
        }
        let renamed = renamed.into();
        self.bytes += self.sim.model().bytes(&state);
        self.locals.push(Local { state: Arc::clone(&state), hash, watch, renamed });
        let number = self.locals.len() as u32;
        self.local_numbers.insert((place, state), number);
        number
    }

    /// The number of an entry.
    pub fn entry(&mut self, pending: &Pending) -> u32 {
        let hash = self.entry_hash(pending);
        if let Some(&known) = self.entry_numbers.get(&hash) {
            return known;
        }
        let mut renamed = Vec::with_capacity(self.renamings.len());
        for renaming in self.renamings.clone() {
            match renaming.entry(&mut self.sim, pending) {
                Some(entry) => renamed.push(self.entry_hash(&entry)),
                None => {
                    self.unequal = true;
                    renamed.push(hash);
                }
            }
        }
        let (msg, renamed) = (self.sim.info(pending.msg).msg.clone(), renamed.into());
        let channel = if network::ordered(pending) {
            let fresh = self.channels.len() as u32 + 1;
            *self.channels.entry((pending.channel, pending.to)).or_insert(fresh)
        } else {
            FREE
        };
        let timer = timer_of(pending);
        let cell = self.sim.cell_of(pending.to).index();
        let seen = self.bound.as_ref().is_some_and(|b| (b.sees)(&msg));
        let kind = self.kinds.number(pending.to, self.sim.info(pending.msg).type_);
        self.entries.push(Entry { pending: *pending, msg, hash, channel, cell, timer, seen, kind, renamed });
        let number = self.entries.len() as u32 - 1;
        self.entry_numbers.insert(hash, number);
        number
    }

    fn entry_hash(&self, pending: &Pending) -> u128 {
        let info = self.sim.info(pending.msg);
        let mut hasher = Xxh3::new();
        (pending.from, pending.to, pending.channel, pending.kind, pending.survives).hash(&mut hasher);
        if pending.kind.is_timer() {
            // Timers count by what they are, not by their number.
            let [low, high] = pending.timer.to_le_bytes();
            hasher.write_u8(low);
            if high > 0 {
                hasher.write_u8(high);
            }
            hasher.write(self.sim.text(info.type_).as_bytes());
            hasher.write_u8(0xff);
            hasher.write(self.sim.text(info.read.unwrap_or(info.fingerprint)).as_bytes());
            if info.read.is_none() {
                info.number.hash(&mut hasher);
            }
        } else {
            pending.via.hash(&mut hasher);
            info.msg.hash(&mut hasher);
        }
        hasher.digest128()
    }

    /// What the delivery of an entry to a local state does.
    pub fn reaction(&mut self, local: u32, entry: u32) -> Arc<Reaction> {
        if let Some(known) = self.reactions.get(&(local, entry)) {
            return Arc::clone(known);
        }
        let found = Arc::new(self.react(local, entry));
        self.reactions.insert((local, entry), Arc::clone(&found));
        found
    }

    fn react(&mut self, local: u32, number: u32) -> Reaction {
        let (pending, place) = (self.entries[number as usize].pending, self.entries[number as usize].cell);
        let Local { state, watch, .. } = self.locals[local as usize - 1].clone();
        if !self.sim.accepts(&state, &pending) {
            return Reaction::Refused;
        }
        let mut next = M::State::clone(&state);
        let ops = match self.sim.react(&mut next, &pending) {
            Err(panic) => {
                let crash = self.sim.crashed(&panic);
                return crash.map_or(Reaction::Refused, |crash| Reaction::Crashes(crash.fingerprint));
            }
            Ok(None) => return Reaction::Lives,
            Ok(Some(ops)) => ops,
        };
        let next = if next == *state { local } else { self.local(place, Arc::new(next)) };
        let effects = ops.iter().map(|op| match op {
            Op::Send(entry) => Effect::Send(self.entry(entry)),
            Op::SetTimer(entry) => Effect::Arm(self.entry(entry)),
            Op::CancelTimer(actor, timer) => Effect::Disarm(timer_number(*actor, *timer)),
        });
        let effects = effects.collect();
        let visible = watch.is_none() || watch != self.locals[next as usize - 1].watch;
        Reaction::Plain { next, effects, visible }
    }

    /// Delivers in a world: for reactions that end or begin incarnations. Gives the world afterwards.
    ///
    /// # Errors
    /// Where the model's code panics, with the fingerprint of the crash if it is a violation.
    pub fn deliver(
        &mut self,
        mut world: World<M>,
        index: usize,
        rule: demi_schemas::NetworkRule,
    ) -> Result<World<M>, Option<String>> {
        self.sim.deliver(&mut world, index, rule);
        self.went_on(world)
    }

    /// A world in which nothing has panicked.
    ///
    /// # Errors
    /// As [`Tables::deliver`].
    pub fn went_on(&self, world: World<M>) -> Result<World<M>, Option<String>> {
        match world.panic() {
            None => Ok(world),
            Some(panic) => Err(self.sim.crashed(panic).map(|crash| crash.fingerprint)),
        }
    }
}

fn local_hash<S: Hash>(place: usize, state: &S) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.write_usize(place);
    state.hash(&mut hasher);
    hasher.digest128()
}

fn timer_of(pending: &Pending) -> u32 {
    match pending.kind {
        PendingKind::Timer | PendingKind::Repeating => timer_number(pending.to, pending.timer),
        PendingKind::Message | PendingKind::External => 0,
    }
}

fn timer_number(actor: ActorId, timer: u16) -> u32 {
    (u32::from(actor.0) << 16 | u32::from(timer)) + 1
}
