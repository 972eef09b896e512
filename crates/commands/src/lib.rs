//! The commands that need a model, for programs with models of their own.
//!
//! ```no_run
//! use demi_two_phase::TwoPhase;
//! use demi_commands::Models;
//!
//! fn main() {
//!     demi_commands::main(Models::new().with("my-commit", TwoPhase::new))
//! }
//! ```
//!
//! Such a program has `fuzz`, `replay`, `minimize`, `verify`, `report` and `export`, on executions and schedules on
//! disk. The included models are there too: `Models::new().and(Included)`. Neither an event store nor a server is
//! compiled.

pub mod check_history;
mod cli;
pub mod examples;
pub mod explore;
mod explore_args;
mod explore_told;
mod explore_unfinished;
pub mod export;
pub mod export_test;
pub mod files;
pub mod fuzz;
mod included;
mod incumbent;
pub mod input;
mod logs;
mod memory;
pub mod minimize;
mod minimize_args;
pub mod model;
mod needed;
pub mod new_model;
mod on_model;
pub mod out;
pub mod permission;
pub mod program;
pub mod replaying;
pub mod report;
mod states;
pub mod status;
mod stepping;
pub mod testing;
mod tolerance;
pub mod ui;
pub mod verify;
mod verify_explored;

use std::error::Error;
use std::process::ExitCode;

pub use cli::{Command, ended, main, parsed};
pub use demi_child::WithChildren;
pub use demi_included::Included;
pub use demi_programs::WithPrograms;
pub use demi_replay as replay;
pub use demi_replay::{
    ActorId, Ctx, ExternalMessage, Group, Guidance, Logs, Model, Models, Names, OUTSIDE, Proposal, Registry,
    Runtime, Serialized, Simulator, Symmetry, Timer, View, Violation, Workload, roles,
};
pub use demi_schemas as schemas;
pub use demi_schemas::{Scenario, ScenarioError};
pub use included::IncludedModels;
pub use minimize::on_interrupt;

/// What a command gives back: an exit status, or an error to explain (exit status 2).
pub type Outcome = Result<ExitCode, Box<dyn Error>>;
