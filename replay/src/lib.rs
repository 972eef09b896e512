//! The model API, the deterministic simulator, network rules, conformance checking and fuzzing.
//!
//! A [`Model`] says how actors react; a [`Simulator`] runs it on [`World`]s, one delivery at a time; a schedule
//! says which. Nothing in a run depends on clocks, addresses, hash seeds or threads.

pub mod bill;
pub mod fingerprint;
pub mod follow;
pub mod fuzz;
pub mod guard;
pub mod handlers;
pub mod kept;
pub mod model;
pub mod names;
pub mod network;
mod options;
pub mod pending;
pub mod queue;
pub mod registry;
pub mod replay;
pub mod roles;
mod run;
pub mod script;
pub mod sim;
pub mod vet;
mod want;
pub mod watchdog;
pub mod weight;
pub mod world;

pub use model::{
    Configuration, Ctx, Duplicates, ExternalMessage, Guidance, Logs, Model, Proposal, Runtime, Serialized,
    Status, Symmetry, Timer, View, Violation, Workload,
};
pub use names::{ActorId, Group, Names, OUTSIDE};
pub use pending::{MsgId, Pending, PendingKind};
pub use registry::{Models, Registry, Visitor};
pub use sim::{Did, Livelock, Op, Simulator};
pub use world::World;
