//! What is known of a model: numbers for local states, pending entries and reactions, so that a
//! configuration is a list of numbers and a delivery is a look-up.
//!
//! A system has few local states and few messages beside its many configurations: each handler runs once for each
//! pair of them. Every state and entry has a 128-bit hash of its content, so that the hash of a configuration is a sum
//! that each delivery changes in a few places, and that depends on nothing but the content.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use demi_replay::bill::{self, Item};
use demi_replay::model::DistanceOf;
use demi_replay::sim::{Asked, Reactor};
use demi_replay::{
    ActorId, Model, MsgId, Op, Pending, PendingKind, Simulator, View, Violation, World, guard, network,
};
use demi_schemas::NetworkRule;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use crate::allowance::Allowance;
use crate::canonical::Canonical;
use crate::crew::Crew;
use crate::entry::{Effect, Entry, FREE, Local};
use crate::kinds::Kinds;
use crate::packed::{self, Glance, Hot, Mixed};
use crate::symmetry::Renaming;

/// What the delivery of an entry to a local state does.
#[derive(Debug)]
pub enum Reaction {
    /// The receiver does not take it now.
    Refused,
    /// The handler panics, and nothing comes after it.
    Panics {
        /// The state that it left, maybe half done.
        next: u32,
        /// The violation that it is, if it counts as one.
        crash: Option<Violation>,
    },
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

/// What a handler came to, before anything of it has a number.
enum Raw<M: Model> {
    Refused,
    Panics(M::State, Option<Violation>),
    Asked(M::State, Asked<M::Msg>),
    /// It met actors without names, and has to run in the simulator itself.
    Again,
    /// There was no time for it.
    Late,
}

/// All that is known of a model so far. Threads look at it side by side; what is new is entered between their turns, in an order that does not
/// depend on them, and so has the same numbers for any number of threads.
pub struct Space<M: Model> {
    /// The simulator on which handlers run.
    pub(crate) sim: Simulator<M>,
    rule: NetworkRule,
    /// The local states, by number from 1.
    pub(crate) locals: Vec<Local<M>>,
    /// The entries, by number.
    pub(crate) entries: Vec<Entry<M>>,
    /// What a delivery needs of them.
    pub(crate) hot: Vec<Hot>,
    pub(crate) canonical: Canonical,
    exact: bool,
    bytes: usize,
    unequal: bool,
    bound: Option<Arc<DistanceOf<M>>>,
    kinds: Kinds,
    channels: FxHashMap<(ActorId, ActorId), u32>,
    local_numbers: FxHashMap<(usize, Arc<M::State>), u32>,
    /// By hash, and by the message where those that are read alike are told apart.
    entry_numbers: FxHashMap<(u128, Option<MsgId>), u32>,
    reaction_numbers: FxHashMap<(u32, u32), u32>,
    reactions: Vec<Reaction>,
}

impl<M: Model> Space<M> {
    /// A space of which nothing is known yet.
    #[must_use]
    pub fn new(sim: Simulator<M>, rule: NetworkRule) -> Self {
        let canonical = Canonical::new(Vec::new(), sim.names().len());
        Space {
            sim,
            rule,
            canonical,
            exact: false,
            bytes: 0,
            unequal: false,
            locals: Vec::new(),
            entries: Vec::new(),
            hot: Vec::new(),
            bound: None,
            kinds: Kinds::default(),
            channels: HashMap::default(),
            local_numbers: HashMap::default(),
            entry_numbers: HashMap::default(),
            reaction_numbers: HashMap::default(),
            reactions: Vec::new(),
        }
    }

    /// The same, where timers are told apart that differ in something that no handler reads, but a log does. They have one key all the same.
    #[must_use]
    pub fn exact(self, exact: bool) -> Self {
        Space { exact, ..self }
    }

    /// The same, where a bound is asked about configurations.
    #[must_use]
    pub fn bounded(self, bound: Option<Arc<DistanceOf<M>>>) -> Self {
        Space { bound, ..self }
    }

    /// The same, with actors that can take each other's places, and kinds of deliveries that are counted.
    #[must_use]
    pub fn alike(self, renamings: Vec<Renaming>, kinds: Kinds) -> Self {
        let canonical = Canonical::new(renamings, self.sim.names().len());
        Space { canonical, kinds, ..self }
    }

    /// The simulator, which gave everything its numbers.
    #[must_use]
    pub fn sim(&self) -> &Simulator<M> {
        &self.sim
    }

    /// The simulator, to run something in a world.
    pub fn sim_mut(&mut self) -> &mut Simulator<M> {
        &mut self.sim
    }

