//! Minimization: from a violating schedule to a shorter one that still violates.
//!
//! [`minimize`] runs a portfolio of strategies under one budget. A pass takes a verified witness and gives back a smaller one;
//! every accepted witness was re-run step by step by a verifier that shares nothing with matching.

mod aim;
mod archive;
mod determinism;
pub mod ledger;
mod minimize;
pub mod oracle;
pub mod plan;
mod portfolio;
pub mod problem;
pub mod reduce;
pub mod report;
mod scheduler;
pub mod search;
mod solution;
mod strategies;

pub use determinism::Parted;
pub use minimize::{MinimizeError, Outcome, minimize, minimize_with, unschedulable};
pub use problem::Problem;
pub use problem::budget::{Budget, Meter, StopFlag};
pub use problem::criteria::{Contents, Criteria, Match, Repeat};
pub use problem::options::{Options, Phases, Progress};
pub use problem::size::{Objective, Size};
