//! The shortest violating execution with given external events, by exhaustive search under a bound.
//!
//! Breadth first over configurations: each is entered once, with the fewest deliveries that reach it, and left where
//! the model's lower bound says that no violation is near enough. What is left when nothing is
//! found is a proof that nothing shorter exists (A* without a queue: all edges cost one; Hart, Nilsson and Raphael
//! 1968). A [`Query`] says where a search begins and how far it goes; with a width it is a beam search and proves nothing.
//!
//! Configurations that differ only in which of some interchangeable actors is which count once (`symmetry`).
//!
//! Configurations are numbers (`packed`), handlers run once for each local state and entry (`tables`). The layers
//! are worked on by all threads, in batches whose order is that of hashes, so that threads do not change the result.

mod canonical;
mod deepening;
mod faults;
mod kinds;
mod layer;
mod layers;
mod packed;
mod pattern_database;
mod query;
mod root;
mod symmetry;
mod tables;
mod worker;

pub use self::deepening::{deepen, prove};
pub use self::kinds::Alike;
pub use self::layer::Lead;
pub use self::pattern_database::bound as pattern_database;
pub use self::query::{Query, Searched};
pub use self::root::Root;
pub use self::symmetry::interchangeable;
