//! Matching: which receive took which send, told by ids, by content in channel order, and by vector clocks.

mod align;
pub(crate) mod by_id;
pub(crate) mod channels;
pub(crate) mod clocks;
pub(crate) mod content;
mod edges;
mod sender;
pub(crate) mod unmatched;

pub(crate) use channels::{Channels, Seen, Wish, note};
pub(crate) use clocks::Clocks;
pub(crate) use edges::{How, Matching, Reason, Status};
