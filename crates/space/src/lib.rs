//! The state space of a model, packed: configurations are lists of numbers, and a delivery is a look-up.
//!
//! A [`System`] is anything that says what may happen next and makes it happen; [`cheapest`] searches one, the cheapest executions first. The
//! [`Space`] of a model knows its configurations as numbers ([`packed`]), and runs handlers once for each local state and entry. [`layers`] searches it
//! layer by layer, breadth first or as a beam ([`Lead`]). Configurations that differ only in which of some interchangeable actors is which
//! count once ([`symmetry`]). The number of threads changes nothing in any result ([`side_by_side`]).

mod allowance;
mod canonical;
pub mod cheapest;
mod crew;
mod entry;
mod faults;
mod kinds;
mod layer;
pub mod layers;
pub mod packed;
pub mod space;
pub mod symmetry;
mod system;
mod worker;

pub use allowance::Allowance;
pub use crew::{Crew, Pace, side_by_side};
pub use entry::{Effect, FREE};
pub use faults::{Faults, Unsearchable};
pub use kinds::{Alike, Kinds};
pub use layer::Lead;
pub use layers::{End, Ended, Layers, Limits, Move};
pub use space::{Reaction, Space};
pub use system::{After, Child, Item, Spent, System, Unfit};
