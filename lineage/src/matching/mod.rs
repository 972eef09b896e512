//! Matching: which receive took which send, told by ids, by content in channel order, and by vector clocks.

mod align;
pub(crate) mod by_id;
pub(crate) mod channels;
pub(crate) mod clocks;
mod complete;
pub(crate) mod content;
mod edges;
mod sender;
pub(crate) mod unmatched;

pub(crate) use channels::{Channels, LastDeliveries, Preference, note};
pub(crate) use clocks::LoggedClocks;
pub(crate) use edges::{Evidence, Matching, Reason, Status};
