//! The kinds of sources: one module each, with its part of the configuration.
//!
//! A source of kind `x` is a module with a `Config`, which has docs, defaults and `deny_unknown_fields`, and a variant of [`SourceKind`]. `Config`
//! implements [`Source`]; where it listens, it implements [`Serves`], and [`Listening`] is the source.

mod accept;
mod batches;
pub mod body;
pub mod budget;
pub mod files;
mod hand;
pub mod http;
pub(crate) mod mapped;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod rate;
mod source;
pub mod tcp;
pub mod web;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::batch::{Batch, Content, Origin, PositionUpdate};
use super::intake::Intake;
use super::metrics::Metrics;
use super::shutdown::{Reload, Shutdown};
use super::tasks::Tasks;

pub use source::{Listening, Running, Server, Serves, Source, SourceError, SourceKind};

/// What a source is given.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its name and system.
    pub origin: Origin,
    /// Where it hands over.
    pub intake: Intake,
    /// When to stop.
    pub shutdown: Shutdown,
    /// When to read certificates and tokens again.
    pub reload: Reload,
    /// Limits that hold for all sources.
    pub limits: Limits,
    /// How many files it may have open at once.
    pub open_files: usize,
    /// The folders that the daemon writes itself, without links in their paths.
    pub own: Arc<[PathBuf]>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The daemon's tasks.
    pub tasks: Tasks,
    /// How much of requests may be in memory, of all sources together.
    pub budget: budget::Budget,
    /// How fast the source may be: wait for it before handing over.
    pub rate: Arc<rate::Rate>,
}

impl Context {
    /// Counts why something was refused.
    pub(crate) fn count_refused(&self, reason: &str) {
        self.metrics.count_refused(&self.origin.source, reason);
    }

    /// Counts why a request was refused. What has no room, or is too large, is counted where that is found.
    fn count(&self, refused: &body::Refused) {
        if !matches!(refused.reason, "full" | "closed" | "too_large") {
            self.count_refused(refused.reason);
        }
    }

    /// A batch of this source.
    fn batch(&self, stream: &Arc<str>, content: Content, positions: Vec<PositionUpdate>) -> Batch {
        Batch { origin: self.origin.clone(), stream: stream.clone(), content, positions }
    }
}

/// Limits that hold for all sources (`[limits]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Longest line or record, in bytes. Default 1 MiB.
    pub line_bytes: usize,
    /// Largest body of a request, in bytes, unpacked. Default 16 MiB.
    pub body_bytes: usize,
    /// How long a peer may take to send a request or to finish a line it began, in seconds. Default 30.
    pub read_secs: u64,
    /// How long a connection may say nothing between two lines, in seconds. Default 600.
    pub idle_secs: u64,
    /// How fast a source may be, in bytes a second; a faster one is slowed down. 0, the default: as fast as it goes.
    pub bytes_per_sec: u64,
    /// How long a request waits for room in the spool before it is refused, in seconds. Default 10.
    pub full_secs: u64,
    /// Most bytes of requests that are in memory at a time, packed and unpacked, of all sources together. What is more is refused, to come
    /// again later. Default 128 MiB.
    pub requests_bytes: usize,
    /// How many actors a system may have, each incarnation counted, for a source to bring new ones; a name of more than 64 bytes counts as
    /// several. A source can have a number of its own (`actors`). Default 4 000 000.
    pub actors: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            line_bytes: 1 << 20,
            body_bytes: 16 << 20,
            read_secs: 30,
            idle_secs: 600,
            bytes_per_sec: 0,
            full_secs: 10,
            requests_bytes: 128 << 20,
            actors: 4_000_000,
        }
    }
}

impl Limits {
    /// `read_secs` as a duration.
    #[must_use]
    pub fn read(&self) -> Duration {
        Duration::from_secs(self.read_secs)
    }

    /// `idle_secs` as a duration.
    #[must_use]
    pub fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_secs)
    }

    /// `full_secs` as a duration: the patience of [`Intake::submit`] for requests.
    #[must_use]
    pub fn full(&self) -> Duration {
        Duration::from_secs(self.full_secs)
    }
}
