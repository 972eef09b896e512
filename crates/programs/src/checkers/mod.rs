//! What a history breaks. Each checker takes operations with what became of them, and knows nothing of nodes and schedules.

mod anomaly;
mod counters;
mod cycles;
mod kafka;
mod register;
mod sets;

pub use self::anomaly::Anomaly;
pub(crate) use self::anomaly::canonical;
pub use self::counters::{Sums, sums};
pub use self::cycles::{Consistency, list_append, rw_register};
pub use self::register::{Action, Interval, is_linearizable};
pub(crate) use self::{counters::counter, kafka::kafka, sets::set};
