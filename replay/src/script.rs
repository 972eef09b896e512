//! Schedules in the simulator's terms: texts become numbers, once, so that replaying costs no comparisons of text.

use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use serde_json::Value;

use crate::model::{ExternalMessage, Model};
use crate::names::{ActorId, OUTSIDE, TextId};
use crate::network;
use crate::queue::Place;
use crate::sim::{Did, MsgId, MsgInfo, Simulator};
use crate::world::{Pending, PendingKind, World};

/// Which message or timer a step wants delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Want {
    /// The sender it names; not compared for timers.
    pub from: ActorId,
    /// The receiver.
    pub to: ActorId,
    /// Type tag.
    pub type_: TextId,
    /// Full content.
    pub payload: TextId,
    /// Content under the masks.
    pub fingerprint: TextId,
    /// Whether it is a timer.
    pub timer: bool,
    /// For messages from outside: the message, injected if it is not pending.
    pub external: Option<MsgId>,
    /// How the message's clock stood to the receiver's: −1 older, 0 same, 1 newer, if both have one.
    pub clock: Option<i8>,
}

/// One step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Start an actor.
    Start(ActorId),
    /// Put a message from outside among the pending ones.
    Inject(ActorId, MsgId),
    /// Deliver a message or fire a timer.
    Deliver(Want),
    /// An injected failure.
    Crash(ActorId),
    /// A new, blank life.
    Restart(ActorId),
    /// Cut off from the network.
    Isolate(ActorId),
    /// Back on the network.
    Heal(ActorId),
    /// Gone for good.
    Stop(ActorId),
    /// Code outside the actors; the number is an index into [`Script::actions`].
    Action(u32),
    /// The log notes that the actor failed, began anew or started because of the step before; nothing to do.
    Noted(ActorId),
    /// The log notes a message from outside that the model sends itself; nothing to do.
    Sent,
}

/// Why an act could not be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What is wanted is not pending.
    NotPending,
    /// The receiver of this pending entry does not take it.
    NotTaken(usize),
    /// The network holds this pending entry back.
    Held(usize),
    /// The model refuses the action.
    Action(String),
    /// The model's code panicked; the world goes no further ([`World::panic`]).
    Panicked,
}

impl Act {
    /// Whether it counts as a delivery.
    #[must_use]
    pub fn is_delivery(&self) -> bool {
        matches!(self, Act::Deliver(_))
    }

    /// Whether it is a fault: the failure of an actor, a new life after one, an end, a cut from the network or
    /// its end.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(self, Act::Crash(_) | Act::Restart(_) | Act::Isolate(_) | Act::Heal(_) | Act::Stop(_))
    }

    /// Whether it counts as an external event: a delivered message from outside, a start, or an injected fault.
    #[must_use]
    pub fn is_external(&self) -> bool {
        match self {
            Act::Deliver(want) => want.external.is_some(),
            Act::Inject(..) | Act::Noted(_) | Act::Sent => false,
            _ => true,
        }
    }

    /// The actor it happens at, if it happens at one.
    #[must_use]
    pub fn actor(&self) -> Option<ActorId> {
        match self {
            Act::Deliver(want) => Some(want.to),
            Act::Start(a)
            | Act::Inject(a, _)
            | Act::Crash(a)
            | Act::Restart(a)
            | Act::Isolate(a)
            | Act::Heal(a)
            | Act::Stop(a)
            | Act::Noted(a) => Some(*a),
            Act::Action(_) | Act::Sent => None,
        }
    }

    /// Performs the act exactly as it stands. [`Simulator::did`] then tells what it did.
    ///
    /// # Errors
    /// When it is not possible now; the world is then as it was, but for a message from outside that may have been
    /// put among the pending ones.
    pub fn perform<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        world: &mut World<M>,
        actions: &[(String, Option<Value>)],
        rule: NetworkRule,
    ) -> Result<(), Refusal> {
        match self {
            Act::Start(actor) => sim.start(world, *actor),
            Act::Crash(actor) => sim.crash(world, *actor),
            Act::Restart(actor) => sim.restart(world, *actor),
            Act::Isolate(actor) => sim.isolate(world, *actor),
            Act::Heal(actor) => sim.heal(world, *actor),
            Act::Stop(actor) => sim.stop(world, *actor),
            Act::Noted(_) | Act::Sent => {}
            Act::Inject(to, msg) => {
                sim.inject(world, *to, *msg).ok_or(Refusal::NotPending)?;
            }
            Act::Action(index) => match actions.get(*index as usize) {
                Some((name, fields)) => {
                    sim.action(world, name, fields.as_ref()).map_err(Refusal::Action)?;
                }
                None => return Err(Refusal::Action("there is no such action".into())),
            },
            Act::Deliver(want) => {
                let index = want.locate(sim, world, rule)?;
                sim.deliver(world, index, rule);
            }
        }
        if world.panic().is_some() { Err(Refusal::Panicked) } else { Ok(()) }
    }
}

