//! Real Rust code with threads under every schedule within a bound.
//!
//! A test uses [`sync`], [`thread`], [`hint`], [`time`] and [`future`] instead of the standard library's modules of these names, and runs in
//! [`check`] or under `#[demi_threads::test]`. One task runs at a time; before each operation on something shared another one may go on. All
//! schedules with at most so many preemptions are tried, those with the fewest first, and random ones beside them.
//!
//! What is promised: if nothing is found and the bound is complete, no schedule with at most so many preemptions fails, on sequentially
//! consistent memory, given that tasks share nothing but what this crate provides.

pub mod failure;
mod page;
pub mod schedule;
pub mod summary;

#[cfg(feature = "runtime")]
mod check;
#[cfg(feature = "runtime")]
mod fair;
#[cfg(feature = "runtime")]
pub mod future;
#[cfg(feature = "runtime")]
mod hash;
#[cfg(feature = "runtime")]
pub mod hint;
#[cfg(feature = "runtime")]
mod local;
#[cfg(feature = "runtime")]
mod locals;
#[cfg(feature = "runtime")]
mod log;
#[cfg(feature = "runtime")]
mod minimize;
#[cfg(feature = "runtime")]
mod op;
#[cfg(feature = "parking_lot")]
pub mod parking_lot;
#[cfg(feature = "runtime")]
mod recheck;
#[cfg(feature = "runtime")]
mod run;
#[cfg(feature = "runtime")]
mod search;
#[cfg(feature = "runtime")]
mod step;
#[cfg(feature = "runtime")]
pub mod sync;
#[cfg(feature = "runtime")]
pub mod thread;
#[cfg(feature = "runtime")]
pub mod time;
#[cfg(feature = "runtime")]
mod world;

#[cfg(feature = "runtime")]
pub use check::{Check, Finding, Half, Outcome, Rechecked, check};
#[cfg(feature = "macros")]
pub use demi_threads_macros::test;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub use local::LocalKey;
#[cfg(feature = "runtime")]
pub use log::{Followed, Log, LogError};
#[cfg(feature = "runtime")]
pub use run::on_shuttle;
#[cfg(feature = "runtime")]
pub use search::Level;
pub use summary::Cost;
#[cfg(feature = "runtime")]
pub use world::Why;
