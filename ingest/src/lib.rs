//! Sources, parsers and the event store.
//!
//! [`load`] reads event records (NDJSON; plain, gzip or Zstandard) and appends them to a [`Store`]: two Delta
//! tables in one directory, `events` partitioned by system and date, and `quarantine` for every line that could
//! not become an event. Loading is idempotent: a record is known by (system, actor, incarnation, seq), and what
//! is already there is counted, not written. Memory is bounded by the number of incarnations of actors and of gaps in
//! their sequence numbers, not by the size of the input.
//!
//! ```no_run
//! use demi_formats::Sources;
//! use demi_ingest::{LoadOptions, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut store = Store::create("incident.store")?;
//! let sources = Sources::plan(&["logs".to_owned()])?;
//! let report = demi_ingest::load(&mut store, sources, &LoadOptions::new("raft-45"), |_| {})?;
//! println!("{} records added", report.summary.added);
//! for file in store.event_files("raft-45")? {
//!     println!("{}", file.path().display());
//! }
//! # Ok(())
//! # }
//! ```

// Some of the reading and storing is there for the daemon alone.
#![cfg_attr(not(feature = "daemon"), allow(dead_code, unused_imports))]

mod admit;
mod columns;
#[cfg(feature = "store")]
mod completeness;
#[cfg(feature = "daemon")]
pub mod daemon;
mod data_file;
#[cfg(feature = "store")]
mod delete;
mod deleted;
mod error;
#[cfg(feature = "store")]
pub mod fs;
mod gather;
mod intervals;
mod lent;
mod load;
mod load_mapped;
#[cfg(feature = "store")]
mod loads;
mod locations;
#[cfg(feature = "store")]
mod noted_stamps;
#[cfg(test)]
#[cfg(feature = "daemon")]
mod power_cut;
mod quarantine;
mod quarantined;
#[cfg(feature = "store")]
mod requeue;
mod scan;
mod seen;
mod sequence;
#[cfg(feature = "daemon")]
pub mod spool;
mod stamps;
#[cfg(feature = "store")]
mod store;
mod system_name;
mod transaction;

#[cfg(feature = "store")]
pub use completeness::{CompletenessRow, completeness, status};
#[cfg(feature = "store")]
pub use delete::{Deletion, Doomed, Waiting, delete};
pub use error::IngestError;
pub use gather::Gathered;
pub use intervals::IntervalSet;
pub use load::{Damage, LoadOptions, LoadReport, Progress};
#[cfg(feature = "store")]
pub use loads::{load, load_mapped};
#[cfg(feature = "store")]
pub use noted_stamps::backward_stamps;
pub use quarantined::Quarantined;
#[cfg(feature = "store")]
pub use requeue::{Requeued, requeue};
#[cfg(feature = "store")]
pub use store::{Store, quarantined};
pub use system_name::check_system_name;
