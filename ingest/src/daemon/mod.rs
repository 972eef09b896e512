//! The ingest daemon: sources hand over batches, the spool makes them durable, the committer puts them into the
//! store.
//!
//! ```text
//! files ─┐
//! TCP   ─┤            ack: on disk
//! HTTP  ─┼─► Intake ─► spool ─► committer ─► Delta tables (events, quarantine)
//! OTLP  ─┤               │          │
//! NATS  ─┘               └ positions└ ledger, gauges
//! ```
//!
//! - [`intake`]: the one way into the daemon. [`Intake::submit`] returns when the batch is on disk.
//! - [`sources`]: one file a kind of source; each is a config type and a `start` function.
//! - [`security`]: listeners, their TLS and tokens.

pub mod codec;
pub mod intake;
pub mod metrics;
pub mod positions;
pub mod security;
pub mod shutdown;
pub mod sources;
mod writer;

pub use intake::{Ack, Batch, Content, Intake, Item, Origin, Outcome, PositionUpdate, Refusal};
pub use shutdown::Shutdown;
