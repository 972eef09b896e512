//! The model API: what a user writes to describe a system.
//!
//! A model is a deterministic transition from (state of an actor, delivered message) to (new state, messages,
//! timers). It knows nothing of queues, schedules or networks: the [`Simulator`](crate::Simulator) owns those.
//!
//! It comes in layers. [`Model`] is the core, and enough to run a system. Each of the others is a trait of its own that
//! is there if a method of the core returns it, and has a sensible default if not:
//!
//! | layer | what it says |
//! | --- | --- |
//! | [`Logs`] | how logs write messages, timers and states |
//! | [`Runtime`] | shared memory, refused messages, actions, start-up, disks |
//! | [`Workload`] | what `fuzz` sends and waits for |
//! | [`Guidance`] | lower bound, heuristic, smaller contents, clocks |
//! | [`Symmetry`] | which actors can take each other's places |
//!
//! A complete small model is in `examples/token_ring.rs`.

mod ctx;
mod guidance;
mod logs;
mod runtime;
mod serialized;
mod symmetry;
mod view;
mod workload;

use std::fmt::Debug;
use std::hash::Hash;

pub(crate) use self::ctx::Effect;
pub use self::ctx::{Ctx, Inputs, MOST_TIMER_NAMES, Timer};
pub use self::guidance::{Distance, Estimate, Guidance, Sees, Smaller, Waiting};
pub use self::logs::{ExternalMessage, Logs};
pub use self::runtime::{Duplicates, Runtime};
pub use self::serialized::Serialized;
pub use self::symmetry::Symmetry;
pub use self::view::{Configuration, Memory, Status, View};
pub use self::workload::{Proposal, Workload};
use crate::names::ActorId;
use crate::weight;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The key by which violations are compared: two sets of violations are the same if they share one.
    pub fingerprint: String,
    /// The actors whose state breaks it.
    pub affected: Vec<ActorId>,
}

/// How far a model's violation is.
pub type DistanceOf<M> = Distance<<M as Model>::State, <M as Model>::Msg>;

/// A system of actors. See the [module's](self) first lines.
pub trait Model: Clone + Send + Sync + 'static {
    /// The state of one actor, or of a group of actors that share memory ([`Runtime::cell`]). Equality and hash
    /// decide when two worlds are the same: leave out counters that only give names to things.
    type State: Clone + Debug + Eq + Hash + Send + Sync;
    /// Messages and what timers carry. Equal messages are one message to the simulator.
    type Msg: Clone + Debug + Eq + Hash + Send + Sync;
    /// What invariants remember from one check to the next, such as the first leader of each term.
    type History: Clone + Default + Debug + Send + Sync;

    /// The actors that exist or can be started when a run begins, in the order in which they start.
    fn actors(&self) -> &[ActorId];

    /// The state of an actor that has just started, or restarted without a disk ([`Runtime::recovered`]).
    fn initial(&self, actor: ActorId) -> Self::State;

    /// What an actor does when it starts; nothing by default.
    fn start(&self, state: &mut Self::State, ctx: &mut Ctx<'_, Self::Msg>) {
        let _ = (state, ctx);
    }

    /// Handles one delivered message or fired timer to the end.
    fn deliver(&self, state: &mut Self::State, msg: &Self::Msg, ctx: &mut Ctx<'_, Self::Msg>);

    /// Checks the invariants that the scenario names, on one configuration.
    ///
    /// `history` is what earlier checks of the same run remembered; a fresh one asks about this configuration
    /// alone.
    fn check(&self, view: &View<'_, Self::State>, history: &mut Self::History, found: &mut Vec<Violation>);

    /// About how many bytes a state takes. Searches keep no more states than there is memory for. By default what its hash reads.
    fn bytes(&self, state: &Self::State) -> usize {
        weight::of(state)
    }

    /// How logs write what the model does. By default as `Debug` prints it; [`Serialized`] where serde can write messages and states.
    fn logs(&self) -> &dyn Logs<Self::State, Self::Msg> {
        &()
    }

    /// What the runtime does besides. By default nothing.
    fn runtime(&self) -> &dyn Runtime<Self::State, Self::Msg> {
        &()
    }

    /// What `fuzz` proposes. By default nothing.
    fn workload(&self) -> &dyn Workload<Self::State, Self::Msg> {
        &()
    }

    /// What leads searches. By default nothing.
    fn guidance(&self) -> &dyn Guidance<Self::State, Self::Msg> {
        &()
    }

    /// Which actors can take each other's places. `None`, the default, is always right.
    fn symmetry(&self) -> Option<&dyn Symmetry<Self::State, Self::Msg>> {
        None
    }
}

impl<M: Model> Memory for M {
    fn cell_of(&self, actor: ActorId) -> ActorId {
        self.runtime().cell(actor)
    }
}