/// Failures and new lives that steps brought about by themselves. Logs have them too, and not always right after
/// their cause, for other actors' steps may come between; they must not be done a second time.
#[derive(Clone, Debug, Default)]
pub struct OwnFailures(Vec<Did>);

impl OwnFailures {
    /// Notes what a performed act brought about besides what it says itself.
    pub fn note(&mut self, act: &Act, did: &[Did]) {
        if let Some(actor) = act.actor().filter(|_| !matches!(act, Act::Inject(..))) {
            self.0.retain(|d| d.failed() != Some(actor));
        }
        self.0.extend(did.iter().filter(|d| match (act, d) {
            (Act::Crash(a), Did::Crashed(b)) => a != b,
            (Act::Start(a) | Act::Restart(a), Did::Started(b) | Did::Restarted(b)) => a != b,
            (_, d) => d.failed().is_some(),
        }));
    }

    /// Whether an act only tells what was noted, and is not to be performed.
    #[must_use]
    pub fn told_by(&self, act: &Act) -> bool {
        match act {
            Act::Noted(actor) => self.0.iter().any(|d| d.failed() == Some(*actor)),
            Act::Crash(actor) => self.0.contains(&Did::Crashed(*actor)),
            Act::Restart(actor) => self.0.contains(&Did::Restarted(*actor)),
            _ => false,
        }
    }
}

/// A schedule in a simulator's terms; meaningless to another simulator.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// What to do.
    pub acts: Vec<Act>,
    /// Names and arguments of the actions.
    pub actions: Vec<(String, Option<Value>)>,
}

/// Why a schedule makes no sense to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {step}: {reason}")]
pub struct ScriptError {
    /// Number of the step, from 1.
    pub step: usize,
    /// What is wrong.
    pub reason: String,
}

impl Script {
    /// Translates a schedule, step by step: `acts[i]` is step i + 1. A schedule without any `start` step gets the
    /// starts of all the model's actors in front; `started` says how many.
    ///
    /// # Errors
    /// When the model cannot re-create a message from outside.
    pub fn compile<M: Model>(
        sim: &mut Simulator<M>,
        schedule: &Schedule,
    ) -> Result<(Script, usize), ScriptError> {
        let mut script = Script::default();
        let mut started = 0;
        let told = schedule.steps.iter().any(|s| s.kind == StepKind::Start && s.is_external());
        if !told && !sim.model().runtime().starts_by_itself() {
            script.acts.extend(sim.model().actors().iter().map(|&a| Act::Start(a)));
            started = script.acts.len();
        }
        for (index, step) in schedule.steps.iter().enumerate() {
            let act = script.act(sim, step).map_err(|reason| ScriptError { step: index + 1, reason })?;
            script.acts.push(act);
        }
        Ok((script, started))
    }

    fn act<M: Model>(&mut self, sim: &mut Simulator<M>, step: &Step) -> Result<Act, String> {
        let to = if step.to.is_empty() { OUTSIDE } else { sim.names_mut().id(&step.to) };
        Ok(match step.kind {
            StepKind::Start | StepKind::Crash | StepKind::Restart if step.external == Some(false) => {
                Act::Noted(to)
            }
            StepKind::Start => Act::Start(to),
            StepKind::Send => Act::Sent,
            StepKind::External if sends_itself(sim, step) => Act::Sent,
            StepKind::External => Act::Inject(to, external_message(sim, step)?),
            StepKind::Deliver | StepKind::Timer => Act::Deliver(want(sim, step, to)?),
            StepKind::Crash => Act::Crash(to),
            StepKind::Restart => Act::Restart(to),
            StepKind::Isolate => Act::Isolate(to),
            StepKind::Heal => Act::Heal(to),
            StepKind::Stop => Act::Stop(to),
            StepKind::Action => {
                self.actions.push((step.type_.clone().unwrap_or_default(), step.fields.clone()));
                Act::Action(self.actions.len() as u32 - 1)
            }
        })
    }
}

fn message_of(step: &Step) -> ExternalMessage<'_> {
    let type_ = step.type_.as_deref().unwrap_or("");
    let payload = step.payload.as_deref().unwrap_or("");
    ExternalMessage { type_, payload, fields: step.fields.as_ref() }
}

