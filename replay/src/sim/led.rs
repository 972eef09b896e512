//! What a model knows of itself that leads searches, asked for so that its panics are survived, and left out on demand.

use serde_json::Value;

use super::crash::is_crash;
use super::{MsgId, Simulator};
use crate::guard;
use crate::model::{DistanceOf, Guidance, Model, Smaller, Symmetry};
use crate::names::ActorId;

impl<M: Model> Simulator<M> {
    /// The simulator without what its model knows of itself: no bound, heuristic, smaller contents, clocks or symmetry.
    /// It runs the same executions.
    #[must_use]
    pub fn without_guidance(mut self) -> Self {
        self.led = false;
        self.infos.iter_mut().for_each(|info| info.clock = None);
        self
    }

    /// Whether searches may be led by what the model knows of itself.
    #[must_use]
    pub fn led(&self) -> bool {
        self.led
    }

    fn guidance(&self) -> &dyn Guidance<M::State, M::Msg> {
        if self.led { self.model.guidance() } else { &() }
    }

    fn symmetry(&self) -> Option<&dyn Symmetry<M::State, M::Msg>> {
        let nobody = || self.asserted.is_empty() || self.asserted.names_nobody(&self.names);
        if self.led && nobody() { self.model.symmetry() } else { None }
    }

    /// How far a violation with one of these fingerprints is, where the model knows.
    #[must_use]
    pub fn distance(&self, target: &[String]) -> Option<DistanceOf<M>> {
        // What the model does not know of an invariant leads to others, and of crashes it knows nothing.
        if !self.asserted.all_known_to_model() || target.iter().any(|fingerprint| is_crash(fingerprint)) {
            return None;
        }
        guard::or(None, || self.guidance().distance(target, &self.names))
    }

    /// What is left of a message from outside without each of its components.
    #[must_use]
    pub fn smaller(&self, msg: MsgId) -> Vec<Smaller<M::Msg>> {
        guard::or(Vec::new(), || self.guidance().smaller(&self.info(msg).msg, &self.names))
    }

    /// The logical clock that a message carries.
    pub(crate) fn clock(&self, msg: &M::Msg) -> Option<i64> {
        guard::or(None, || self.guidance().clock(msg))
    }

    /// The logical clock of a state.
    #[must_use]
    pub fn actor_clock(&self, state: &M::State) -> Option<i64> {
        guard::or(None, || self.guidance().actor_clock(state))
    }

    /// The number that changes when anything changes that an invariant reads of a state; `None` where the model does not
    /// say. Who cannot go on depends on what is pending too, so that no state alone tells then.
    #[must_use]
    pub fn watch_state(&self, state: &M::State) -> Option<u64> {
        if self.stuck_counts() {
            return None;
        }
        let own = guard::or(None, || self.guidance().watch(state));
        if self.asserted.is_empty() {
            return own;
        }
        self.asserted.watch(&self.model, &self.names, state, own)
    }

    /// A state with actors in each other's places; `None` where the model cannot tell.
    pub fn renamed_state(&self, state: &M::State, to: &dyn Fn(ActorId) -> ActorId) -> Option<M::State> {
        guard::or(None, || self.symmetry()?.state(state, to))
    }

    /// A message with actors in each other's places; `None` where the model cannot tell.
    pub fn renamed_message(&self, msg: MsgId, to: &dyn Fn(ActorId) -> ActorId) -> Option<M::Msg> {
        guard::or(None, || self.symmetry()?.message(&self.info(msg).msg, to))
    }

    /// The actor that an action brings into existence.
    #[must_use]
    pub fn creates(&self, name: &str, fields: Option<&Value>) -> Option<ActorId> {
        guard::or(None, || self.model.runtime().creates(name, fields))
    }
}
