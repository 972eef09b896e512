//! Minimization: from a violating schedule to a shorter one that still violates.
//!
//! [`minimize`] is the pipeline. A pass takes a verified witness and gives back a smaller one; every accepted
//! witness was re-run step by step by a verifier that shares nothing with matching.

pub mod budget;
pub mod certificate;
pub mod dpor;
pub mod engine;
pub mod explore;
pub mod matcher;
pub mod passes;
pub mod pipeline;
pub mod render;
pub mod search;
pub mod snapshots;
pub mod stage;
pub mod starts;
pub mod witness;

pub use budget::{Budget, StopFlag};
pub use pipeline::{MinimizeError, Options, Outcome, Phases, Progress, minimize};
pub use witness::{Objective, Size};