fn sends_itself<M: Model>(sim: &Simulator<M>, step: &Step) -> bool {
    sim.model().logs().sends_itself(message_of(step))
}

fn external_message<M: Model>(sim: &mut Simulator<M>, step: &Step) -> Result<MsgId, String> {
    let model = sim.model().clone();
    let message = message_of(step);
    let msg = model.logs().external(message, sim.names_mut()).or_else(|reason| {
        let proposed = model.workload().bootstrap(sim.names()).into_iter().map(|proposal| proposal.msg);
        let is_it = |msg: &M::Msg| model.logs().payload(msg, sim.names()) == message.payload;
        proposed.into_iter().find(is_it).ok_or(reason)
    })?;
    Ok(sim.intern(msg))
}

fn want<M: Model>(sim: &mut Simulator<M>, step: &Step, to: ActorId) -> Result<Want, String> {
    let type_text = step.type_.as_deref().unwrap_or("");
    let payload_text = step.payload.as_deref().unwrap_or("");
    let timer = step.kind == StepKind::Timer;
    let from = match step.from.as_deref() {
        Some(name) => sim.names_mut().id(name),
        None if timer => to,
        None => OUTSIDE,
    };
    let external = if step.external == Some(true) && !timer && !sends_itself(sim, step) {
        Some(external_message(sim, step)?)
    } else {
        None
    };
    let masked = step.fingerprint.as_deref().unwrap_or(payload_text);
    Ok(Want {
        from,
        to,
        type_: sim.intern_text(type_text),
        payload: sim.intern_text(payload_text),
        fingerprint: sim.fingerprint(type_text, masked),
        timer,
        external,
        clock: None,
    })
}

impl Want {
    /// The want that asks for exactly this pending entry.
    #[must_use]
    pub fn of<M: Model>(sim: &Simulator<M>, world: &World<M>, entry: &Pending) -> Want {
        let info = sim.info(entry.msg);
        Want {
            from: entry.from,
            to: entry.to,
            type_: info.type_,
            payload: info.payload,
            fingerprint: info.fingerprint,
            timer: entry.kind.is_timer(),
            external: (entry.kind == PendingKind::External).then_some(entry.msg),
            clock: sim.relative_clock(world, entry),
        }
    }

    /// Where the entry is pending.
    #[must_use]
    pub fn place(&self) -> Place {
        if self.timer { Place::timers(self.to) } else { Place::between(self.from, self.to) }
    }

    /// Whether the entry is between the same two actors, and of the same sort.
    #[must_use]
    pub fn same_place(&self, entry: &Pending) -> bool {
        self.to == entry.to && self.timer == entry.kind.is_timer() && (self.timer || self.from == entry.from)
    }

    /// Index of the oldest pending entry with exactly this content.
    #[must_use]
    pub fn find<M: Model>(&self, sim: &Simulator<M>, world: &World<M>) -> Option<usize> {
        world.pending_at(self.place()).find(|&at| {
            let p = &world.pending()[at];
            self.same_place(p) && {
                let info = sim.info(p.msg);
                // What a log does not show is compared where the schedule tells it.
                info.payload == self.payload && (info.fingerprint == info.shown || self.fits(info))
            }
        })
    }

    /// Whether a message has the wanted fingerprint, which may leave out what logs do not show.
    #[must_use]
    pub fn fits<Msg>(&self, info: &MsgInfo<Msg>) -> bool {
        self.fingerprint == info.fingerprint || self.fingerprint == info.shown
    }

    /// Index of the pending entry to deliver now; a message from outside is put among the pending ones first.
    ///
    /// # Errors
    /// When there is none, or it may not be delivered now.
    pub fn locate<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        world: &mut World<M>,
        rule: NetworkRule,
    ) -> Result<usize, Refusal> {
        let index = match (self.find(sim, world), self.external) {
            (Some(index), _) => index,
            (None, Some(msg)) => sim.inject(world, self.to, msg).ok_or(Refusal::NotPending)?,
            (None, None) => return Err(Refusal::NotPending),
        };
        if !sim.takes(world, &world.pending()[index]) {
            return Err(Refusal::NotTaken(index));
        }
        if !network::allows(rule, world.pending(), index) {
            return Err(Refusal::Held(index));
        }
        Ok(index)
    }

    /// The want as text, for people.
    #[must_use]
    pub fn text<M: Model>(&self, sim: &Simulator<M>) -> String {
        let payload = sim.text(self.payload);
        if self.timer {
            format!("timer {payload} of {}", sim.names().get(self.to))
        } else {
            format!("{} -> {}: {payload}", sim.names().get(self.from), sim.names().get(self.to))
        }
    }
}
