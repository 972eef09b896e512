//! Writes the event records of a Rust actor system, with two macro calls a message.
//!
//! A [`Layer`] for [`tracing`] takes the events that the macros of this crate make and writes one JSON line for each,
//! as `demi-lineage ingest` reads them. It keeps the sequence number (`seq`) and the incarnation of each actor.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = std::env::temp_dir().join(format!("demi-log-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let path = dir.join("events.jsonl");
//! let (layer, guard) = demi_log::Builder::new().to_file(&path)?;
//! let subscriber = tracing_subscriber::registry().with(layer);
//! tracing::subscriber::with_default(subscriber, || {
//!     demi_log::start!("raft-1");
//!     // The sender logs and puts the id into the message …
//!     let id = demi_log::send!("raft-1", "raft-2", "RequestVote", payload = "RequestVote(term 3)");
//!     // … and the receiver logs it when it begins to handle the message.
//!     demi_log::receive!("raft-2", "raft-1", "RequestVote", id, payload = "RequestVote(term 3)");
//!     demi_log::state!("raft-2", term = 3, role = "follower");
//! });
//! drop(guard); // writes what is buffered
//! assert_eq!(std::fs::read_to_string(&path)?.lines().count(), 4);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok(())
//! # }
//! ```
//!
//! **No waiting.** The thread that logs formats the line and copies it into a buffer; a thread of the crate's own
//! writes. If that thread cannot keep up, events are dropped, counted, and the loss is told twice: the dropped events'
//! sequence numbers are missing in their actor's log, and the next record that fits is preceded by a `local` record of
//! type `demi_log.dropped` that says how many and which.
//!
//! **Order.** An actor's sequence numbers are given in the order of the macro calls. An actor must not be in two macro calls
//! at the same time for that order to mean anything, which is how actors work. Call `send!` before the message can be
//! received, and `receive!` before anything that handling it causes.

mod actors;
mod buffer;
mod encode;
mod error;
mod id;
mod incarnations;
mod json;
mod layer;
mod macros;
mod notes;
mod sink;
mod writer;

pub use error::LogError;
pub use id::{IdError, MsgId};
pub use json::AsJson;
pub use layer::{Builder, Layer};
pub use writer::Guard;

/// The target of the events that the macros make.
pub const TARGET: &str = "demi_log";

#[doc(hidden)]
pub mod private {
    use std::sync::atomic::{AtomicU64, Ordering};

    pub use tracing;

    /// The number of an operation on threads: they count over all threads of the process.
    #[must_use]
    pub fn operation() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::SeqCst)
    }

    /// The number of the process, which tells operations of several apart.
    #[must_use]
    pub fn process() -> u32 {
        std::process::id()
    }
}
