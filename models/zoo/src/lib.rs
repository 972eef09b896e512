//! Small models of well-known protocols, each with one published bug, to measure minimization on.
//!
//! Each is written as a user writes a model: without a bound, a heuristic, a symmetry, a `watch` or a clock. The list,
//! the halves and the rules are in `README.md`.

mod models;
pub mod recording;
mod wire;

pub use models::{ZOO, scenario, with_model};

/// What a system is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Searches may be improved on it.
    Tuning,
    /// Results are only measured on it.
    Measuring,
}

/// A system of the zoo.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The name of its scenario file and model.
    pub name: &'static str,
    /// What it is for.
    pub half: Half,
    /// The protocol.
    pub title: &'static str,
    /// The switch that brings the bug in.
    pub switch: &'static str,
}
