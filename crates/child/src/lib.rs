//! Models in any language: a child process answers what its actors do, in JSON lines.
//!
//! `docs/model-protocol.md` specifies the protocol. Every answer is remembered by what was asked, so a search asks a
//! child once for each transition, and what is known stays known when the child has failed: the best result is kept.
//!
//! The data flows through the modules in this order: [`connection`] (lines to and from one child), [`pool`] (several
//! of them), [`asked`] (questions and what they were answered), [`model`] (the model that the simulator runs).

pub mod asked;
pub mod connection;
mod error;
pub mod in_child;
pub mod lines;
pub mod model;
pub mod pool;
mod registry;
mod state;
pub mod tried;
mod values;
pub mod wire;

pub use error::{ChildError, Problem};
pub use model::Child;
pub use registry::WithChildren;
