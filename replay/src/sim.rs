//! The simulator: delivers one pending entry at a time and applies what the handler asked for.

use std::hash::BuildHasher;
use std::sync::Arc;

use demi_schemas::event::Via;
use demi_schemas::{NetworkRule, Scenario, ScenarioError};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::fingerprint::Masks;
use crate::model::{Ctx, Effect, Model, View, Violation, Waiting};
use crate::names::{ActorId, Names, OUTSIDE, TextId, Texts};
use crate::network;
use crate::world::{Pending, PendingKind, Status, World};

/// An interned message: equal ids mean equal messages within one simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MsgId(pub u32);

/// What is known of an interned message; the texts are rendered once, when it is first seen.
#[derive(Clone, Debug)]
pub struct MsgInfo<Msg> {
    /// The message.
    pub msg: Msg,
    /// Its type tag.
    pub type_: TextId,
    /// Its full content.
    pub payload: TextId,
    /// Its content under the masks, with what is hidden.
    pub fingerprint: TextId,
    /// Its content under the masks alone, which is all that a log shows.
    pub shown: TextId,
    /// Its logical clock.
    pub clock: Option<i64>,
}

/// Something the last step did besides changing states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// Sent a message.
    Sent(Pending),
    /// Armed a timer.
    TimerSet(Pending),
    /// Cancelled a live timer.
    TimerCancelled(Pending),
    /// An actor failed.
    Crashed(ActorId),
    /// An actor began a new life.
    Restarted(ActorId),
    /// An actor began to exist.
    Started(ActorId),
}

impl Did {
    /// The actor that failed, began anew or began to exist, if that is what it tells.
    #[must_use]
    pub fn failed(&self) -> Option<ActorId> {
        match self {
            Did::Crashed(actor) | Did::Restarted(actor) | Did::Started(actor) => Some(*actor),
            Did::Sent(_) | Did::TimerSet(_) | Did::TimerCancelled(_) => None,
        }
    }
}

/// A model with the tables that runs of it share. Worlds are separate values ([`World`]).
#[derive(Clone)]
pub struct Simulator<M: Model> {
    model: M,
    names: Names,
    texts: Texts,
    masks: Masks,
    infos: Vec<MsgInfo<M::Msg>>,
    index: HashTable<u32>,
    hasher: FxBuildHasher,
    effects: Vec<Effect<M::Msg>>,
    timers: Vec<&'static str>,
    did: Vec<Did>,
    crash_reason: Option<String>,
}

