//! The order index: happens-before of any two events without a clock per event, read in part from a few flat files.
//!
//! An event is known by its number: events are sorted by actor, incarnation and sequence number. Per event the index keeps the other end of its
//! message (4 bytes), its place in the linear extension (4 bytes) and what it is (1 byte). A question is answered by a
//! sweep backward through the linear extension (see [`sweep`]) that stops as soon as nothing it can still meet
//! matters; clocks stored at every so many events of an actor bound the sweep where actors rarely talk. Each file has digests
//! of its content beside it ([`seal`]).

mod build;
mod clocks;
mod counts;
mod forward;
mod header;
mod info;
mod links;
mod logs;
mod names;
mod pages;
mod path;
mod reader;
mod seal;
mod sweep;

pub(crate) use build::{Parts, add_states, run_bytes, store, with_file, write};
pub(crate) use clocks::{GrownFrom, fitting as fitting_stride, make as make_clocks, stride as clock_stride};
pub(crate) use counts::Tally;
pub(crate) use forward::Future;
pub use header::{ActorEntry, INDEX_FOLDER, IndexHeader};
pub(crate) use header::{BLOCK, CLOCKS, COUNTS, INDEX_SCHEMA, INFOS, LINKS, MATES, ORDERS, RUNS, STATES};
pub(crate) use info::{Info, Role};
pub(crate) use logs::Logs;
pub(crate) use pages::Pages;
pub use path::{Hop, HopReason};
pub use reader::Index;
pub use sweep::Past;
pub(crate) use sweep::{Limits, Sweep};
