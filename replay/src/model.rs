//! The model API: what a user writes to describe a system.
//!
//! A model is a deterministic transition from (state of an actor, delivered message) to (new state, messages,
//! timers). It knows nothing of queues, schedules or networks: the [`Simulator`](crate::Simulator) owns those.
//! A complete small model is in `examples/token_ring.rs`.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use demi_schemas::event::{TimerInfo, Via};
use demi_schemas::scenario::Mask;
use serde_json::Value;

use crate::names::{ActorId, Names, OUTSIDE};
pub use crate::view::{Bound, Configuration, Least, Sees, View, Waiting};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The key by which violations are compared: two sets of violations are the same if they share one.
    pub fingerprint: String,
    /// The actors whose state breaks it.
    pub affected: Vec<ActorId>,
}

/// A message from outside, as a schedule or log describes it.
#[derive(Clone, Copy, Debug)]
pub struct ExternalMessage<'a> {
    /// Message type tag.
    pub type_: &'a str,
    /// Full content.
    pub payload: &'a str,
    /// Structured content, where the logger gave it.
    pub fields: Option<&'a Value>,
}

/// A random external event a model proposes to the fuzzer.
#[derive(Clone, Debug)]
pub struct Proposal<Msg> {
    /// Receiver.
    pub to: ActorId,
    /// The message.
    pub msg: Msg,
    /// Structured content for the log, from which [`Model::external`] re-creates the message.
    pub fields: Value,
}

/// A message from outside without one of its components.
#[derive(Clone, Debug)]
pub struct Smaller<Msg> {
    /// The component that is left out. Messages that have the same lose it together; one that is the name of an
    /// actor goes with that actor.
    pub without: String,
    /// What is left of the message.
    pub msg: Msg,
    /// Structured content for the schedule, from which [`Model::external`] re-creates it.
    pub fields: Value,
}

