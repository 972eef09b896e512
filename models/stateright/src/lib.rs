//! Systems of [Stateright](https://www.stateright.rs) actors as models.
//!
//! Whatever can be checked as a [`stateright::actor::ActorModel`] can be fuzzed, replayed and minimized here, without a
//! change to its actors:
//!
//! ```no_run
//! use demi_stateright::System;
//! use stateright::actor::{Actor, ActorModel, Id, Out};
//! use stateright::Expectation;
//!
//! #[derive(Clone)]
//! struct Greeter;
//!
//! impl Actor for Greeter {
//!     type Msg = ();
//!     type Timer = ();
//!     type State = u8;
//!     type Storage = ();
//!     type Random = ();
//!     fn on_start(&self, id: Id, _: &Option<()>, out: &mut Out<Self>) -> u8 {
//!         out.send(id, ());
//!         0
//!     }
//! }
//!
//! fn greeters() -> ActorModel<Greeter> {
//!     ActorModel::new((), ())
//!         .actor(Greeter)
//!         .property(Expectation::Always, "silent", |_, state| state.actor_states.iter().all(|s| **s == 0))
//! }
//!
//! fn main() {
//!     demi_commands::main(demi_commands::Models::new().with("greeters", |scenario, names| {
//!         System::new(greeters(), scenario, names)
//!     }))
//! }
//! ```
//!
//! What is what: `README.md` beside this crate.

mod content;
mod effects;
mod model;
mod names;
mod state;
mod system;

use std::fmt::Debug;
use std::hash::Hash;

use stateright::actor::Actor;

pub use content::{Content, ContentOf};
pub use state::State;
pub use system::System;

/// Actors that can be a model: what they work with can be shared between threads. Every actor is one whose types are
/// plain data.
pub trait Part:
    Actor<
        Msg: Ord + Send + Sync + 'static,
        Timer: Ord + Send + Sync + 'static,
        State: Send + Sync + 'static,
        Storage: Send + Sync + 'static,
        Random: Send + Sync + 'static,
    > + Send
    + Sync
    + 'static
{
}

impl<A> Part for A
where
    A: Actor + Send + Sync + 'static,
    A::Msg: Ord + Send + Sync + 'static,
    A::Timer: Ord + Send + Sync + 'static,
    A::State: Send + Sync + 'static,
    A::Storage: Send + Sync + 'static,
    A::Random: Send + Sync + 'static,
{
}

/// What a system may remember besides the states of its actors.
pub trait History: Clone + Debug + Hash + PartialEq + Send + Sync + 'static {}

impl<H: Clone + Debug + Hash + PartialEq + Send + Sync + 'static> History for H {}
