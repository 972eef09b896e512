//! Time, which a schedule does not have: a sleep lets others go first, and nothing is known of how long.

pub use std::time::Duration;

pub use crate::thread::sleep;
