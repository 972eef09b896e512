//! The shortest violating execution with given external events, by exhaustive search under a bound.
//!
//! Breadth first over configurations: each is entered once, with the fewest deliveries that reach it, and left where
//! the model's lower bound says that no violation is near enough. What is left when nothing is
//! found is a proof that nothing shorter exists (A* without a queue: all edges cost one; Hart, Nilsson and Raphael
//! 1968). A [`Query`] says where a search begins and how far it goes; with a width it is a beam search and proves nothing.
//!
//! The state space that is searched is that of [`demi_space`].

mod deepening;
mod interchangeable;
mod pattern_database;
mod query;
mod root;

pub use demi_space::{Alike, Lead};

pub use self::deepening::{deepen, prove};
pub use self::interchangeable::interchangeable;
pub use self::pattern_database::bound as pattern_database;
pub use self::query::{Query, Searched};
pub use self::root::Root;
