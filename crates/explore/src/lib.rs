//! Systematic exploration: every execution that deviates at most so often from a default order, and a promise where none of them
//! violates.
//!
//! Random runs that find nothing prove nothing. CHESS (Musuvathi et al., OSDI 2008, §2) explores every execution with at most so
//! many preemptions instead, and says so when it is done. Here the default order is that of sending, and a [`Cost`] says what it costs to
//! choose something else.
//!
//! The data flows through the modules in this order: [`scene`] (where the exploration begins and what it may do), [`moment`] (a
//! point of it), `packed` (the model as a system of [`demi_space`]: what may happen next, what it costs, what comes of it), [`saved`] (where the
//! search of that stopped), [`promise`] (what is then known). The crate `demi-check` finds out once more whether a
//! promise is kept, and uses none of them.

pub mod cost;
mod explore;
pub mod explored;
pub mod log;
pub mod moment;
mod packed;
pub mod promise;
pub mod saved;
pub mod scene;
mod step;

pub use cost::{Bounds, Cost, Spent};
pub use explore::explore;
pub use explored::{Deviation, Ended, ExploreOptions, Explored, Finding, Level, Told};
pub use promise::{Origin, Promise};
pub use saved::{Saved, SavedError};
pub use scene::{Scene, SceneError};
pub use step::Step;