    /// The simulator, to use for something else.
    #[must_use]
    pub fn into_sim(self) -> Simulator<M> {
        self.sim
    }

    /// The rule of the network.
    #[must_use]
    pub fn rule(&self) -> NetworkRule {
        self.rule
    }

    /// Bytes of the local states.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the model could not rename something, so that there must be no renamings.
    #[must_use]
    pub fn unequal(&self) -> bool {
        self.unequal
    }

    /// The state of a number.
    #[must_use]
    pub fn state(&self, local: u32) -> &Arc<M::State> {
        &self.locals[local as usize - 1].state
    }

    /// What invariants read of the state of a number, where the model says so.
    #[must_use]
    pub fn watch(&self, local: u32) -> Option<u64> {
        self.locals[local as usize - 1].watch
    }

    /// For each entry by its number, the cell its receiver works on.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = usize> {
        self.entries.iter().map(|entry| entry.cell)
    }

    /// The number of a state at a place.
    pub fn local(&mut self, place: usize, state: Arc<M::State>) -> u32 {
        if let Some(&known) = self.local_numbers.get(&(place, Arc::clone(&state))) {
            return known;
        }
        let (hash, watch) = (local_hash(place, &*state), self.sim.watch_state(&state));
        let mut renamed = Vec::with_capacity(self.canonical.renamings().len());
        for renaming in self.canonical.renamings() {
            let of = |actor| renaming.of(actor);
            match self.sim.renamed_state(&state, &of) {
                Some(state) => renamed.push(local_hash(of(ActorId(place as u16)).index(), &state)),
                None => {
                    self.unequal = true;
                    renamed.push(hash);
                }
            }
        }
        self.canonical.add_local(&renamed);
        self.bytes += self.sim.model().bytes(&state);
        self.locals.push(Local { state: Arc::clone(&state), hash, watch });
        let number = self.locals.len() as u32;
        self.local_numbers.insert((place, state), number);
        number
    }

    /// The number of an entry.
    pub fn entry(&mut self, pending: &Pending) -> u32 {
        let hash = self.entry_hash(pending);
        let name = (hash, Some(pending.msg).filter(|_| self.exact));
        if let Some(&known) = self.entry_numbers.get(&name) {
            return known;
        }
        let mut renamed = Vec::with_capacity(self.canonical.renamings().len());
        for renaming in self.canonical.renamings().to_vec() {
            match renaming.entry(&mut self.sim, pending) {
                Some(entry) => renamed.push(self.entry_hash(&entry)),
                None => {
                    self.unequal = true;
                    renamed.push(hash);
                }
            }
        }
        self.canonical.add_entry(&renamed);
        let msg = self.sim.info(pending.msg).msg.clone();
        let channel = if network::ordered(pending) {
            let fresh = self.channels.len() as u32 + 1;
            *self.channels.entry((pending.channel, pending.to)).or_insert(fresh)
        } else {
            FREE
        };
        let timer = timer_of(pending);
        let cell = self.sim.cell_of(pending.to).index();
        let seen = self.bound.as_ref().is_some_and(|b| guard::or(true, || (b.sees)(&msg)));
        let kind = self.kinds.number(pending.to, self.sim.info(pending.msg).type_);
        let entry = Entry { pending: *pending, msg, hash, channel, cell, timer, seen, kind };
        self.hot.push(Hot::of(&entry, self.rule));
        self.entries.push(entry);
        let number = self.entries.len() as u32 - 1;
        self.entry_numbers.insert(name, number);
        number
    }

    /// How many channels there are, with the one that is none.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len() + 1
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

    /// The number of what the delivery of an entry to a local state does; the handler runs where that is not known.
    pub fn react(&mut self, local: u32, entry: u32) -> u32 {
        let known = self.number(local, entry);
        known.unwrap_or_else(|| {
            let reaction = match self.accepts(local, entry) {
                true => self.alone((local, entry)),
                false => Reaction::Refused,
            };
            self.enter((local, entry), reaction)
        })
    }

    /// The number of what the delivery of an entry to a local state does, if that is known.
    #[inline]
    #[must_use]
    pub fn number(&self, local: u32, entry: u32) -> Option<u32> {
        self.reaction_numbers.get(&(local, entry)).copied()
    }

    /// The reaction of a number.
    #[inline]
    #[must_use]
    pub fn reaction(&self, number: u32) -> &Reaction {
        &self.reactions[number as usize]
    }

    /// Whether the receiver of an entry takes it in a state, which may be asked without running the handler.
    #[must_use]
    pub fn accepts(&self, local: u32, entry: u32) -> bool {
        match self.number(local, entry) {
            Some(number) => !matches!(self.reaction(number), Reaction::Refused),
            None => self.sim.accepts(self.state(local), &self.entries[entry as usize].pending),
        }
    }

