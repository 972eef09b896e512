//! What sources hand over: batches that become durable together.

use std::sync::Arc;

use bytes::Bytes;
use demi_formats::Rejection;
use serde_json::Value;

/// Most bytes of one batch as it is spooled.
pub const MAX_BATCH: usize = 32 << 20;

/// Who hands over: a source as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the source in the configuration (`[sources.NAME]`).
    pub source: Arc<str>,
    /// The system whose events it brings.
    pub system: Arc<str>,
}

/// How the names begin under which the daemon's own monitors hand over. No source is called so.
pub(crate) const OF_MONITORS: &str = "monitors.";

impl Origin {
    /// Whether the daemon itself hands over.
    #[must_use]
    pub fn is_daemon(&self) -> bool {
        self.source.starts_with(OF_MONITORS)
    }
}

/// Data that becomes durable together, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Who hands it over.
    pub origin: Origin,
    /// The file or connection: column `source` of the tables.
    pub stream: Arc<str>,
    /// What was read.
    pub content: Content,
    /// Where the source is after this batch. Kept with the batch: a source that starts again finds exactly the
    /// positions of the batches that are durable.
    pub positions: Vec<PositionUpdate>,
}

/// What a batch holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Whole lines of native event records (NDJSON) as they came, not looked at. Lines that are no records go to
    /// quarantine later.
    Lines {
        /// Offset of the first byte in the stream (for packed files: unpacked).
        offset: u64,
        /// Number of the first line in the stream from 1; 0 where nobody counts.
        line: u64,
        /// The lines with their newlines; the last may lack its own.
        bytes: Bytes,
    },
    /// What a parser of the source made of another format.
    Items(Vec<Item>),
    /// Nothing but positions.
    Nothing,
}

/// One record or one rejected piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Line number from 1; 0 where there is none.
    pub line: u64,
    /// An event record as JSON, whose `system`, if any, must be that of the origin; or the bytes as they came, where they are rejected.
    pub bytes: Bytes,
    /// Why it goes to quarantine, if it does.
    pub rejected: Option<Rejection>,
}

impl Item {
    /// Bytes of what it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.rejected.as_ref().map_or(0, |why| why.reason().len())
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A position of a source, replaced (or forgotten) when the batch is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionUpdate {
    /// What it is the position of; unique within the source.
    pub key: String,
    /// Whatever the source needs to go on; `None` forgets the key.
    pub value: Option<Value>,
}

/// A batch is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Its number in the spool, growing by one with each batch.
    pub lsn: u64,
}

/// Why a batch was not taken. Nothing of it was kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The spool is full, or the disk is, and did not get room in the time given. Try again later.
    #[error("the spool has no room; try again later")]
    Full,
    /// The batch is larger than any batch may be.
    #[error("a batch of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// Most there may be.
        limit: usize,
    },
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Closed,
}

impl Content {
    /// Its bytes, of records roughly.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Content::Lines { bytes, .. } => bytes.len(),
            Content::Items(items) => items.iter().map(|item| item.bytes.len() + 64).sum(),
            Content::Nothing => 0,
        }
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lines or items in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Content::Lines { bytes, .. } => {
                let open = !bytes.is_empty() && bytes.last() != Some(&b'\n');
                memchr::memchr_iter(b'\n', bytes).count() as u64 + u64::from(open)
            }
            Content::Items(items) => items.len() as u64,
            Content::Nothing => 0,
        }
    }
}
