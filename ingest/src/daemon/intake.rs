//! The way into the daemon: every source hands over its data here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use demi_schemas::EventRecord;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::codec::encode;
use super::metrics::Metrics;
use super::positions::{LivePositions, Positions};
use crate::spool::Body;

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
pub struct Intake {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    to_writer: mpsc::Sender<Request>,
    /// Permits for the bytes that wait to be written: memory is bounded whatever the sources do.
    room: Arc<Semaphore>,
    positions: LivePositions,
    metrics: Arc<Metrics>,
}

/// A batch on its way to the writer.
pub(super) struct Request {
    pub body: Body,
    pub origin: Origin,
    pub positions: Vec<PositionUpdate>,
    /// When it is given up.
    pub deadline: Option<Instant>,
    pub done: oneshot::Sender<Result<Ack, Refusal>>,
    pub permit: OwnedSemaphorePermit,
}

/// Most bytes of one batch as it is spooled.
pub const MAX_BATCH: usize = 32 << 20;
/// Bytes that may wait to be written.
const ROOM: usize = 64 << 20;
/// Batches that may wait to be written.
const REQUESTS: usize = 1024;

impl Intake {
    /// An intake, and the end from which the writer takes the requests.
    pub(super) fn new(positions: LivePositions, metrics: Arc<Metrics>) -> (Self, mpsc::Receiver<Request>) {
        let (to_writer, from) = mpsc::channel(REQUESTS);
        let room = Arc::new(Semaphore::new(ROOM));
        let inner = Inner { to_writer, room, positions, metrics };
        (Intake { inner: Arc::new(inner) }, from)
    }

    /// Makes the batch durable: returns when it is written and synced, together with whatever else was waiting.
    ///
    /// Waits while there is no room, at most for `patience` ([`Duration::MAX`]: as long as it takes). A caller that
    /// stops waiting (drops the future) does not know whether the batch became durable; handing it over again is
    /// safe, since records are known by key.
    ///
    /// # Errors
    /// When the batch was not taken; see [`Refusal`].
    pub async fn submit(&self, batch: Batch, patience: Duration) -> Result<Ack, Refusal> {
        let result = self.try_submit(&batch, patience).await;
        self.inner.metrics.submitted(&batch, &result);
        result
    }

    async fn try_submit(&self, batch: &Batch, patience: Duration) -> Result<Ack, Refusal> {
        let deadline = Instant::now().checked_add(patience);
        let body = Body::new(encode(batch)).ok().filter(|b| b.bytes().len() <= MAX_BATCH);
        let Some(body) = body else {
            return Err(Refusal::TooLarge { bytes: batch.content.len(), limit: self.max_batch_bytes() });
        };
        let wanted = u32::try_from(body.bytes().len()).unwrap_or(u32::MAX);
        let room = self.inner.room.clone().acquire_many_owned(wanted);
        let permit = within(deadline, room).await.ok_or(Refusal::Full)?.map_err(|_| Refusal::Closed)?;
        let (done, answer) = oneshot::channel();
        let (origin, positions) = (batch.origin.clone(), batch.positions.clone());
        let request = Request { body, origin, positions, deadline, done, permit };
        let sent = within(deadline, self.inner.to_writer.send(request)).await.ok_or(Refusal::Full)?;
        sent.map_err(|_| Refusal::Closed)?;
        answer.await.unwrap_or(Err(Refusal::Closed))
    }

    /// The positions a source left behind, by key: those of all its durable batches.
    #[must_use]
    pub fn positions(&self, source: &str) -> BTreeMap<String, Value> {
        self.inner.positions.lock().of(source)
    }

    /// The positions of all sources.
    #[must_use]
    pub fn all_positions(&self) -> Positions {
        self.inner.positions.lock().clone()
    }

    /// Most bytes of content in one batch.
    #[must_use]
    pub fn max_batch_bytes(&self) -> usize {
        // What is left is for the head.
        MAX_BATCH - (1 << 20)
    }
}

impl Content {
    /// Its bytes, of records roughly.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Content::Lines { bytes, .. } => bytes.len(),
            Content::Items(items) => items
                .iter()
                .map(|item| match &item.outcome {
                    Outcome::Record(_) => 256,
                    Outcome::Rejected { raw, .. } => raw.len() + 64,
                })
                .sum(),
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

async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}
