//! Event records over HTTP: `POST /v1/events` with NDJSON, plain or with `Content-Encoding: gzip` or `zstd`.
//!
//! `200 {"acknowledged":N}`: all N lines are on disk. Any other answer: none of them need be kept, send them again:
//! 400 the body cannot be unpacked, 401 no valid token, 408 too slow, 413 too large, 415 another encoding, 503 (with
//! `Retry-After`) no room or stopping.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use serde::Deserialize;

use super::mapped::{Bodies, Carrier, with_mapping};
use super::web::{bearer, serve};
use super::{Context, Limits, Running, SourceError};
use crate::daemon::intake::{Batch, Content, Refusal};
use crate::daemon::security::{ListenConfig, Listener, Tokens};

/// `[sources.NAME]` with `type = "http"`.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Where to listen.
    #[serde(flatten)]
    pub listen: ListenConfig,
    /// Mapping of the lines, by name or file; each body is mapped by itself. Default: none, they are event records.
    #[serde(default)]
    pub mapping: Option<String>,
}

impl Config {
    /// The keys, for messages that name the nearest one.
    pub const KEYS: [&'static str; 7] = with_mapping(ListenConfig::KEYS);
}

#[derive(Clone)]
struct Shared {
    context: Context,
    tokens: Tokens,
    mapped: Option<Bodies>,
}

/// Checks the files that the configuration names, without listening.
///
/// # Errors
/// When certificates or tokens cannot be used, the address is open to others without authentication, or the mapping
/// cannot be used for bodies.
pub fn check_files(config: &Config) -> Result<(), SourceError> {
    config.listen.check()?;
    Bodies::of(config.mapping.as_deref(), Carrier::Bodies).map(drop)
}

/// Starts listening.
///
/// # Errors
/// When the address cannot be listened on as configured.
pub async fn start(config: Config, context: Context) -> Result<Running, SourceError> {
    let mapped = Bodies::of(config.mapping.as_deref(), Carrier::Bodies)?;
    let listener = Listener::bind(&config.listen, &context.reload).await?;
    let addresses = listener.local_addr().into_iter().collect();
    let shared = Shared { tokens: listener.tokens(), context: context.clone(), mapped };
    let router = Router::new().route("/v1/events", post(events)).with_state(shared);
    let task = tokio::spawn(serve(listener, router, context, config.listen.max_connections));
    Ok(Running { addresses, task })
}

/// Why a request was not taken.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Status of the answer.
    pub status: StatusCode,
    /// A short, stable word.
    pub reason: &'static str,
    /// A sentence.
    pub text: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, reason: &'static str, text: impl Into<String>) -> Self {
        Refused { status, reason, text: text.into() }
    }
}

async fn events(
    State(shared): State<Shared>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match take(&shared, peer, &headers, body).await {
        Ok(lines) => axum::Json(serde_json::json!({ "acknowledged": lines })).into_response(),
        Err(refused) => {
            let Refused { status, reason, text } = refused;
            // What the intake refused was counted there.
            if !matches!(reason, "full" | "closed") {
                shared.context.metrics.count_refused(&shared.context.origin.source, reason);
            }
            let answer = axum::Json(serde_json::json!({ "error": reason, "message": text }));
            match status {
                StatusCode::SERVICE_UNAVAILABLE => {
                    (status, [(header::RETRY_AFTER, "5")], answer).into_response()
                }
                _ => (status, answer).into_response(),
            }
        }
    }
}

