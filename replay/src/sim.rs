//! The simulator: delivers one pending entry at a time and applies what the handler asked for.

mod asserted;
mod crash;
mod effects;
mod incarnations;
mod led;
mod livelock;
mod look;
mod react;
mod stuck;

use std::borrow::Cow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use demi_schemas::schedule::Sent;
use demi_schemas::{NetworkRule, Scenario, ScenarioError};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

pub use self::asserted::Asserted;
pub use self::crash::{is_crash, stable};
pub use self::livelock::Livelock;
pub use self::react::{Asked, Op, Reactor};
use crate::fingerprint::Masks;
use crate::guard::{self, Panic};
use crate::model::{Ctx, Effect, Model, Status};
use crate::names::{ActorId, Names, OUTSIDE, TextId, Texts};
use crate::network;
pub use crate::pending::MsgId;
use crate::pending::{Pending, PendingKind};
use crate::vet::{Elsewhere, Told, Vet};
use crate::world::World;

/// What is known of an interned message; the texts are rendered once, when it is first seen.
#[derive(Clone, Debug)]
pub struct MsgInfo<Msg> {
    /// The message.
    pub msg: Msg,
    /// Its type tag.
    pub type_: TextId,
    /// What it has in common with messages of other types that may come in its place.
    pub role: Option<TextId>,
    /// Its full content.
    pub payload: TextId,
    /// Its content under the masks, with what is hidden.
    pub fingerprint: TextId,
    /// Its content under the masks alone, which is all that a log shows.
    pub shown: TextId,
    /// Its logical clock.
    pub clock: Option<i64>,
    /// A number for the message: equal messages have equal ones in any simulator.
    pub number: u128,
    /// What handlers read of it where a timer carries it; nothing for all of it.
    pub read: Option<TextId>,
    /// A number for that, the same in every simulator.
    pub timer_number: u128,
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
    /// An actor began its next incarnation.
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
    timers: Vec<(&'static str, u64)>,
    timer_numbers: FxHashMap<(&'static str, u64), u16>,
    /// By timer: a number that is the same in any simulator.
    timer_keys: Vec<u128>,
    /// By timer: its name as text.
    timer_texts: Vec<TextId>,
    did: Vec<Did>,
    crash_reason: Option<String>,
    led: bool,
    crash_counts: bool,
    stuck_counts: bool,
    livelock_counts: bool,
    hog_counts: Option<u32>,
    rule: NetworkRule,
    scratch: livelock::Scratch<M>,
    asserted: Asserted<M>,
    /// Asks elsewhere whether handlers return, where that is wanted.
    vet: Option<Vet>,
}

impl<M: Model> Simulator<M> {
    /// A simulator of `model`, whose constructor filled `names`.
    ///
    /// # Errors
    /// When a mask of the scenario is no regular expression, or an invariant is no predicate over the model's states.
    pub fn new(model: M, names: Names, scenario: &Scenario) -> Result<Self, ScenarioError> {
        let asserted = Asserted::new(scenario)?;
        let masks = Masks::new(model.logs().masks().iter().chain(&scenario.masks))?;
        let sim = Simulator {
            model,
            names,
            texts: Texts::default(),
            masks,
            infos: Vec::new(),
            index: HashTable::new(),
            hasher: FxBuildHasher,
            effects: Vec::new(),
            timers: Vec::new(),
            timer_numbers: FxHashMap::default(),
            timer_keys: Vec::new(),
            timer_texts: Vec::new(),
            did: Vec::new(),
            crash_reason: None,
            led: true,
            crash_counts: !scenario.no_crash,
            stuck_counts: scenario.deadlock,
            livelock_counts: scenario.livelock,
            hog_counts: scenario.hog,
            rule: scenario.network,
            scratch: livelock::Scratch::default(),
            asserted,
            vet: None,
        };
        if !sim.asserted.is_empty() {
            sim.first_variables()?;
        }
        Ok(sim)
    }

    /// From here on handlers run elsewhere before they run here; what is told of that.
    pub fn vet(&mut self, elsewhere: Arc<dyn Elsewhere>) -> Told {
        self.vet.insert(Vet::new(elsewhere)).told()
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The invariants that the scenario gives as predicates.
    #[must_use]
    pub fn asserted(&self) -> &Asserted<M> {
        &self.asserted
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
    pub fn masked<'a>(&self, type_: &str, payload: &'a str) -> Cow<'a, str> {
        self.masks.apply(type_, payload)
    }

    /// Whether a log writes this message as that send: both contents are compared under the masks.
    #[must_use]
    pub fn logs_as(&self, msg: MsgId, sent: &Sent) -> bool {
        let info = self.info(msg);
        // A log that leaves the type out is masked as the model's message is.
        let type_ = sent.type_.as_deref().unwrap_or_else(|| self.text(info.type_));
        self.text(info.shown) == self.masks.apply(type_, &sent.payload)
    }

    /// The fingerprint of a payload of that type: the payload under the masks.
    pub fn fingerprint(&mut self, type_: &str, payload: &str) -> TextId {
        let masked = self.masks.apply(type_, payload);
        self.texts.intern(&masked)
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

    /// A number for what a pending entry carries, as far as handlers read it: the same in every simulator.
    #[must_use]
    pub fn content(&self, entry: &Pending) -> u128 {
        let info = self.info(entry.msg);
        if entry.kind.is_timer() { info.timer_number } else { info.number }
    }

    /// The id of a message, which is added if it is new.
    pub fn intern(&mut self, msg: M::Msg) -> MsgId {
        let hash = self.hasher.hash_one(&msg);
        let infos = &self.infos;
        if let Some(&id) = self.index.find(hash, |&id| infos[id as usize].msg == msg) {
            return MsgId(id);
        }
        let id = self.infos.len() as u32;
        let type_name = guard::or(String::new(), || self.model.logs().type_name(&msg));
        let payload = guard::or(String::new(), || self.model.logs().payload(&msg, &self.names));
        let masked = self.masks.apply(&type_name, &payload);
        let shown = self.texts.intern(&masked);
        let fingerprint = match guard::or(None, || self.model.logs().hidden(&msg)) {
            Some(hidden) => self.texts.intern(&format!("{masked} [{hidden}]")),
            None => shown,
        };
        let mut number = Xxh3::new();
        msg.hash(&mut number);
        let read = guard::or(None, || self.model.logs().read_of_timer(&msg));
        let read = read.map(|read| self.texts.intern(&read));
        let number = number.digest128();
        let timer_number = match read {
            Some(read) => xxh3_128(format!("{type_name} {}", self.texts.get(read)).as_bytes()),
            None => number,
        };
        let role = self.role(&type_name, &payload);
        let info = MsgInfo {
            role,
            number,
            read,
            timer_number,
            type_: self.texts.intern(&type_name),
            payload: self.texts.intern(&payload),
            fingerprint,
            shown,
            clock: self.clock(&msg),
            msg,
        };
        self.infos.push(info);
        let (infos, hasher) = (&self.infos, &self.hasher);
        self.index.insert_unique(hash, id, |&id| hasher.hash_one(&infos[id as usize].msg));
        MsgId(id)
    }

    /// What a message of this type and content has in common with others that may come in its place.
    pub(crate) fn role(&mut self, type_: &str, payload: &str) -> Option<TextId> {
        let role = guard::or(None, || self.model.logs().role(type_, payload));
        role.map(|role| self.texts.intern(&role))
    }

    /// As [`intern`](Self::intern), of a message from outside with its structured content.
    pub fn intern_outside(&mut self, msg: M::Msg, fields: Option<&serde_json::Value>) -> MsgId {
        let id = self.intern(msg);
        self.tell_outside(id, fields.filter(|fields| !fields.is_null()));
        id
    }

    /// Tells whoever asks elsewhere about handlers of a message that no handler sent.
    fn tell_outside(&mut self, id: MsgId, fields: Option<&serde_json::Value>) {
        if let Some(vet) = &mut self.vet {
            let info = &self.infos[id.0 as usize];
            vet.outside(&info.msg, self.texts.get(info.type_), self.texts.get(info.payload), fields);
        }
    }

    /// A world in which nothing has started but what starts by itself. [`Simulator::did`] tells what that did.
    #[must_use]
    pub fn empty_world(&mut self) -> World<M> {
        let mut world = World::empty();
        self.did.clear();
        let actors = self.model.actors().to_vec();
        for &actor in &actors {
            world.grow(actor);
            world.grow(self.cell_of(actor));
        }
        if self.model.runtime().starts_by_itself() {
            actors.into_iter().for_each(|actor| self.start_now(&mut world, actor));
            self.apply(&mut world, OUTSIDE);
        }
        world
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
        world.panic.is_none()
            && matches!(world.status(entry.to), Status::Running | Status::Isolated)
            && self.accepts(world.cell(self.cell_of(entry.to)), entry)
    }

    /// Delivers `pending[index]`, which the caller found [deliverable](Simulator::deliverable). Under `fifo-loss`
    /// what it overtakes is lost.
    pub fn deliver(&mut self, world: &mut World<M>, index: usize, rule: NetworkRule) -> Pending {
        self.did.clear();
        self.crash_reason = None;
        let index = match rule {
            NetworkRule::FifoLoss if network::blocker(&world.pending, index).is_some() => {
                let mut left = world.pending.to_vec();
                let index = network::overtaken(&mut left, index);
                world.pending = left.into();
                index
            }
            _ => index,
        };
        let entry = world.pending.remove(index);
        if entry.kind == PendingKind::Repeating {
            world.pending.push(entry);
        }
        world.deliveries += 1;
        let cell = self.cell_of(entry.to);
        if let Some(state) = &mut world.cells[cell.index()] {
            self.announce(&entry);
            self.tell_outside(entry.msg, None);
            let mut ctx = Ctx {
                me: entry.to,
                from: entry.from,
                effects: &mut self.effects,
                names: &mut self.names,
                crash_reason: &mut self.crash_reason,
            };
            let msg = &self.infos[entry.msg.0 as usize].msg;
            let mut vetted =
                self.vet.as_mut().map(|vet| (Vet::deliver((entry.to, entry.from), &**state, msg), vet));
            let delivered = guard::guarded(|| {
                if let Some((call, vet)) = &mut vetted {
                    vet.ask(call, ctx.names).unwrap_or_else(|how| guard::raise(how));
                }
                self.model.deliver(Arc::make_mut(state), msg, &mut ctx);
            });
            if let Err(message) = delivered {
                self.effects.clear();
                world.panic = Panic::shared(entry.to, self.handling(&entry), message);
                return entry;
            }
            if let Some((call, vet)) = vetted {
                vet.made(call, &**state, &self.effects);
            }
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
        let cell = self.cell_of(OUTSIDE);
        world.grow(cell);
        let mut ctx = Ctx {
            me: OUTSIDE,
            from: OUTSIDE,
            effects: &mut self.effects,
            names: &mut self.names,
            crash_reason: &mut self.crash_reason,
        };
        let before = world.cells[cell.index()].clone();
        let mut vetted = self.vet.as_mut().map(|vet| (Vet::action(before.as_deref(), name, fields), vet));
        let done = guard::guarded(|| {
            if let Some((call, vet)) = &mut vetted {
                vet.ask(call, ctx.names).unwrap_or_else(|how| guard::raise(how));
            }
            let mut state = before.unwrap_or_else(|| Arc::new(self.model.initial(OUTSIDE)));
            self.model.runtime().action(Arc::make_mut(&mut state), name, fields, &mut ctx).map(|()| state)
        });
        let state = match done {
            Ok(Ok(state)) => state,
            Ok(Err(reason)) => {
                self.effects.clear();
                return Err(reason);
            }
            Err(message) => {
                self.effects.clear();
                let reason = format!("action '{name}' panicked: {message}");
                world.panic = Panic::shared(OUTSIDE, format!("action '{name}'"), message);
                return Err(reason);
            }
        };
        if let Some((call, vet)) = vetted {
            vet.made(call, &*state, &self.effects);
        }
        world.cells[cell.index()] = Some(state);
        self.apply(world, OUTSIDE);
        Ok(())
    }
}
