//! The way into the daemon: every source hands over its data here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use demi_schemas::EventRecord;
use serde_json::Value;

/// Who hands over: a source as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// Name of the source in the configuration (`[sources.NAME]`).
    pub source: Arc<str>,
    /// The system whose events it brings.
    pub system: Arc<str>,
}

/// Data that becomes durable together, or not at all.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
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

/// One record or one refused piece of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Line number from 1; 0 where there is none.
    pub line: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a piece of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// An event record. `system` in it, if any, must be that of the origin.
    Record(Box<EventRecord>),
    /// It goes to quarantine.
    Rejected {
        /// The bytes as they came.
        raw: Bytes,
        /// A short, stable word for what is wrong (`not_json`, `rule`, …).
        code: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
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

/// Where sources hand over. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Intake {}

impl Intake {
    /// Makes the batch durable: returns when it is written and synced, together with whatever else was waiting.
    ///
    /// Waits while there is no room, at most for `patience`. A caller that stops waiting (drops the future) does
    /// not know whether the batch became durable; handing it over again is safe, since records are known by key.
    ///
    /// # Errors
    /// When the batch was not taken; see [`Refusal`].
    pub async fn submit(&self, batch: Batch, patience: Duration) -> Result<Ack, Refusal> {
        let _ = (batch, patience);
        Err(Refusal::Closed)
    }

    /// The positions a source left behind, by key.
    #[must_use]
    pub fn positions(&self, source: &str) -> BTreeMap<String, Value> {
        let _ = source;
        BTreeMap::new()
    }

    /// Most bytes of content in one batch.
    #[must_use]
    pub fn max_batch_bytes(&self) -> usize {
        0
    }
}