async fn take(shared: &Shared, peer: SocketAddr, headers: &HeaderMap, body: Body) -> Result<u64, Refused> {
    let limits = shared.context.limits;
    if !shared.tokens.allow(bearer(headers)) {
        return Err(Refused::new(StatusCode::UNAUTHORIZED, "wrong_token", "a valid bearer token is needed"));
    }
    let bytes = read_body(headers, body, &limits).await?;
    if bytes.is_empty() {
        return Ok(0);
    }
    shared.context.rate.take(bytes.len()).await;
    let stream: Arc<str> = Arc::from(format!("http://{}", peer.ip()));
    let content = Content::Lines { offset: 0, line: 1, bytes: bytes.clone() };
    let lines = content.count();
    let submitted = match &shared.mapped {
        Some(mapped) => mapped.submit(&shared.context, &stream, bytes, (0, 1), limits.full()).await,
        None => {
            let origin = shared.context.origin.clone();
            let batch = Batch { origin, stream, content, positions: Vec::new() };
            shared.context.intake.submit(batch, limits.full()).await.map(drop)
        }
    };
    submitted.map_err(|error| match error {
        Refusal::Full => Refused::new(StatusCode::SERVICE_UNAVAILABLE, "full", error.to_string()),
        Refusal::Closed => Refused::new(StatusCode::SERVICE_UNAVAILABLE, "closed", error.to_string()),
        Refusal::TooLarge { .. } => {
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", error.to_string())
        }
    })?;
    Ok(lines)
}

/// The body of a request, unpacked.
pub(super) async fn read_body(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, Refused> {
    let read = tokio::time::timeout(limits.read(), to_bytes(body, limits.body_bytes)).await;
    let slow = || Refused::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body took too long");
    let packed = read.map_err(|_| slow())?.map_err(|error| {
        let text =
            format!("the body could not be read, or is larger than {} bytes: {error}", limits.body_bytes);
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
    })?;
    let encoding = headers.get(header::CONTENT_ENCODING).map(|v| v.as_bytes().to_ascii_lowercase());
    match encoding.as_deref() {
        None | Some(b"" | b"identity") => Ok(packed),
        Some(b"gzip") => unpack(packed, limits.body_bytes, Packed::Gzip).await,
        Some(b"zstd") => unpack(packed, limits.body_bytes, Packed::Zstd).await,
        Some(other) => {
            let text =
                format!("'{}' is not read; send gzip, zstd or neither", String::from_utf8_lossy(other));
            Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_encoding", text))
        }
    }
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `Content-Encoding: gzip`.
    Gzip,
    /// `Content-Encoding: zstd`.
    Zstd,
}

/// Unpacks a body, never more than the limit.
async fn unpack(packed: Bytes, limit: usize, how: Packed) -> Result<Bytes, Refused> {
    // Unpacking 16 MiB takes milliseconds; other connections shall not wait for it.
    let unpacked = tokio::task::spawn_blocking(move || inflate(&packed, limit, how)).await;
    unpacked.unwrap_or_else(|_| {
        Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "unpacking ended unexpectedly"))
    })
}

/// Unpacks a body; never holds much more than `limit` bytes.
///
/// # Errors
/// When it is damaged or larger than the limit.
pub fn inflate(packed: &[u8], limit: usize, how: Packed) -> Result<Bytes, Refused> {
    let damaged = |e: std::io::Error| {
        Refused::new(StatusCode::BAD_REQUEST, "damaged_body", format!("the body cannot be unpacked: {e}"))
    };
    let mut reader: Box<dyn Read + '_> = match how {
        Packed::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Packed::Zstd => Box::new(zstd::Decoder::with_buffer(packed).map_err(damaged)?),
    };
    let mut out = Vec::new();
    (&mut reader).take(limit as u64 + 1).read_to_end(&mut out).map_err(damaged)?;
    if out.len() > limit {
        let text = format!("the body is larger than {limit} bytes once unpacked");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text));
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bodies_are_unpacked_within_the_limit(
            body in prop::collection::vec(any::<u8>(), 0..300), limit in 0usize..300, cut: usize, noise: Vec<u8>,
        ) {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&body).unwrap();
            let packed = [(Packed::Gzip, gzip.finish().unwrap()), (Packed::Zstd, zstd::encode_all(&body[..], 1).unwrap())];
            for (how, bytes) in packed {
                match inflate(&bytes, limit, how) {
                    Ok(got) => prop_assert_eq!(&got[..], &body[..]),
                    Err(refused) => {
                        prop_assert_eq!(refused.reason, "body_too_large");
                        prop_assert!(body.len() > limit);
                    }
                }
                // Cut off, it is refused, never taken in part.
                let cut = cut % bytes.len();
                if let Ok(got) = inflate(&bytes[..cut], 1000, how) {
                    prop_assert!(got.is_empty() && cut == 0);
                }
                let _ = inflate(&noise, limit, how);
            }
        }
    }
}
