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

/// The rules by which messages are joined, and their ids hashed. What is kept to be fast was made by them, and is made anew where they have changed: the number
/// behind the version is raised when they do.
pub(crate) const RULES: &str = concat!(env!("CARGO_PKG_VERSION"), "+4");
