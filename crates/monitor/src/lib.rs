//! Invariants watched while event records come in.
//!
//! Records of many logs arrive in any order. [`Monitor::take`] puts them into an order in which each beginning is a consistent cut, finds
//! the states that the predicates speak of, and says where one fails. It reads no file and no clock: whoever calls it says what time it is.
//! What it knows can be [saved](Monitor::save) and read back.
//!
//! ```text
//! Interest::record ─► order (what waits for what) ─► units (handlers, for messages) ─► watched (verdicts by invariant) ─► Violation
//! ```

mod interest;
mod invariant;
mod monitor;
mod order;
mod saved;
mod status;
mod units;
mod watched;

/// What is remembered of messages and channels; of each a bounded number.
type Recent<T> = demi_common::Recent<T, { 1 << 17 }>;

pub use interest::{Interest, Record};
pub use invariant::{Invariant, InvariantError};
pub use monitor::Monitor;
pub use saved::MonitorState;
pub use status::{Counts, InvariantStatus, Options, Unjudged, Violation};
