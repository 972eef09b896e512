//! From the events of a store to an execution: sends and receives are matched, events are put in a partial order, what
//! does not precede the violation is left out, and the rest becomes a schedule.
//!
//! [`build()`] does all of it; [`execution`] reads the result. Memory is linear in the number of events (some 50 bytes
//! each); the content of records is streamed.

mod error;
pub mod execution;
pub mod export;
#[cfg(feature = "generate")]
pub mod generate;
mod grow;
pub mod index;
mod matching;
mod order;
mod pipeline;
pub mod query;
mod read;
pub mod window;

pub use error::{LineageError, ViolationError};
pub use order::ViolationSpec;
pub use pipeline::{BuildOptions, build};