    /// Runs the handlers of entries in local states, those that are not known yet, on all threads of a crew, and enters what they do in the
    /// order of the pairs. Some may be left out where the time ends. Gives what was told of steps of processes.
    pub fn learn(
        &mut self,
        pairs: &[(u32, u32)],
        crew: &mut Crew<M>,
        allowance: &dyn Allowance,
    ) -> Vec<Item> {
        let mut asked = FxHashSet::default();
        let new = |pair: &(u32, u32)| !self.reaction_numbers.contains_key(pair) && asked.insert(*pair);
        let pairs: Vec<(u32, u32)> = pairs.iter().copied().filter(new).collect();
        let space = &*self;
        let raws = crew.react(space.sim(), pairs.len(), |reactor, at| {
            bill::during(|| if allowance.late() { Raw::Late } else { space.raw(reactor, pairs[at]) })
        });
        let mut told = Vec::new();
        for (pair, (raw, items)) in pairs.into_iter().zip(raws) {
            told.extend(items);
            let reaction = match raw {
                Raw::Late => continue,
                Raw::Again => {
                    let (reaction, items) = bill::during(|| self.alone(pair));
                    told.extend(items);
                    reaction
                }
                Raw::Refused => Reaction::Refused,
                Raw::Panics(state, crash) => self.panics(pair.1, state, crash),
                Raw::Asked(state, asked) => {
                    let ops = self.sim.ops(asked);
                    self.entered(pair, state, ops)
                }
            };
            self.enter(pair, reaction);
        }
        told
    }

    fn enter(&mut self, pair: (u32, u32), reaction: Reaction) -> u32 {
        self.reactions.push(reaction);
        let number = self.reactions.len() as u32 - 1;
        self.reaction_numbers.insert(pair, number);
        number
    }

    fn raw(&self, reactor: &mut Reactor<M>, (local, entry): (u32, u32)) -> Raw<M> {
        let (state, pending) = (self.state(local), &self.entries[entry as usize].pending);
        if !self.sim.accepts(state, pending) {
            return Raw::Refused;
        }
        let mut next = M::State::clone(state);
        match reactor.react(&self.sim, &mut next, pending) {
            Err(panic) => Raw::Panics(next, self.sim.crashed(&panic)),
            Ok(None) => Raw::Again,
            Ok(Some(asked)) => Raw::Asked(next, asked),
        }
    }

    fn alone(&mut self, (local, entry): (u32, u32)) -> Reaction {
        let pending = self.entries[entry as usize].pending;
        let mut next = M::State::clone(self.state(local));
        match self.sim.react(&mut next, &pending) {
            Err(panic) => {
                let crash = self.sim.crashed(&panic);
                self.panics(entry, next, crash)
            }
            Ok(ops) => self.entered((local, entry), next, ops),
        }
    }

    fn panics(&mut self, entry: u32, state: M::State, crash: Option<Violation>) -> Reaction {
        let next = self.local(self.entries[entry as usize].cell, Arc::new(state));
        Reaction::Panics { next, crash }
    }

    fn entered(&mut self, (local, entry): (u32, u32), next: M::State, ops: Option<Vec<Op>>) -> Reaction {
        let Some(ops) = ops else { return Reaction::Lives };
        let place = self.entries[entry as usize].cell;
        let next = if next == **self.state(local) { local } else { self.local(place, Arc::new(next)) };
        let effects = ops.iter().map(|op| match op {
            Op::Send(entry) => Effect::Send(self.entry(entry)),
            Op::SetTimer(entry) => Effect::Arm(self.entry(entry)),
            Op::CancelTimer(actor, timer) => Effect::Disarm(timer_number(*actor, *timer)),
        });
        let effects = effects.collect();
        let watch = self.watch(local);
        let visible = watch.is_none() || watch != self.watch(next);
        Reaction::Plain { next, effects, visible }
    }

    /// What a delivery needs to know of an entry.
    #[inline]
    #[must_use]
    pub fn hot(&self, entry: u32) -> &Hot {
        &self.hot[entry as usize]
    }

    /// A pending entry of a number.
    #[must_use]
    pub fn pending(&self, entry: u32) -> &Pending {
        &self.entries[entry as usize].pending
    }

    /// A world as numbers. What is as in `before`, the numbers of a world that it came from, is not looked up again.
    #[must_use]
    pub fn pack(&mut self, world: &World<M>, before: Option<&[u32]>) -> Vec<u32> {
        let mut words = Vec::new();
        pack(self, (world, 0), before, &mut words);
        words
    }

