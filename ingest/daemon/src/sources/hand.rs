//! Handing over what a source makes of bytes, while it is made: a batch is on its way before the next one is full.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::Context;
use super::batches::Batches;
use crate::batch::{Content, Item, Refusal};

/// Bytes from which they are worked on by a thread of its own: other connections shall not wait.
const LARGE: usize = 64 << 10;

/// What is handed over.
pub(super) struct Work<'a> {
    pub(super) context: &'a Context,
    /// The connection or message.
    pub(super) stream: &'a Arc<str>,
    /// How many bytes are worked on.
    pub(super) bytes: usize,
    /// Most bytes that become of them.
    pub(super) most: u64,
    /// How long each batch waits for room.
    pub(super) patience: Duration,
}

/// Does work whose batches are few.
fn at_once<T>(most: u64, work: impl FnOnce(&mut Batches<'_>) -> T) -> (T, Vec<Vec<Item>>, bool) {
    let mut all = Vec::new();
    let mut batches = Batches::new(most, |items| {
        all.push(items);
        true
    });
    let done = work(&mut batches);
    let whole = batches.end();
    (done, all, whole)
}

impl Work<'_> {
    /// Does the work, which gives its items one by one, and returns when all of them are durable.
    ///
    /// # Errors
    /// When a batch was not taken, or they were more than they may be. Those before it are durable.
    pub(super) async fn hand_over<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut Batches<'_>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let most = self.most;
        if self.bytes < LARGE {
            let (done, all, whole) = at_once(most, work);
            for items in all {
                self.submit(items).await?;
            }
            return if whole { Ok(done) } else { Err(self.too_large()) };
        }
        let _turn = self.context.budget.turn().await;
        let (to, mut made) = mpsc::channel(1);
        let worker = spawn_blocking(move || {
            let mut listened = true;
            let mut batches = Batches::new(most, |items: Vec<Item>| {
                listened = to.blocking_send(items).is_ok();
                listened
            });
            let done = work(&mut batches);
            let whole = batches.end();
            (done, whole || !listened)
        });
        while let Some(items) = made.recv().await {
            self.submit(items).await?;
        }
        match worker.await {
            Ok((done, true)) => Ok(done),
            Ok((_, false)) => Err(self.too_large()),
            Err(error) => {
                self.context.tasks.panicked(&format!("conversion of {}", self.context.origin.source), error);
                Err(Refusal::Closed)
            }
        }
    }

    fn too_large(&self) -> Refusal {
        let limit = usize::try_from(self.most).unwrap_or(usize::MAX);
        let refusal = Refusal::TooLarge { bytes: limit.saturating_add(1), limit };
        self.context.count_refused("too_large");
        refusal
    }

    async fn submit(&self, items: Vec<Item>) -> Result<(), Refusal> {
        let batch = self.context.batch(self.stream, Content::Items(items), Vec::new());
        self.context.intake.submit(batch, self.patience).await.map(drop)
    }
}
