//! Order: the linear extension of happens-before, and the causal past of a violation in it.

pub(crate) mod against;
mod cycle;
mod graph;
mod linear;
pub(crate) mod provenance;
pub(crate) mod violation;

pub(crate) use graph::Graph;
pub(crate) use linear::Order;
pub(crate) use provenance::{KeepReason, Provenance};
pub(crate) use violation::Target;
pub use violation::ViolationSpec;
