//! The state of a whole system.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use stateright::actor::{ActorModelState, RandomChoices};

use crate::{History, Part};

/// The state of a system, as Stateright has it: all actors, the history, and the network as properties see it.
///
/// The actors of a system share it, because properties and histories speak of all of them at once.
pub struct State<A: Part, H> {
    pub(crate) system: Arc<ActorModelState<A, H>>,
    /// How many actors have started; they do in their order.
    pub(crate) started: usize,
    /// Whether it is within the system's boundary. Nothing happens beyond it.
    pub(crate) inside: bool,
}

impl<A: Part, H: History> State<A, H> {
    /// The state of the system.
    #[must_use]
    pub fn system(&self) -> &ActorModelState<A, H> {
        &self.system
    }

    /// The state of the system with these actors failed.
    pub(crate) fn failed(&self, actors: &[usize]) -> ActorModelState<A, H> {
        let mut system = (*self.system).clone();
        for &actor in actors {
            system.crashed[actor] = true;
            system.timers_set[actor].cancel_all();
            system.random_choices[actor] = RandomChoices::default();
        }
        system
    }
}

impl<A: Part, H> Clone for State<A, H> {
    fn clone(&self) -> Self {
        State { system: Arc::clone(&self.system), started: self.started, inside: self.inside }
    }
}

impl<A: Part, H: History> fmt::Debug for State<A, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.system.fmt(f)
    }
}

impl<A: Part, H: History> PartialEq for State<A, H> {
    fn eq(&self, other: &Self) -> bool {
        self.started == other.started
            && (Arc::ptr_eq(&self.system, &other.system) || self.system == other.system)
    }
}

// Stateright takes states with one fingerprint for equal, so that its types need no `Eq`.
impl<A: Part, H: History> Eq for State<A, H> {}

impl<A: Part, H: History> Hash for State<A, H> {
    fn hash<S: Hasher>(&self, hasher: &mut S) {
        self.started.hash(hasher);
        self.system.hash(hasher);
    }
}
