//! Hints, as [`std::hint`].

use std::panic::Location;

pub use std::hint::black_box;

use crate::op::Kind;
use crate::step::step;

/// Says that the task waits in a loop: others go first.
#[track_caller]
pub fn spin_loop() {
    step(Kind::Yield, None, Location::caller(), |_, _| ());
}