impl<M: Model> Simulator<M> {
    /// A simulator of `model`, whose constructor filled `names`.
    ///
    /// # Errors
    /// When a mask of the scenario is no regular expression.
    pub fn new(model: M, names: Names, scenario: &Scenario) -> Result<Self, ScenarioError> {
        let masks = Masks::new(model.masks().iter().chain(&scenario.masks))?;
        Ok(Simulator {
            model,
            names,
            texts: Texts::default(),
            masks,
            infos: Vec::new(),
            index: HashTable::new(),
            hasher: FxBuildHasher,
            effects: Vec::new(),
            timers: Vec::new(),
            did: Vec::new(),
            crash_reason: None,
        })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Names of the actors.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Names of the actors, to add to.
    pub fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    /// What is known of a message.
    #[must_use]
    pub fn info(&self, msg: MsgId) -> &MsgInfo<M::Msg> {
        &self.infos[msg.0 as usize]
    }

    /// The text behind an id.
    #[must_use]
    pub fn text(&self, id: TextId) -> &str {
        self.texts.get(id)
    }

    /// The id of a text.
    pub fn intern_text(&mut self, text: &str) -> TextId {
        self.texts.intern(text)
    }

    /// A payload of that type under the masks.
    #[must_use]
    pub fn masked<'a>(&self, type_: &str, payload: &'a str) -> std::borrow::Cow<'a, str> {
        self.masks.apply(type_, payload)
    }

    /// The fingerprint of a payload of that type: the payload under the masks.
    pub fn fingerprint(&mut self, type_: &str, payload: &str) -> TextId {
        let masked = self.masks.apply(type_, payload);
        self.texts.intern(&masked)
    }

    /// The name of a timer entry.
    #[must_use]
    pub fn timer_name(&self, entry: &Pending) -> &'static str {
        self.timers.get(usize::from(entry.timer)).copied().unwrap_or("")
    }

    /// What the last step did, in order.
    #[must_use]
    pub fn did(&self) -> &[Did] {
        &self.did
    }

    /// Why the last step's handler failed, if it did.
    #[must_use]
    pub fn crash_reason(&self) -> Option<&str> {
        self.crash_reason.as_deref()
    }

    /// The id of a message, which is added if it is new.
    pub fn intern(&mut self, msg: M::Msg) -> MsgId {
        let hash = self.hasher.hash_one(&msg);
        let infos = &self.infos;
        if let Some(&id) = self.index.find(hash, |&id| infos[id as usize].msg == msg) {
            return MsgId(id);
        }
        let id = self.infos.len() as u32;
        let type_name = self.model.type_name(&msg);
        let payload = self.model.payload(&msg, &self.names);
        let masked = self.masks.apply(type_name, &payload);
        let shown = self.texts.intern(&masked);
        let fingerprint = match self.model.hidden(&msg) {
            Some(hidden) => self.texts.intern(&format!("{masked} [{hidden}]")),
            None => shown,
        };
        let info = MsgInfo {
            type_: self.texts.intern(type_name),
            payload: self.texts.intern(&payload),
            fingerprint,
            shown,
            clock: self.model.clock(&msg),
            msg,
        };
        self.infos.push(info);
        let (infos, hasher) = (&self.infos, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(&infos[id as usize].msg));
        MsgId(id)
    }

    /// A world in which nothing has started but what starts by itself. [`Simulator::did`] tells what that did.
    #[must_use]
    pub fn empty_world(&mut self) -> World<M> {
        let mut world = World::empty();
        self.did.clear();
        let actors = self.model.actors().to_vec();
        for &actor in &actors {
            world.grow(actor);
            world.grow(self.model.cell(actor));
        }
        if self.model.starts_by_itself() {
            actors.into_iter().for_each(|actor| self.start_now(&mut world, actor));
            self.apply(&mut world, OUTSIDE);
        }
        world
    }

    /// Starts an actor; one that runs already is left as it is.
    pub fn start(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.crash_reason = None;
        self.start_now(world, actor);
        self.apply(world, OUTSIDE);
    }

    fn start_now(&mut self, world: &mut World<M>, actor: ActorId) {
        if matches!(world.status(actor), Status::Running | Status::Isolated) {
            return;
        }
        let cell = self.model.cell(actor);
        world.grow(actor.max(cell));
        world.status[actor.index()] = Status::Running;
        self.did.push(Did::Started(actor));
        let mut state = match &world.cells[cell.index()] {
            Some(shared) if cell != actor => Arc::clone(shared),
            _ => Arc::new(self.model.initial(actor)),
        };
        let mut ctx = Ctx {
            me: actor,
            from: OUTSIDE,
            effects: &mut self.effects,
            names: &mut self.names,
            crash_reason: &mut self.crash_reason,
        };
        self.model.start(Arc::make_mut(&mut state), &mut ctx);
        world.cells[cell.index()] = Some(state);
    }

    /// Puts a message from outside among the pending ones; gives its index, or `None` if nobody can ever take it.
    pub fn inject(&mut self, world: &mut World<M>, to: ActorId, msg: MsgId) -> Option<usize> {
        match world.status(to) {
            Status::Absent | Status::Stopped | Status::Isolated => None,
            Status::Running | Status::Crashed => {
                world.pending.push(Pending {
                    from: OUTSIDE,
                    to,
                    channel: OUTSIDE,
                    msg,
                    kind: PendingKind::External,
                    timer: 0,
                    survives: false,
                    via: None,
                });
                Some(world.pending.len() - 1)
            }
        }
    }

    /// Whether `pending[index]` may be delivered next: the network allows it and the receiver takes it.
    #[must_use]
    pub fn deliverable(&self, world: &World<M>, index: usize, rule: NetworkRule) -> bool {
        self.takes(world, &world.pending[index]) && network::allows(rule, &world.pending, index)
    }

    /// Whether the receiver would take the entry, whatever the network says.
    #[must_use]
    pub fn takes(&self, world: &World<M>, entry: &Pending) -> bool {
        matches!(world.status(entry.to), Status::Running | Status::Isolated)
            && self.model.accepts(
                world.cell(self.model.cell(entry.to)),
                entry.to,
                entry.from,
                &self.infos[entry.msg.0 as usize].msg,
            )
    }

    /// Delivers `pending[index]`, which the caller found [deliverable](Simulator::deliverable). Under `fifo-loss`
    /// what it overtakes is lost.
    pub fn deliver(&mut self, world: &mut World<M>, index: usize, rule: NetworkRule) -> Pending {
        self.did.clear();
        self.crash_reason = None;
        let index = match rule {
            NetworkRule::FifoLoss => network::overtaken(&mut world.pending, index),
            NetworkRule::Fifo | NetworkRule::Unordered => index,
        };
        let entry = world.pending.remove(index);
        if entry.kind == PendingKind::Repeating {
            world.pending.push(entry);
        }
        world.deliveries += 1;
        let cell = self.model.cell(entry.to);
        if let Some(state) = &mut world.cells[cell.index()] {
            let mut ctx = Ctx {
                me: entry.to,
                from: entry.from,
                effects: &mut self.effects,
                names: &mut self.names,
                crash_reason: &mut self.crash_reason,
            };
            self.model.deliver(Arc::make_mut(state), &self.infos[entry.msg.0 as usize].msg, &mut ctx);
        }
        self.apply(world, entry.to);
        entry
    }

    /// Runs code outside the actors.
    ///
    /// # Errors
    /// When the model knows no such action.
    pub fn action(
        &mut self,
        world: &mut World<M>,
        name: &str,
        fields: Option<&serde_json::Value>,
    ) -> Result<(), String> {
        self.did.clear();
        self.crash_reason = None;
        let mut ctx = Ctx {
            me: OUTSIDE,
            from: OUTSIDE,
            effects: &mut self.effects,
            names: &mut self.names,
            crash_reason: &mut self.crash_reason,
        };
        let cell = self.model.cell(OUTSIDE);
        world.grow(cell);
        let mut state = match &world.cells[cell.index()] {
            Some(state) => Arc::clone(state),
            None => Arc::new(self.model.initial(OUTSIDE)),
        };
        if let Err(reason) = self.model.action(Arc::make_mut(&mut state), name, fields, &mut ctx) {
            self.effects.clear();
            return Err(reason);
        }
        world.cells[cell.index()] = Some(state);
        self.apply(world, OUTSIDE);
        Ok(())
    }

    /// Applies the effects of a handler of `actor`, in order; those of actors it starts follow.
    fn apply(&mut self, world: &mut World<M>, actor: ActorId) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { from, channel, to, msg, via, external } => {
                    self.sent(world, (from, channel, to), msg, via, external);
                }
                Effect::SetTimer { name, to, msg, repeats, survives } => {
                    let timer = self.timer_index(name);
                    self.cancel(world, to, timer);
                    let msg = self.intern(msg);
                    let kind = if repeats { PendingKind::Repeating } else { PendingKind::Timer };
                    let entry = Pending { from: to, to, channel: to, msg, kind, timer, survives, via: None };
                    world.pending.push(entry);
                    self.did.push(Did::TimerSet(entry));
                }
                Effect::CancelTimer { name, to } => {
                    let timer = self.timer_index(name);
                    self.cancel(world, to, timer);
                }
                Effect::Start(actor) => self.start_now(world, actor),
                Effect::Stop(actor) => self.stop_now(world, actor),
                Effect::Crash => self.crash_now(world, actor),
            }
        }
        // A started actor's own effects were collected in a new list.
        if self.effects.is_empty() {
            self.effects = effects;
        } else {
            self.apply(world, OUTSIDE);
        }
    }

    fn sent(
        &mut self,
        world: &mut World<M>,
        (from, channel, to): (ActorId, ActorId, ActorId),
        msg: M::Msg,
        via: Option<Via>,
        external: bool,
    ) {
        // What is sent to the outside leaves the system and is never recorded.
        if to == OUTSIDE {
            return;
        }
        let reaches = match world.status(to) {
            Status::Absent | Status::Stopped => return,
            Status::Isolated => false,
            Status::Running | Status::Crashed => world.status(channel) != Status::Isolated,
        };
        let msg = self.intern(msg);
        let kind = if external { PendingKind::External } else { PendingKind::Message };
        let entry = Pending { from, to, channel, msg, kind, timer: 0, survives: false, via };
        if reaches {
            world.pending.push(entry);
        }
        self.did.push(Did::Sent(entry));
    }

    fn timer_index(&mut self, name: &'static str) -> u8 {
        let at = self.timers.iter().position(|&t| std::ptr::eq(t, name) || t == name).unwrap_or_else(|| {
            self.timers.push(name);
            self.timers.len() - 1
        });
        u8::try_from(at).unwrap_or(u8::MAX)
    }

    fn cancel(&mut self, world: &mut World<M>, actor: ActorId, timer: u8) {
        let live = world.pending.iter().position(|p| p.to == actor && p.kind.is_timer() && p.timer == timer);
        if let Some(at) = live {
            let entry = world.pending.remove(at);
            // A timer set and cancelled within one step never becomes visible.
            if let Some(set) = self.did.iter().rposition(|d| *d == Did::TimerSet(entry)) {
                self.did.remove(set);
            } else {
                self.did.push(Did::TimerCancelled(entry));
            }
        }
    }

    /// Makes an actor fail, as an injected fault.
    pub fn crash(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.crash_reason = Some("injected".into());
        world.grow(actor);
        self.crash_now(world, actor);
        self.apply(world, OUTSIDE);
    }

    fn crash_now(&mut self, world: &mut World<M>, actor: ActorId) {
        if !matches!(world.status(actor), Status::Running | Status::Isolated) {
            return;
        }
        self.did.push(Did::Crashed(actor));
        if self.model.restarts_by_itself() {
            self.restart_now(world, actor);
        } else {
            world.status[actor.index()] = Status::Crashed;
            world.pending.retain(|p| p.to != actor || !p.kind.is_timer());
        }
    }

    /// Begins a new, blank life of an actor; its inbox is kept.
    pub fn restart(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.crash_reason = None;
        world.grow(actor);
        self.restart_now(world, actor);
        self.apply(world, OUTSIDE);
    }

    fn restart_now(&mut self, world: &mut World<M>, actor: ActorId) {
        world.pending.retain(|p| p.to != actor || !p.kind.is_timer() || p.survives);
        world.status[actor.index()] = Status::Absent;
        self.did.push(Did::Restarted(actor));
        self.start_now(world, actor);
    }

    /// Cuts an actor off: nothing it sends from now on, and nothing sent to it, becomes pending.
    pub fn isolate(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        if world.status(actor) == Status::Running {
            world.status[actor.index()] = Status::Isolated;
        }
    }

    /// Ends an actor for good, with everything pending for it.
    pub fn stop(&mut self, world: &mut World<M>, actor: ActorId) {
        self.did.clear();
        self.stop_now(world, actor);
    }

    fn stop_now(&mut self, world: &mut World<M>, actor: ActorId) {
        world.grow(actor);
        world.status[actor.index()] = Status::Stopped;
        world.pending.retain(|p| p.to != actor);
    }

    /// What invariants and conditions may look at.
    #[must_use]
    pub fn view<'a>(&'a self, world: &'a World<M>) -> View<'a, M> {
        View { world, model: &self.model, names: &self.names }
    }

    /// What is pending, as a [`Bound`](crate::model::Bound) sees it.
    #[must_use]
    pub fn waiting<'a>(&'a self, world: &'a World<M>) -> Vec<Waiting<'a, M::Msg>> {
        let entry = |p: &'a Pending| Waiting { from: p.from, to: p.to, msg: &self.info(p.msg).msg };
        world.pending().iter().map(entry).collect()
    }

    /// Whether the system is still starting up by itself.
    #[must_use]
    pub fn starting_up(&self, world: &World<M>) -> bool {
        let cell = self.model.cell(OUTSIDE).index();
        world.cells.get(cell).and_then(Option::as_ref).is_some_and(|state| self.model.starting_up(state))
    }

    /// Checks the invariants on one configuration, with what earlier checks remembered.
    pub fn check(&self, world: &World<M>, history: &mut M::History, found: &mut Vec<Violation>) {
        self.model.check(&self.view(world), history, found);
    }

    /// The number that changes when anything changes that an invariant reads of the cell that `actor` works on;
    /// `None` where the model does not say.
    #[must_use]
    pub fn watch(&self, world: &World<M>, actor: ActorId) -> Option<u64> {
        world.cells[self.model.cell(actor).index()].as_ref().and_then(|state| self.model.watch(state))
    }

    /// How an actor's clock stands to a message's when it would be delivered now: −1 the message is older, 0 the
    /// same, 1 newer; `None` where either has no clock.
    #[must_use]
    pub fn relative_clock(&self, world: &World<M>, entry: &Pending) -> Option<i8> {
        let message = self.infos[entry.msg.0 as usize].clock?;
        let cell = world.cells[self.model.cell(entry.to).index()].as_ref()?;
        let actor = self.model.actor_clock(cell)?;
        Some(message.cmp(&actor) as i8)
    }
}
