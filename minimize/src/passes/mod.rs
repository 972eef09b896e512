//! Passes: each takes a witness and gives back a smaller one, or says that it found none.

pub mod backtrack;
pub mod chunks;
pub mod lattice;
pub mod noop;
pub mod pairs;
pub mod subsets;
pub mod window;

use demi_replay::Model;

use crate::engine::{Engine, Shared};

/// What watches a minimization: called with each smaller witness.
pub trait Watch<M: Model> {
    /// A smaller witness was accepted.
    fn smaller(&mut self, engine: &Engine<M>, witness: &Shared<M>);
}
