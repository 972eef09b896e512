//! Systematic exploration: every execution that deviates at most so often from a default order, and a promise where none of them
//! violates.
//!
//! Random runs that find nothing prove nothing. CHESS (Musuvathi et al., OSDI 2008, §2) explores every execution with at most so
//! many preemptions instead, and says so when it is done. Here the default order is that of sending, and a [`Cost`] says what it costs to
//! choose something else.
//!
//! The data flows through the modules in this order: [`scene`] (where the exploration begins and what it may do), [`moment`] (a
//! configuration with all that its future depends on), [`menu`] (what may happen next, and what it costs), `ways` (how moments are reached),
//! `worker` and `batch` (what comes after moments, on all threads), `met` (what is known), [`search`] (all executions, the cheapest
//! first), [`saved`] (where it stopped), [`promise`] (what is then known). [`recheck`] finds out once more whether a promise is kept, and uses none of them.

mod batch;
pub mod cost;
pub mod explored;
pub mod log;
pub mod menu;
mod met;
pub mod moment;
pub mod promise;
pub mod recheck;
pub mod saved;
pub mod scene;
pub mod search;
mod ways;
mod worker;

pub use cost::{Bounds, Cost, Spent};
pub use explored::{Ended, ExploreOptions, Explored, Finding, Level, Told};
pub use promise::{Origin, Promise};
pub use saved::{Saved, SavedError};
pub use scene::{Scene, SceneError};
pub use search::explore;
pub use worker::Deviation;
