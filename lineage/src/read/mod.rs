//! Reading the store's files: events as compact columns in each actor's order, and the rows themselves in that order.

mod ahead;
pub(crate) mod columns;
mod contents;
mod events;
pub(crate) mod gather;
pub(crate) mod intern;
pub(crate) mod operations;
mod parents;
mod partition;
mod placement;
pub(crate) mod records;
mod scan;
mod sorted;
pub(crate) mod source;
mod stamps;
mod units;

pub(crate) use contents::{Contents, nothing};
pub(crate) use events::{COUNTED, EARLIEST, EXTERNAL, Events, HAS_ID, IdHash, is_send};
pub(crate) use intern::NONE;
pub(crate) use parents::SpanEvent;
pub(crate) use placement::{Placement, runs};
pub(crate) use records::Loaded;
pub(crate) use scan::{any_value, has_value, timers_set};
pub use source::record_schema;
pub(crate) use source::{BATCH_ROWS, RowRanges, Source, beside, chosen_batches, columns_of, rows_of};
pub(crate) use stamps::{Stamp, Stamps};
pub(crate) use units::{UnitRole, Units, role};
