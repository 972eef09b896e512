//! The state space of a model, packed: configurations are lists of numbers, and a delivery is a look-up.
//!
//! Configurations are numbers ([`packed`]), handlers run once for each local state and entry ([`tables`]). A search takes them layer by
//! layer ([`layers`]), breadth first or as a beam ([`Lead`]); the layers are worked on by all threads, in batches whose order is that of
//! hashes, so that threads do not change the result. Configurations that differ only in which of some interchangeable actors is which
//! count once ([`symmetry`]).

mod canonical;
mod faults;
mod kinds;
mod layer;
pub mod layers;
pub mod packed;
pub mod symmetry;
pub mod tables;
mod worker;

pub use faults::Faults;
pub use kinds::{Alike, Kinds};
pub use layer::Lead;
pub use layers::{Allowance, End, Ended, Layers, Limits, Move};
pub use tables::{Reaction, Tables};
