//! Minimization: from a violating schedule to a shorter one that still violates.
//!
//! [`minimize`] is the pipeline. A pass takes a verified witness and gives back a smaller one; every accepted
//! witness was re-run step by step by a verifier that shares nothing with matching.

pub mod account;
pub mod aim;
pub mod beams;
pub mod budget;
pub mod causes;
pub mod certificate;
mod descents;
pub mod digest;
pub mod dpor;
pub mod engine;
pub mod explore;
pub mod full;
pub mod ledger;
mod longer;
pub mod matcher;
pub mod nearby;
pub mod oracle;
pub mod passes;
pub mod pipeline;
pub mod proofs;
pub mod render;
pub mod rounds;
pub mod search;
pub mod sets;
pub mod snapshots;
pub mod stage;
pub mod start;
pub mod starts;
pub mod trace;
mod verify;
pub mod witness;

pub use budget::{Budget, StopFlag};
pub use oracle::Oracle;
pub use pipeline::{MinimizeError, Options, Outcome, Phases, Progress, minimize, minimize_with};
pub use witness::{Objective, Size};
