//! Event records over TCP: one JSON object a line, an answer for each batch that is on disk.
//!
//! The server writes `{"acknowledged":N}` and a newline: the first N lines of this connection (empty ones count) are
//! durable. What is not acknowledged when the connection ends is sent again on the next; nothing is stored twice.
//! Where tokens are required the first line is `AUTH TOKEN`; it is not counted. Before the server closes a
//! connection that it does not like it says why: `{"error":"…"}`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Context, Running, SourceError};
use crate::daemon::intake::{Batch, Content, Refusal};
use crate::daemon::metrics::SourceLabel;
use crate::daemon::security::{Connection, ListenConfig, Listener, Tokens};

/// Bytes read before a batch is handed over though more is there.
const BATCH_BYTES: usize = 4 << 20;

/// `[sources.NAME]` with `type = "tcp"`.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Where to listen.
    #[serde(flatten)]
    pub listen: ListenConfig,
}

impl Config {
    /// The keys, for messages that name the nearest one.
    pub const KEYS: [&'static str; 6] = ListenConfig::KEYS;
}

/// Starts listening.
///
/// # Errors
/// When the address cannot be listened on as configured.
pub async fn start(config: Config, context: Context) -> Result<Running, SourceError> {
    let mut listener = Listener::bind(&config.listen, &context.reload).await?;
    listener.count_into(&context.metrics, &context.origin.source);
    let addresses = listener.local_addr().into_iter().collect();
    let tokens = listener.tokens();
    let most = Arc::new(Semaphore::new(config.listen.max_connections.max(1)));
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        let label = SourceLabel { source: context.origin.source.to_string() };
        loop {
            let permit = tokio::select! {
                permit = most.clone().acquire_owned() => permit,
                () = context.shutdown.wait() => break,
            };
            let Ok(permit) = permit else { break };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = context.shutdown.wait() => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(source = %context.origin.source, %error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (context, tokens, label) = (context.clone(), tokens.clone(), label.clone());
            connections.spawn(async move {
                let gauge = context.metrics.connections.get_or_create(&label).clone();
                gauge.inc();
                let name = Arc::from(format!("tcp://{}", peer.ip()));
                let mut served = Served { stream, name, context, lines: 0, offset: 0 };
                if let Err(reason) = served.serve(&tokens).await {
                    served.refuse(reason).await;
                }
                gauge.dec();
                drop(permit);
            });
            while connections.try_join_next().is_some() {}
        }
        // Batches on their way are finished and acknowledged.
        while connections.join_next().await.is_some() {}
    });
    Ok(Running { addresses, task })
}

/// Why a connection is closed: a word for the metrics.
type Reason = &'static str;

struct Served {
    stream: Connection,
    name: Arc<str>,
    context: Context,
    lines: u64,
    offset: u64,
}

impl Served {
    async fn serve(&mut self, tokens: &Tokens) -> Result<(), Reason> {
        let limits = self.context.limits;
        let mut buffer = BytesMut::with_capacity(256 << 10);
        let mut unknown = tokens.required();
        // Since when the line at the end of the buffer is unfinished.
        let mut since = Instant::now();
        loop {
            let patience = if buffer.is_empty() { limits.idle() } else { limits.read() };
            let left = patience.saturating_sub(since.elapsed());
            let read = tokio::select! {
                read = tokio::time::timeout(left, self.stream.read_buf(&mut buffer)) => read,
                () = self.context.shutdown.wait() => return Ok(()),
            };
            match read {
                Err(_) if buffer.is_empty() => return Err("idle"),
                Err(_) => return Err("too_slow"),
                Ok(Ok(0)) if buffer.is_empty() => return Ok(()),
                Ok(Ok(0)) => return Err("unfinished_line"),
                Ok(Err(_)) => return Err("broken_connection"),
                Ok(Ok(_)) => {}
            }
            // What is there already belongs to the same batch.
            while buffer.len() < BATCH_BYTES {
                match self.stream.read_buf(&mut buffer).now_or_never() {
                    Some(Ok(n)) if n > 0 => {}
                    _ => break,
                }
            }
            if unknown && let Some(end) = memchr::memchr(b'\n', &buffer) {
                let line = buffer.split_to(end + 1);
                let shown = line.strip_prefix(b"AUTH ").map(<[u8]>::trim_ascii);
                if shown.is_none() || !tokens.allow(shown) {
                    return Err("wrong_token");
                }
                unknown = false;
                since = Instant::now();
            }
            if unknown {
                if buffer.len() > 4096 {
                    return Err("wrong_token");
                }
                continue;
            }
            if let Some(end) = memchr::memrchr(b'\n', &buffer) {
                let bytes = buffer.split_to(end + 1).freeze();
                self.hand_over(bytes).await?;
                since = Instant::now();
            }
            if buffer.len() > limits.line_bytes {
                return Err("line_too_long");
            }
        }
    }

    /// Hands over whole lines and acknowledges them when they are on disk. Meanwhile nothing more is read: a client
    /// that is faster than the disk is slowed down by TCP.
    async fn hand_over(&mut self, bytes: Bytes) -> Result<(), Reason> {
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        let len = bytes.len() as u64;
        self.context.rate.take(bytes.len()).await;
        let batch = Batch {
            origin: self.context.origin.clone(),
            stream: self.name.clone(),
            content: Content::Lines { offset: self.offset, line: self.lines + 1, bytes },
            positions: Vec::new(),
        };
        match self.context.intake.submit(batch, Duration::MAX).await {
            Ok(_) => {}
            Err(Refusal::Closed) => return Err("stopping"),
            Err(Refusal::Full) => return Err("full"),
            Err(Refusal::TooLarge { .. }) => return Err("batch_too_large"),
        }
        self.lines += lines;
        self.offset += len;
        let answer = format!("{{\"acknowledged\":{}}}\n", self.lines);
        let sent =
            tokio::time::timeout(self.context.limits.read(), self.stream.write_all(answer.as_bytes())).await;
        // A peer that does not read its acknowledgements is as slow as one that does not write.
        sent.map_err(|_| "too_slow")?.map_err(|_| "broken_connection")
    }

    async fn refuse(&mut self, reason: Reason) {
        self.context.metrics.count_refused(&self.context.origin.source, reason);
        tracing::debug!(source = %self.context.origin.source, peer = %self.name, reason, "connection closed");
        let answer = format!("{{\"error\":\"{reason}\"}}\n");
        let close = async {
            self.stream.write_all(answer.as_bytes()).await?;
            self.stream.shutdown().await
        };
        // It is closed either way.
        let _ = tokio::time::timeout(Duration::from_secs(1), close).await;
    }
}
