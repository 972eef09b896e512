//! Schedules in the simulator's terms: texts become numbers, once, so that replaying costs no comparisons of text.

use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use serde_json::Value;

use crate::model::Model;
use crate::names::{ActorId, OUTSIDE};
use crate::sim::{Did, MsgId, Simulator};
pub use crate::want::{Refusal, Want};
use crate::want::{external_message, sends_itself, want};
use crate::world::World;

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
    /// A second copy of a pending message.
    Duplicate(Want),
    /// Gone for good.
    Stop(ActorId),
    /// Code outside the actors; the number is an index into [`Script::actions`].
    Action(u32),
    /// The log notes that the actor failed, began anew or started because of the step before; nothing to do.
    Noted(ActorId),
    /// The log notes a message from outside that the model sends itself; nothing to do.
    Sent,
}

impl Act {
    /// Whether it counts as a delivery.
    #[must_use]
    pub fn is_delivery(&self) -> bool {
        matches!(self, Act::Deliver(_))
    }

    /// Whether it is a fault: the failure of an actor, its next incarnation, an end, a cut from the network or
    /// its end, or a message that the network repeats.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        use Act::{Crash, Duplicate, Heal, Isolate, Restart, Stop};
        matches!(self, Crash(_) | Restart(_) | Isolate(_) | Heal(_) | Stop(_) | Duplicate(_))
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
            Act::Deliver(want) | Act::Duplicate(want) => Some(want.to),
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
            Act::Duplicate(want) => {
                let index = want.find(sim, world).ok_or(Refusal::NotPending)?;
                sim.duplicate(world, index).ok_or(Refusal::NotPending)?;
            }
            Act::Deliver(want) => {
                let index = want.locate(sim, world, rule)?;
                sim.deliver(world, index, rule);
            }
        }
        // A crash is a step like others where it counts as a violation.
        let taken = world.panic().is_none() || sim.crash_of(world).is_some();
        if taken { Ok(()) } else { Err(Refusal::Panicked) }
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
    /// starts of all the model's actors in front, unless it is [exact](demi_schemas::ScheduleHeader::exact); `started` says how many.
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
        if !told && !schedule.header.exact && !sim.model().runtime().starts_by_itself() {
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
            StepKind::Duplicate => Act::Duplicate(Want { external: None, ..want(sim, step, to)? }),
            StepKind::Stop => Act::Stop(to),
            StepKind::Action => {
                self.actions.push((step.type_.clone().unwrap_or_default(), step.fields.clone()));
                Act::Action(self.actions.len() as u32 - 1)
            }
        })
    }
}
