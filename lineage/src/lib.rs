//! From the events of a store to an execution: sends and receives are matched, events are put in a partial order, what
//! does not precede the violation is left out, and the rest becomes a schedule.
//!
//! [`build()`] does all of it; [`execution`] reads the result. Memory is linear in the number of events (some 50 bytes
//! each); the content of records is streamed.

mod align;
mod build;
mod channels;
mod clocks;
mod columns;
mod content;
mod cut;
mod cycle;
mod error;
mod events;
pub mod execution;
pub mod export;
mod gather;
pub mod generate;
mod grow;
pub mod index;
mod intern;
mod lines;
mod matching;
mod order;
pub mod query;
mod read;
mod segments;
mod source;
mod steps;
mod tables_out;
mod units;
mod unmatched;
mod violation;
mod write;

pub use build::{BuildOptions, build};
pub use error::LineageError;
pub use violation::{ViolationError, ViolationSpec};
