//! The event store, and the admission of records into it.
//!
//! [`load`] reads event records (NDJSON; plain, gzip or Zstandard) and appends them to a [`Store`]: two Delta
//! tables in one directory, `events` partitioned by system and date, and `quarantine` for every line that could
//! not become an event. Loading is idempotent: a record is known by (system, actor, incarnation, seq), and what
//! is already there is counted, not written. Memory is bounded by the number of incarnations of actors and of gaps in
//! their sequence numbers, not by the size of the input.
//!
//! ```no_run
//! use demi_formats::Sources;
//! use demi_store::{LoadOptions, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut store = Store::create("incident.store")?;
//! let sources = Sources::plan(&["logs".to_owned()])?;
//! let report = demi_store::load(&mut store, sources, &LoadOptions::new("raft-45"), |_| {})?;
//! println!("{} records added", report.summary.added);
//! for file in store.event_files("raft-45")? {
//!     println!("{}", file.path().display());
//! }
//! # Ok(())
//! # }
//! ```

// Some of it is there for the tables alone.
#![cfg_attr(not(feature = "delta"), allow(dead_code, unused_imports))]

pub mod admit;
mod chunks;
mod columns;
#[cfg(feature = "delta")]
pub mod completeness;
mod data_file;
#[cfg(feature = "delta")]
pub mod delete;
mod deleted;
#[cfg(feature = "delta")]
pub mod delta;
mod encoder;
mod error;
#[cfg(feature = "delta")]
pub mod fs;
mod gather;
mod intervals;
mod lent;
mod load;
#[cfg(feature = "delta")]
mod loads;
pub mod locations;
#[cfg(feature = "delta")]
pub mod noted_stamps;
pub mod quarantine;
mod quarantined;
#[cfg(feature = "delta")]
mod requeue;
mod row_digest;
pub mod scan;
pub mod seen;
mod sequence;
pub mod stamps;
mod system_name;
mod transaction;
#[cfg(feature = "delta")]
mod violations;
#[cfg(feature = "delta")]
pub mod writing;

#[cfg(feature = "delta")]
pub use completeness::{CompletenessRow, completeness, status};
#[cfg(feature = "delta")]
pub use delete::{Deletion, Doomed, Waiting, delete, delete_locked};
#[cfg(feature = "delta")]
pub use delta::lineage::{LineageTable, made_from};
#[cfg(feature = "delta")]
pub use delta::remote::{folder_of, is_mirror};
#[cfg(feature = "delta")]
pub use delta::remote_objects::RemoteObjects;
#[cfg(feature = "delta")]
pub use delta::{Copied, Store, back_up, quarantined, restore};
pub use error::StoreError;
pub use gather::Gathered;
pub use intervals::IntervalSet;
pub use load::{Damage, LoadOptions, LoadReport, Progress};
#[cfg(feature = "delta")]
pub use loads::{load, load_mapped};
#[cfg(feature = "delta")]
pub use noted_stamps::backward_stamps;
pub use quarantined::Quarantined;
#[cfg(feature = "delta")]
pub use requeue::{Requeued, requeue};
pub use system_name::check_system_name;
#[cfg(feature = "delta")]
pub use violations::{ViolationRow, violations_since};
