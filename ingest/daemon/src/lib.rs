//! The ingest daemon: sources hand over batches, the spool makes them durable, the committer puts them into the
//! store.
//!
//! ```text
//! files ─┐
//! TCP   ─┤            ack: on disk
//! HTTP  ─┼─► Intake ─► spool ─► committer ─► Delta tables (events, quarantine)
//! OTLP  ─┤               │          │
//! NATS  ─┘               └ positions├ completeness, gauges
//!                                   └ monitors ─► alerts
//! ```
//!
//! - [`intake`]: the one way into the daemon. [`Intake::submit`] returns when the batch is on disk.
//! - [`sources`]: one module for each kind of source; [`sources::SourceKind`] lists them.
//! - [`monitors`]: invariants that are watched while events come in.
//! - [`net::security`]: listeners, their TLS and tokens.

pub mod admin;
mod backoff;
pub mod batch;
#[cfg(test)]
mod breaking;
pub mod check;
pub mod codec;
pub mod committer;
pub mod config;
mod descriptors;
mod forget;
pub mod incidents;
pub mod intake;
pub mod metrics;
pub mod monitors;
pub mod net;
mod own;
pub(crate) mod pairs;
pub mod positions;
#[cfg(test)]
mod power_cut;
mod process;
mod redacted;
mod reserve;
pub mod restored;
mod run;
mod sections;
pub mod serve;
pub mod shutdown;
pub mod sources;
pub mod spool;
pub mod tasks;
pub mod verify;
mod writer;

pub use batch::{Ack, Batch, Content, Item, Origin, PositionUpdate, Refusal};
pub use check::{CheckError, check};
pub use config::{Config, ConfigError};
pub use forget::{Forgotten, Idle};
pub use intake::Intake;
pub use restored::{Restored, saved_positions};
pub use run::{Stopped, run, start_log};
pub use serve::{Daemon, ServeError, Started};
pub use shutdown::Shutdown;
pub use verify::{Verified, verify};
