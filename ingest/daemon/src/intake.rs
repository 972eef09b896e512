//! The way into the daemon: every source hands over its data here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::batch::{Ack, Batch, Content, MAX_BATCH, Origin, PositionUpdate, Refusal};
use super::codec::encode;
use super::metrics::Metrics;
use super::positions::{LivePositions, Positions};
use super::redacted::redacted;
use crate::spool::Body;
use demi_formats::Redaction;

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
    redact: Option<Arc<Redaction>>,
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

/// Bytes that may wait to be written.
const ROOM: usize = 64 << 20;
/// Batches that may wait to be written.
const REQUESTS: usize = 1024;

/// Lines that are redacted together.
const REDACTED_LINES: usize = 32 << 10;

impl Intake {
    /// An intake, and the end from which the writer takes the requests. What is handed over is redacted before anything of it
    /// is written.
    pub(super) fn new(
        positions: LivePositions,
        metrics: Arc<Metrics>,
        redact: Option<Arc<Redaction>>,
    ) -> (Self, mpsc::Receiver<Request>) {
        let (to_writer, from) = mpsc::channel(REQUESTS);
        let room = Arc::new(Semaphore::new(ROOM));
        let inner = Inner { to_writer, room, positions, metrics, redact };
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
        let mut batch = batch;
        // Redacted, a line becomes an item with a head of its own: short ones take many times their bytes, so they go in pieces. The
        // positions come with the last one.
        if self.inner.redact.is_some()
            && let Content::Lines { offset, line, bytes } = &mut batch.content
        {
            let mut rest = bytes.clone();
            let (mut at, mut number) = (*offset, *line);
            while let Some(newline) = memchr::memchr_iter(b'\n', &rest).nth(REDACTED_LINES) {
                let some = rest.split_to(newline + 1);
                let piece = Batch {
                    origin: batch.origin.clone(),
                    stream: batch.stream.clone(),
                    positions: Vec::new(),
                    content: Content::Lines { offset: at, line: number, bytes: some.clone() },
                };
                at += some.len() as u64;
                number += if number > 0 { REDACTED_LINES as u64 + 1 } else { 0 };
                self.submit_whole(piece, patience).await?;
            }
            (*offset, *line, *bytes) = (at, number, rest);
        }
        self.submit_whole(batch, patience).await
    }

    async fn submit_whole(&self, batch: Batch, patience: Duration) -> Result<Ack, Refusal> {
        let result = self.try_submit(&batch, patience).await;
        self.inner.metrics.submitted(&batch, &result);
        result
    }

    async fn try_submit(&self, batch: &Batch, patience: Duration) -> Result<Ack, Refusal> {
        let deadline = Instant::now().checked_add(patience);
        let allowed = self.inner.redact.as_ref().map(|redact| redacted(batch, redact));
        let body = Body::new(encode(allowed.as_ref().unwrap_or(batch)))
            .ok()
            .filter(|b| b.bytes().len() <= MAX_BATCH);
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
        most_bytes(self.inner.redact.is_some())
    }
}

/// Most bytes of content in one batch. What is left is for the head, and for what redaction adds.
pub(super) fn most_bytes(redacts: bool) -> usize {
    if redacts { MAX_BATCH / 2 } else { MAX_BATCH - (1 << 20) }
}

async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}
