//! Says of a wanted schedule whether it breaks the invariant, how, and where.

pub mod causes;
pub mod engine;
mod execute;
pub mod matcher;
pub mod refusals;
pub mod trace_keys;
mod verify;
pub mod witness;