    /// The world that numbers stand for, in which nothing was delivered yet.
    #[must_use]
    pub fn unpack(&self, words: &[u32]) -> World<M> {
        unpack(self, words)
    }

    /// What invariants and conditions look at.
    pub fn view<R>(&self, words: &[u32], with: impl FnOnce(&View<'_, M::State>) -> R) -> R {
        let glance = Glance { words, locals: &self.locals };
        with(&View::new(&glance, self.sim.model(), self.sim.names()))
    }

    /// A number for a configuration with the order in which everything is pending.
    #[must_use]
    pub fn key(&self, words: &[u32]) -> Mixed {
        packed::in_order(words, &self.locals, &self.hot)
    }

    /// A number for a configuration in which only the order within channels counts.
    #[must_use]
    pub fn hash(&self, words: &[u32]) -> u128 {
        packed::hash(words, &self.locals, &self.hot)
    }

    /// What the delivery of the pending entry at an index makes of a configuration, where it leads to a state and has these effects.
    pub fn delivered(&self, words: &[u32], index: usize, does: (u32, &[Effect]), after: &mut Vec<u32>) {
        packed::deliver::<M, false>((words, 0), index, does, (&self.locals, &self.hot), after);
    }

    /// What a configuration breaks by its states, or what an invariant said that panicked.
    ///
    /// # Errors
    /// Where an invariant panics.
    pub fn broken(&self, words: &[u32], found: &mut Vec<Violation>) -> Result<(), String> {
        self.view(words, |view| {
            guard::guarded(|| self.sim.model().check(view, &mut M::History::default(), found))?;
            self.sim.asserted().check(self.sim.model(), view, found)
        })
    }

    /// Delivers in a world: for reactions that end or begin incarnations. Gives the world afterwards.
    ///
    /// # Errors
    /// Where the model's code panics, with the violation if that is one.
    pub(crate) fn deliver(
        &mut self,
        mut world: World<M>,
        index: usize,
    ) -> Result<World<M>, Option<Violation>> {
        self.sim.deliver(&mut world, index, self.rule);
        self.went_on(world)
    }

    /// A world in which nothing has panicked.
    ///
    /// # Errors
    /// As [`Space::deliver`].
    pub(crate) fn went_on(&self, world: World<M>) -> Result<World<M>, Option<Violation>> {
        match world.panic() {
            None => Ok(world),
            Some(panic) => Err(self.sim.crashed(panic)),
        }
    }
}

/// A world as numbers, with the faults that are left, into `words`. What is as in `before`, the numbers of a world that
/// it came from, is not looked up again.
pub fn pack<M: Model>(
    space: &mut Space<M>,
    (world, faults): (&World<M>, u32),
    before: Option<&[u32]>,
    words: &mut Vec<u32>,
) {
    words.clear();
    words.push(world.actors() as u32 & packed::PLACES_MASK | faults << packed::FAULTS_SHIFT);
    for place in 0..world.actors() {
        let known = before
            .filter(|before| place < packed::places(before))
            .map_or(0, |before| packed::local(before, place));
        let local = match &world.cells()[place] {
            None => 0,
            Some(state) if known > 0 && Arc::ptr_eq(state, &space.locals[known as usize - 1].state) => known,
            Some(state) => space.local(place, Arc::clone(state)),
        };
        let of_actor = world.status(ActorId(place as u16));
        let status = packed::STATUSES.iter().position(|s| *s == of_actor).unwrap_or(0) as u32;
        words.push(local | status << packed::STATUS_SHIFT);
    }
    // Some of what was pending is gone, the rest is in its order, and new entries come last.
    let mut old = before.map_or(&[][..], |before| &before[packed::first_pending(before)..]).iter();
    for pending in world.pending() {
        let known = old.find(|number| space.entries[**number as usize].pending == *pending).copied();
        words.push(known.unwrap_or_else(|| space.entry(pending)));
    }
}

/// The world that the numbers stand for.
pub fn unpack<M: Model>(space: &Space<M>, words: &[u32]) -> World<M> {
    let places = packed::places(words);
    let cell = |place| match packed::local(words, place) {
        0 => None,
        number => Some(space.locals[number as usize - 1].state.clone()),
    };
    let cells = (0..places).map(cell).collect();
    let status = (0..places).map(|place| packed::status(words, place as u16)).collect();
    let pending =
        words[packed::first_pending(words)..].iter().map(|e| space.entries[*e as usize].pending).collect();
    World::assemble(cells, status, pending)
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
