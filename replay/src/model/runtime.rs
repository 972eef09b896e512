//! What the runtime around the actors does besides delivering one message at a time to a state of its own.

use serde_json::Value;

use super::ctx::Ctx;
use crate::names::ActorId;

/// How often a network that repeats messages may deliver what was sent once.
///
/// Whether the network repeats messages at all is what the scenario says
/// ([`Scenario::duplicates`](demi_schemas::Scenario::duplicates)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// Once at most: what travels on a connection that numbers its messages.
    Never,
    /// As often as it likes.
    #[default]
    Any,
}

/// What the system's runtime does besides: shared memory, refusing, actions, start-up, failures.
///
/// Without it each actor has a state of its own, takes every message, and is blank after a restart.
pub trait Runtime<S, Msg> {
    /// Which state an actor works on. Actors that share memory return the same representative; by default each
    /// has its own.
    fn cell(&self, actor: ActorId) -> ActorId {
        actor
    }

    /// Whether the actor takes that message now. A blocked actor (one that waits for an answer) refuses all
    /// but the answer; by default everything is taken.
    fn accepts(&self, state: &S, actor: ActorId, from: ActorId, msg: &Msg) -> bool {
        let _ = (state, actor, from, msg);
        true
    }

    /// For whom an actor waits before it takes anything else; nobody by default.
    /// [`Simulator::deadlocked`](crate::Simulator::deadlocked) tells who waits in a circle.
    fn waits_for(&self, state: &S, actor: ActorId) -> Vec<ActorId> {
        let _ = (state, actor);
        Vec::new()
    }

    /// Whether an actor has begun something and is not done with it; by default whether it waits for somebody. In a scenario with
    /// `livelock = true` it is a violation when an actor stays so for ever although everything is delivered in its turn
    /// ([`Simulator::livelock`](crate::Simulator::livelock)).
    fn unfinished(&self, state: &S, actor: ActorId) -> bool {
        !self.waits_for(state, actor).is_empty()
    }

    /// Whether the model's actors start by themselves: worlds begin with them, and no schedule tells that they start.
    fn starts_by_itself(&self) -> bool {
        false
    }

    /// Whether the system is still starting up by itself. What is delivered until then is no choice of a schedule:
    /// minimization leaves nothing of it out.
    fn starting_up(&self, state: &S) -> bool {
        let _ = state;
        false
    }

    /// The state in which the next incarnation of a failed actor begins, given the one in which it failed: what was on
    /// its disk. `None`, the default, where it has no disk; it then begins as
    /// [`Model::initial`](super::Model::initial) says.
    ///
    /// A disk outlives a failure, not a stop. Actors that share memory keep it as it is.
    fn recovered(&self, actor: ActorId, failed: &S) -> Option<S> {
        let _ = (actor, failed);
        None
    }

    /// Whether random runs and explorations make an actor fail, cut it off, or divide it from others; by default any. A schedule that says so is
    /// followed.
    fn fails(&self, actor: ActorId) -> bool {
        let _ = actor;
        true
    }

    /// Whether processes answer for actors, and the model tells of each of their steps ([`bill::tell`](crate::bill::tell)), so that budgets count
    /// these.
    fn is_billed(&self) -> bool {
        false
    }

    /// How far the clock of an actor has gone on, where each has one of its own and its timers move it; `None` by default. In some random
    /// runs only who acts often goes on by itself.
    fn clock(&self, state: &S) -> Option<u64> {
        let _ = state;
        None
    }

    /// Whether a failed actor begins its next incarnation by itself at once, keeping its inbox.
    fn restarts_by_itself(&self) -> bool {
        false
    }

    /// How often a network that repeats messages may deliver a message that was sent once. Random runs and explorations
    /// ask; a schedule that says that a message was delivered twice is followed.
    fn duplicates(&self, msg: &Msg) -> Duplicates {
        let _ = msg;
        Duplicates::Any
    }

    /// The same of a message from one actor to another, where that matters.
    fn duplicates_between(&self, from: ActorId, to: ActorId, msg: &Msg) -> Duplicates {
        let _ = (from, to);
        self.duplicates(msg)
    }

    /// Runs code outside the actors, named by a schedule's `action` step, on the state of the outside
    /// ([`Runtime::cell`] of [`OUTSIDE`](crate::OUTSIDE)).
    ///
    /// # Errors
    /// When the model knows no such action, or it is not possible yet. The state must then be as it was.
    fn action(
        &self,
        state: &mut S,
        name: &str,
        fields: Option<&Value>,
        ctx: &mut Ctx<'_, Msg>,
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
}

impl<S, Msg> Runtime<S, Msg> for () {}
