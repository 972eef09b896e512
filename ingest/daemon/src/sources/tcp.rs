//! Event records over TCP: one JSON object a line, an answer for each batch that is on disk.
//!
//! The server writes `{"acknowledged":N}` and a newline: the first N lines of this connection (empty ones count) are
//! durable. What is not acknowledged when the connection ends is sent again on the next; nothing is stored twice.
//! Where tokens are required the first line is `AUTH TOKEN`; it is not counted. Before the server closes a
//! connection that it does not like it says why: `{"error":"…"}`. It does not like HTTP, in which a page that a browser shows may speak to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::accept::accept;
use super::mapped::{Bodies, Carrier};
use super::{Context, Server, Serves, SourceError};
use crate::batch::Refusal;
use crate::net::security::{Connection, Tokens};

/// Bytes read before a batch is handed over though more is there.
const BATCH_BYTES: usize = 4 << 20;
/// Longest line with a token.
const TOKEN_BYTES: usize = 4096;

/// The keys of `[sources.NAME]` with `type = "tcp"` besides those of the listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Mapping of the lines, by name or file. Default: none, they are event records.
    #[serde(default)]
    mapping: Option<String>,
}

impl Config {
    fn bodies(&self) -> Result<Bodies, SourceError> {
        Bodies::of(self.mapping.as_deref(), Carrier::Connections)
    }
}

impl Serves for Config {
    fn check_files(&self) -> Result<(), SourceError> {
        self.bodies().map(drop)
    }

    fn server(&self, context: Context) -> Result<Server, SourceError> {
        let bodies = self.bodies()?;
        Ok(Box::new(move |listener| {
            let tokens = listener.tokens();
            // At shutdown batches on their way are finished and acknowledged.
            Box::pin(async move {
                let serve = |stream, peer: SocketAddr| {
                    let (context, tokens, bodies) = (context.clone(), tokens.clone(), bodies.clone());
                    async move {
                        let name = Arc::from(format!("tcp://{}", peer.ip()));
                        let mut served = Served { stream, name, context, bodies, lines: 0, offset: 0 };
                        if let Err(reason) = served.serve(&tokens).await {
                            served.refuse(reason).await;
                        }
                    }
                };
                accept(listener, &context, serve).await;
            })
        }))
    }
}

/// Why a connection is closed: a word for the metrics.
type Reason = &'static str;

/// Cuts what comes over a connection into its first line, where a token is needed, and stretches of whole lines.
#[derive(Debug)]
pub struct Framing {
    buffer: BytesMut,
    limit: usize,
    token: bool,
    /// Whether something was given out.
    begun: bool,
}

/// What came whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The first line, with its newline.
    Token(Bytes),
    /// Lines, each with its newline.
    Lines(Bytes),
}

impl Framing {
    /// Lines of at most `limit` bytes; with `token` the first one is a token's.
    #[must_use]
    pub fn new(limit: usize, token: bool) -> Self {
        Framing { buffer: BytesMut::with_capacity(256 << 10), limit, token, begun: false }
    }

    /// Takes in what was received.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes received and not given out.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// What is whole, if anything is.
    ///
    /// # Errors
    /// When the peer speaks HTTP, or the unfinished line is longer than a line may be; the connection is of no use then. A whole line that is
    /// too long is given out like others: it goes to quarantine.
    #[expect(clippy::should_implement_trait, reason = "it can fail, and go on after it had nothing")]
    pub fn next(&mut self) -> Result<Option<Piece>, Reason> {
        if self.token {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                (self.token, self.begun) = (false, true);
                return Ok(Some(Piece::Token(self.buffer.split_to(end + 1).freeze())));
            }
            return if self.buffer.len() > TOKEN_BYTES { Err("wrong_token") } else { Ok(None) };
        }
        // A browser sends what a page tells it to, but never without such a line before it.
        if let (false, Some(end)) = (self.begun, memchr::memchr(b'\n', &self.buffer))
            && is_request_line(&self.buffer[..end])
        {
            return Err("http_request");
        }
        if let Some(end) = memchr::memrchr(b'\n', &self.buffer) {
            self.begun = true;
            return Ok(Some(Piece::Lines(self.buffer.split_to(end + 1).freeze())));
        }
        if self.buffer.len() > self.limit { Err("line_too_long") } else { Ok(None) }
    }
}

