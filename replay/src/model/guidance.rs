//! What makes searches for shorter executions faster, and proofs possible.

use serde_json::Value;

use super::view::View;
use crate::names::{ActorId, Names};

/// A pending message or timer, as an estimate sees it.
#[derive(Debug)]
pub struct Waiting<'a, Msg> {
    /// The sender it names.
    pub from: ActorId,
    /// The receiver.
    pub to: ActorId,
    /// The message.
    pub msg: &'a Msg,
}

/// Estimates how many deliveries a configuration, with what is pending in it, is away from a violation.
pub type Estimate<S, Msg> = Box<dyn Fn(&View<'_, S>, &[Waiting<'_, Msg>]) -> usize + Send + Sync>;

/// Which pending messages an estimate looks at.
pub type Sees<Msg> = Box<dyn Fn(&Msg) -> bool + Send + Sync>;

/// How far a violation is, as estimates of two kinds say.
pub struct Distance<S, Msg> {
    /// Whether the estimates look at pending messages like this one. Those they do not look at may be kept from them.
    pub sees: Sees<Msg>,
    /// Never more deliveries than every violating continuation must still make: it is admissible, and proofs may rest
    /// on it. 0 is always right. Continuations start no actors but those that handlers start.
    pub lower_bound: Estimate<S, Msg>,
    /// How far the violation seems to be, where the lower bound says little. It may say more than is needed, so only
    /// searches that prove nothing go by it.
    pub heuristic: Option<Estimate<S, Msg>>,
}

/// A message from outside without one of its components.
#[derive(Clone, Debug)]
pub struct Smaller<Msg> {
    /// The component that is left out. Messages that have the same lose it together; one that is the name of an
    /// actor goes with that actor.
    pub without: String,
    /// What is left of the message.
    pub msg: Msg,
    /// Structured content for the schedule, from which [`Logs::external`](super::Logs::external) re-creates it.
    pub fields: Value,
}

/// What a model knows of itself that leads searches. Without it they try everything.
pub trait Guidance<S, Msg> {
    /// How far it is to a violation with one of these fingerprints; `None`, the default, where the model does not know.
    ///
    /// The lower bound must hold from any configuration that no fault led to: deliveries at different actors, and of
    /// different kinds, may be added up.
    fn distance(&self, target: &[String], names: &Names) -> Option<Distance<S, Msg>> {
        let _ = (target, names);
        None
    }

    /// What is left of a message from outside without each of its components: a member of a list, a command of a
    /// batch. Nothing, the default, for messages that cannot be smaller.
    fn smaller(&self, msg: &Msg, names: &Names) -> Vec<Smaller<Msg>> {
        let _ = (msg, names);
        Vec::new()
    }

    /// The logical clock that a message carries (Raft: its term; Spark: its job), if it has one. What was delivered with
    /// one clock is tried to be left out together.
    fn clock(&self, msg: &Msg) -> Option<i64> {
        let _ = msg;
        None
    }

    /// The logical clock of an actor, if it has one: messages are then compared with it, and an epoch is what an actor did
    /// at one clock.
    fn actor_clock(&self, state: &S) -> Option<i64> {
        let _ = state;
        None
    }

    /// A number that changes whenever anything changes that an invariant reads of this state, so that a delivery
    /// that leaves it alone needs no check. `None`, the default, is always right: everything is checked.
    fn watch(&self, state: &S) -> Option<u64> {
        let _ = state;
        None
    }
}

impl<S, Msg> Guidance<S, Msg> for () {}
