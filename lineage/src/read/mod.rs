//! Reading the store's files: events as compact columns in each actor's order, and the rows themselves in that order.

mod ahead;
pub(crate) mod columns;
mod events;
pub(crate) mod gather;
mod intern;
mod parents;
pub(crate) mod records;
mod source;
mod units;

pub(crate) use events::{EXTERNAL, Events, HAS_ID, IdHash, is_send};
pub(crate) use intern::NONE;
pub(crate) use records::{Loaded, Placement};
pub(crate) use source::{Source, beside, columns_of, record_schema, some_rows};
pub(crate) use units::{Role, Units, role};