/// Whether a request of HTTP begins with this line: `METHOD TARGET HTTP/VERSION`.
fn is_request_line(line: &[u8]) -> bool {
    let mut words = line.trim_ascii().split(|byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    let named = !method.is_empty() && method.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    named && words.next_back().is_some_and(|version| version.starts_with(b"HTTP/"))
}

struct Served {
    stream: Connection,
    name: Arc<str>,
    context: Context,
    bodies: Bodies,
    lines: u64,
    offset: u64,
}

impl Served {
    async fn serve(&mut self, tokens: &Tokens) -> Result<(), Reason> {
        let limits = self.context.limits;
        let mut framing = Framing::new(limits.line_bytes, tokens.required());
        // Since when the line at the end of the buffer is unfinished.
        let mut since = Instant::now();
        loop {
            let patience = if framing.pending() == 0 { limits.idle() } else { limits.read() };
            let left = patience.saturating_sub(since.elapsed());
            let read = tokio::select! {
                read = tokio::time::timeout(left, self.stream.read_buf(&mut framing.buffer)) => read,
                () = self.context.shutdown.wait() => return Ok(()),
            };
            match read {
                Err(_) if framing.pending() == 0 => return Err("idle"),
                Err(_) => return Err("too_slow"),
                Ok(Ok(0)) if framing.pending() == 0 => return Ok(()),
                Ok(Ok(0)) => return Err("unfinished_line"),
                Ok(Err(_)) => return Err("broken_connection"),
                Ok(Ok(_)) => {}
            }
            // What is there already belongs to the same batch.
            while framing.pending() < BATCH_BYTES {
                match self.stream.read_buf(&mut framing.buffer).now_or_never() {
                    Some(Ok(n)) if n > 0 => {}
                    _ => break,
                }
            }
            while let Some(piece) = framing.next()? {
                match piece {
                    Piece::Token(line) => {
                        let shown = line.strip_prefix(b"AUTH ").map(<[u8]>::trim_ascii);
                        if shown.is_none() || !tokens.allow(shown) {
                            return Err("wrong_token");
                        }
                    }
                    Piece::Lines(bytes) => self.hand_over(bytes).await?,
                }
                since = Instant::now();
            }
        }
    }

    /// Hands over whole lines and acknowledges them when they are on disk. Meanwhile nothing more is read: a client
    /// that is faster than the disk is slowed down by TCP.
    async fn hand_over(&mut self, bytes: Bytes) -> Result<(), Reason> {
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        let len = bytes.len() as u64;
        self.context.rate.take(bytes.len()).await;
        let place = (self.offset, self.lines + 1);
        let submitted = self.bodies.submit(&self.context, &self.name, bytes, place, Duration::MAX).await;
        match submitted {
            Ok(()) => {}
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
        self.context.count_refused(reason);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_speaks_http_is_closed_before_its_body_is_read() {
        for (token, text) in [
            (false, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n{}\n"),
            (false, "M-SEARCH * HTTP/1.0\n{}\n"),
            (false, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            (false, "GET /a b c HTTP/1.1\n"),
        ] {
            let mut framing = Framing::new(1000, token);
            for byte in text.as_bytes() {
                framing.push(&[*byte]);
                match framing.next() {
                    Ok(None) => continue,
                    got => {
                        assert_eq!(got, Err("http_request"), "{text}");
                        break;
                    }
                }
            }
            assert!(framing.pending() > 0, "{text}");
        }
        for text in [
            "{\"actor\":\"GET / HTTP/1.1\"}\n",
            "10.0.0.1 GET / HTTP/1.1\n",
            "GET / HTTP/1.1 200\n",
            "get / HTTP/1.1\n",
        ] {
            let mut framing = Framing::new(1000, false);
            framing.push(text.as_bytes());
            assert_eq!(
                framing.next(),
                Ok(Some(Piece::Lines(Bytes::copy_from_slice(text.as_bytes())))),
                "{text}"
            );
        }
    }

    proptest! {
        /// However the bytes are cut into pieces: whole lines come out as they were, in order, and nothing else.
        #[test]
        fn framing_is_a_split_at_the_last_newline(
            pieces in prop::collection::vec("[ab\n]{0,9}", 0..20), limit in 1usize..12, token: bool,
        ) {
            let mut framing = Framing::new(limit, token);
            let all = pieces.concat();
            let (mut out, mut first, mut closed) = (Vec::new(), None, false);
            'all: for piece in &pieces {
                framing.push(piece.as_bytes());
                loop {
                    match framing.next() {
                        Ok(Some(Piece::Token(line))) => {
                            prop_assert!(token && first.is_none() && out.is_empty());
                            prop_assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
                            out.extend_from_slice(&line);
                            first = Some(line);
                        }
                        Ok(Some(Piece::Lines(lines))) => {
                            prop_assert!(lines.ends_with(b"\n") && (!token || first.is_some()));
                            out.extend_from_slice(&lines);
                        }
                        Ok(None) => break,
                        Err(reason) => {
                            prop_assert_eq!(reason, "line_too_long");
                            prop_assert!(framing.pending() > limit);
                            closed = true;
                            break 'all;
                        }
                    }
                }
            }
            prop_assert!(all.as_bytes().starts_with(&out));
            if !closed {
                let rest = &all[out.len()..];
                prop_assert_eq!(framing.pending(), rest.len());
                prop_assert!(!rest.contains('\n') && (rest.len() <= limit || token && first.is_none()));
            }
        }
    }
}
