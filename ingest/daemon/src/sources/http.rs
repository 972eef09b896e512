//! Event records over HTTP: `POST /v1/events` with NDJSON, plain or with `Content-Encoding: gzip` or `zstd`.
//!
//! `200 {"acknowledged":N}`: all N lines are on disk. Any other answer: none of them need be kept, send them again:
//! 400 the body cannot be unpacked, 401 no valid token, 403 and 421 a page of elsewhere asks, 408 too slow, 413 too large, 415 another encoding,
//! 429 too much is in memory and 503 no room or stopping (both with `Retry-After`).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::body::{Refused, read_body};
use super::mapped::{Bodies, Carrier, with_mapping};
use super::source::read_keys;
use super::web::{bearer, serve};
use super::{Context, Kind, Running, Source, SourceError};
use crate::batch::{Batch, Content, Refusal};
use crate::net::security::{ListenConfig, Listener, SecurityError, Tokens};

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

/// `http`: event records over HTTP.
pub const KIND: Kind = Kind { name: "http", keys: &Config::KEYS, read: read_keys::<Config> };

impl Source for Config {
    fn check_files(&self) -> Result<(), SourceError> {
        check_files(self)
    }

    fn start(&self, context: Context) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(start(self.clone(), context))
    }
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
fn check_files(config: &Config) -> Result<(), SourceError> {
    config.listen.check()?;
    Bodies::of(config.mapping.as_deref(), Carrier::Bodies).map(drop)
}

/// Starts listening.
///
/// # Errors
/// When the address cannot be listened on as configured.
async fn start(config: Config, context: Context) -> Result<Running, SourceError> {
    let mapped = Bodies::of(config.mapping.as_deref(), Carrier::Bodies)?;
    let listener = Listener::bind(&config.listen, &context.reload).await?;
    let addresses = listener.local_addr().into_iter().collect();
    let guard =
        listener.guard().map_err(|source| SecurityError::Bind { address: config.listen.listen, source })?;
    let shared = Shared { tokens: listener.tokens(), context: context.clone(), mapped };
    let router = Router::new().route("/v1/events", post(events)).with_state(shared);
    let task = tokio::spawn(serve(listener, guard, router, context, config.listen.max_connections));
    Ok(Running { addresses, task })
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
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
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
    let (bytes, _held) = read_body(headers, body, &shared.context).await?;
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