/// A system of actors. See the [module's](self) first lines.
pub trait Model: Clone + Send + Sync + 'static {
    /// The state of one actor, or of a group of actors that share memory ([`Model::cell`]). Equality and hash
    /// decide when two worlds are the same: leave out counters that only give names to things.
    type State: Clone + Debug + Eq + Hash + Send + Sync;
    /// Messages and what timers carry. Equal messages are one message to the simulator.
    type Msg: Clone + Debug + Eq + Hash + Send + Sync;
    /// What invariants remember from one check to the next, such as the first leader of each term.
    type History: Clone + Default + Debug + Send + Sync;

    /// The actors that exist or can be started when a run begins, in the order in which they start.
    fn actors(&self) -> &[ActorId];

    /// Whether these actors start by themselves: worlds begin with them, and no schedule tells that they start.
    fn starts_by_itself(&self) -> bool {
        false
    }

    /// Whether the system is still starting up by itself. What is delivered until then is no choice of a schedule:
    /// minimization leaves nothing of it out.
    fn starting_up(&self, state: &Self::State) -> bool {
        let _ = state;
        false
    }

    /// The state of an actor that has just started or restarted.
    fn initial(&self, actor: ActorId) -> Self::State;

    /// Which state an actor works on. Actors that share memory return the same representative; by default each
    /// has its own.
    fn cell(&self, actor: ActorId) -> ActorId {
        actor
    }

    /// What an actor does when it starts; nothing by default.
    fn start(&self, state: &mut Self::State, ctx: &mut Ctx<'_, Self::Msg>) {
        let _ = (state, ctx);
    }

    /// Handles one delivered message or fired timer to the end.
    fn deliver(&self, state: &mut Self::State, msg: &Self::Msg, ctx: &mut Ctx<'_, Self::Msg>);

    /// Whether the actor takes that message now. A blocked actor (one that waits for an answer) refuses all
    /// but the answer; by default everything is taken.
    fn accepts(&self, state: &Self::State, actor: ActorId, from: ActorId, msg: &Self::Msg) -> bool {
        let _ = (state, actor, from, msg);
        true
    }

    /// Whether a failed actor begins a new, blank life by itself at once, keeping its inbox.
    fn restarts_by_itself(&self) -> bool {
        false
    }

    /// Runs code outside the actors, named by a schedule's `action` step, on the state of the outside
    /// ([`Model::cell`] of [`OUTSIDE`]).
    ///
    /// # Errors
    /// When the model knows no such action, or it is not possible yet. The state must then be as it was.
    fn action(
        &self,
        state: &mut Self::State,
        name: &str,
        fields: Option<&Value>,
        ctx: &mut Ctx<'_, Self::Msg>,
    ) -> Result<(), String> {
        let _ = (state, fields, ctx);
        Err(format!("the model knows no action '{name}'"))
    }

    /// The actor that an action brings into existence. Minimization keeps or drops the action together with the
    /// faults injected into that actor.
    fn creates(&self, name: &str, fields: Option<&Value>) -> Option<ActorId> {
        let _ = (name, fields);
        None
    }

    /// Message type tag; for timers, the name of what they carry.
    fn type_name(&self, msg: &Self::Msg) -> &'static str;

    /// Full content of a message, exactly as the system logs it.
    fn payload(&self, msg: &Self::Msg, names: &Names) -> String;

    /// What tells messages apart that are logged alike, such as the owner of a piece of code that is scheduled: it
    /// becomes part of their fingerprints.
    fn hidden(&self, msg: &Self::Msg) -> Option<String> {
        let _ = msg;
        None
    }

    /// What is logged of a timer besides its payload.
    fn timer_info(&self, msg: &Self::Msg) -> TimerInfo {
        let _ = msg;
        TimerInfo::default()
    }

    /// Rewritings of payloads before they are compared as fingerprints, such as hiding a timer's generation.
    fn masks(&self) -> Vec<Mask> {
        Vec::new()
    }

    /// The logical clock that a message carries (Raft: its term; Spark: its job), if it has one. What was delivered with
    /// one clock is tried to be left out together.
    fn clock(&self, msg: &Self::Msg) -> Option<i64> {
        let _ = msg;
        None
    }

    /// The logical clock of an actor, if it has one: messages are then compared with it, and an epoch is what an actor did
    /// at one clock.
    fn actor_clock(&self, state: &Self::State) -> Option<i64> {
        let _ = state;
        None
    }

    /// Whether a message that logs take for one from outside is sent by the model itself, by code of the system
    /// that runs outside its actors.
    fn sends_itself(&self, message: ExternalMessage<'_>) -> bool {
        let _ = message;
        false
    }

    /// Re-creates a message from outside.
    ///
    /// # Errors
    /// What is missing or not understood.
    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Self::Msg, String>;

    /// What is left of a message from outside without each of its components: a member of a list, a command of a
    /// batch. Nothing, the default, for messages that cannot be smaller.
    fn smaller(&self, msg: &Self::Msg, names: &Names) -> Vec<Smaller<Self::Msg>> {
        let _ = (msg, names);
        Vec::new()
    }

    /// Checks the invariants that the scenario names, on one configuration.
    ///
    /// `history` is what earlier checks of the same run remembered; a fresh one asks about this configuration
    /// alone.
    fn check(&self, view: &View<'_, Self>, history: &mut Self::History, found: &mut Vec<Violation>);

    /// A number that changes whenever anything changes that an invariant reads of this state, so that a delivery
    /// that leaves it alone needs no check. `None`, the default, is always right: everything is checked.
    fn watch(&self, state: &Self::State) -> Option<u64> {
        let _ = state;
        None
    }

    /// A lower bound on the deliveries that are missing to a violation with one of these fingerprints, for proofs
    /// that nothing shorter exists. It must never say more than is needed, from any configuration that no fault led to:
    /// deliveries at different actors, and of different kinds, may be added up. `None`, the default, where the model knows
    /// none.
    fn bound(&self, target: &[String], names: &Names) -> Option<Bound<Self>> {
        let _ = (target, names);
        None
    }

    /// A state as it would be if actors had each other's places; `to` tells for each who takes its place. Where states
    /// and messages can be renamed a delivery must do the same to what is renamed as to what is not, and so must the
    /// invariants but for the names they report; searches then take configurations that differ in the places of
    /// actors for one. `None`, the default, is always right.
    fn renamed(&self, state: &Self::State, to: &dyn Fn(ActorId) -> ActorId) -> Option<Self::State> {
        let _ = (state, to);
        None
    }

    /// A message as it would be if actors had each other's places, as [`Model::renamed`].
    fn renamed_message(&self, msg: &Self::Msg, to: &dyn Fn(ActorId) -> ActorId) -> Option<Self::Msg> {
        let _ = (msg, to);
        None
    }

    /// The actor's variables, for people and for `state` records.
    fn describe(&self, state: &Self::State, names: &Names) -> Value;

    /// Messages from outside that every run begins with.
    fn bootstrap(&self, names: &Names) -> Vec<Proposal<Self::Msg>> {
        let _ = names;
        Vec::new()
    }

    /// The `n`-th random message from outside; `choice` is a uniformly random number.
    fn client_message(&self, n: u64, choice: u64, names: &Names) -> Option<Proposal<Self::Msg>> {
        let _ = (n, choice, names);
        None
    }

    /// Whether a named condition holds, for fuzz programs that wait for one.
    ///
    /// # Errors
    /// When the model knows no such condition.
    fn condition(&self, name: &str, view: &View<'_, Self>) -> Result<bool, String> {
        let _ = view;
        Err(format!("the model knows no condition '{name}'"))
    }
}

/// What a handler asks the simulator to do, in order.
#[derive(Clone, Debug)]
pub(crate) enum Effect<Msg> {
    Send { from: ActorId, channel: ActorId, to: ActorId, msg: Msg, via: Option<Via>, external: bool },
    SetTimer { name: &'static str, to: ActorId, msg: Msg, repeats: bool, survives: bool },
    CancelTimer { name: &'static str, to: ActorId },
    Start(ActorId),
    Stop(ActorId),
    Crash,
}

/// What a handler may do besides changing its state. Effects happen in order when the handler ends.
pub struct Ctx<'a, Msg> {
    pub(crate) me: ActorId,
    pub(crate) from: ActorId,
    pub(crate) effects: &'a mut Vec<Effect<Msg>>,
    pub(crate) names: &'a mut Names,
    pub(crate) crash_reason: &'a mut Option<String>,
}

impl<Msg> Ctx<'_, Msg> {
    /// The actor that handles.
    #[must_use]
    pub fn me(&self) -> ActorId {
        self.me
    }

    /// The sender of the message being handled, [`OUTSIDE`] for timers and messages from outside.
    #[must_use]
    pub fn sender(&self) -> ActorId {
        self.from
    }

    /// Names of the actors; a name that is new becomes known.
    pub fn names(&mut self) -> &mut Names {
        self.names
    }

    /// Sends a message.
    pub fn send(&mut self, to: ActorId, msg: Msg) {
        let me = self.me;
        self.effects.push(Effect::Send { from: me, channel: me, to, msg, via: None, external: false });
    }

    /// Puts a message back into the own inbox under the name of the sender of the message being handled. The
    /// copy joins the end of that sender's channel.
    pub fn forward(&mut self, msg: Msg) {
        let (from, to) = (self.from, self.me);
        self.effects.push(Effect::Send {
            from,
            channel: from,
            to,
            msg,
            via: Some(Via::Forward),
            external: false,
        });
    }

    /// Sends under another name: `channel` is the actor that really sends ([`OUTSIDE`] for none, which is
    /// outside every order), `from` the name the message carries.
    pub fn send_as(&mut self, from: ActorId, channel: ActorId, to: ActorId, msg: Msg, via: Via) {
        self.effects.push(Effect::Send { from, channel, to, msg, via: Some(via), external: false });
    }

    /// Sends without a sender: a scheduled message that may be delivered at any time.
    pub fn send_unordered(&mut self, to: ActorId, msg: Msg, via: Via) {
        self.send_as(OUTSIDE, OUTSIDE, to, msg, via);
    }

    /// Arms a timer of this actor; a live one of that name is cancelled first. A one-shot timer is gone when it
    /// fires, a repeating one is armed again at once.
    pub fn set_timer(&mut self, name: &'static str, msg: Msg, repeats: bool) {
        let to = self.me;
        self.effects.push(Effect::SetTimer { name, to, msg, repeats, survives: false });
    }

    /// As [`Ctx::set_timer`], for a timer that stays armed when the actor restarts.
    pub fn set_surviving_timer(&mut self, name: &'static str, msg: Msg) {
        let to = self.me;
        self.effects.push(Effect::SetTimer { name, to, msg, repeats: false, survives: true });
    }

    /// Cancels a timer of this actor, if it is live. A cancelled timer never fires.
    pub fn cancel_timer(&mut self, name: &'static str) {
        let to = self.me;
        self.effects.push(Effect::CancelTimer { name, to });
    }

    /// Brings an actor into existence.
    pub fn start_actor(&mut self, actor: ActorId) {
        self.effects.push(Effect::Start(actor));
    }

    /// Ends an actor for good.
    pub fn stop_actor(&mut self, actor: ActorId) {
        self.effects.push(Effect::Stop(actor));
    }

    /// The handler fails: what it sent so far stays sent, the message is consumed.
    pub fn crash(&mut self, reason: impl Into<String>) {
        *self.crash_reason = Some(reason.into());
        self.effects.push(Effect::Crash);
    }
}

/// A shared state with copy on write.
pub type Cell<M> = Arc<<M as Model>::State>;
