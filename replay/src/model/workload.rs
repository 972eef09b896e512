//! What `fuzz` does to the system: messages from outside, and what its programs wait for.

use serde_json::Value;

use super::view::View;
use crate::names::{ActorId, Names};

/// A message from outside that a model proposes to the fuzzer.
#[derive(Clone, Debug)]
pub struct Proposal<Msg> {
    /// Receiver.
    pub to: ActorId,
    /// The message.
    pub msg: Msg,
    /// Structured content for the log, from which [`Logs::external`](super::Logs::external) re-creates the message.
    pub fields: Value,
}

impl<Msg> Proposal<Msg> {
    /// A message that its payload describes whole.
    pub fn new(to: ActorId, msg: Msg) -> Self {
        Proposal { to, msg, fields: Value::Null }
    }
}

/// What `fuzz` proposes. Without it nothing comes from outside but what a scenario's program does.
pub trait Workload<S, Msg> {
    /// Messages from outside that every run begins with.
    fn bootstrap(&self, names: &Names) -> Vec<Proposal<Msg>> {
        let _ = names;
        Vec::new()
    }

    /// The `n`-th random message from outside; `choice` is a uniformly random number.
    fn client_message(&self, n: u64, choice: u64, names: &Names) -> Option<Proposal<Msg>> {
        let _ = (n, choice, names);
        None
    }

    /// The same, by a model that looks at what became of those before: a client that was refused goes elsewhere.
    fn client_message_now(
        &self,
        n: u64,
        choice: u64,
        names: &Names,
        view: &View<'_, S>,
    ) -> Option<Proposal<Msg>> {
        let _ = view;
        self.client_message(n, choice, names)
    }

    /// Whether client messages come one by one through a run, as many more as the run is longer, and runs take turns in their order of deliveries, where
    /// the scenario has no settings of `fuzz`. By default all are sent as soon as they may be.
    fn paced(&self) -> bool {
        false
    }

    /// Whether a named condition holds, for fuzz programs that wait for one.
    ///
    /// # Errors
    /// When the model knows no such condition.
    fn condition(&self, name: &str, view: &View<'_, S>) -> Result<bool, String> {
        let _ = view;
        Err(format!("the model knows no condition '{name}'"))
    }
}

impl<S, Msg> Workload<S, Msg> for () {}
