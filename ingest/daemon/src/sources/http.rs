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
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;

use super::body::{Refused, read_body};
use super::mapped::{Bodies, Carrier};
use super::web::{Protocols, answer_json, bearer, serve};
use super::{Context, Server, Serves, SourceError};
use crate::batch::Content;
use crate::net::security::Tokens;

/// The keys of `[sources.NAME]` with `type = "http"` besides those of the listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Mapping of the lines, by name or file; each body is mapped by itself. Default: none, they are event records.
    #[serde(default)]
    mapping: Option<String>,
}

impl Config {
    fn bodies(&self) -> Result<Bodies, SourceError> {
        Bodies::of(self.mapping.as_deref(), Carrier::Bodies)
    }
}

impl Serves for Config {
    fn check_files(&self) -> Result<(), SourceError> {
        self.bodies().map(drop)
    }

    fn server(&self, context: Context) -> Result<Server, SourceError> {
        let bodies = self.bodies()?;
        Ok(Box::new(move |listener| {
            let shared = Shared { tokens: listener.tokens(), context: context.clone(), bodies };
            let router = Router::new().route("/v1/events", post(events)).with_state(shared);
            Box::pin(serve(listener, context, router, Protocols::HTTP1))
        }))
    }
}

#[derive(Clone)]
struct Shared {
    context: Context,
    tokens: Tokens,
    bodies: Bodies,
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
            shared.context.count(&refused);
            answer_json(&refused, serde_json::json!({ "error": refused.reason, "message": refused.text }))
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
    let lines = Content::Lines { offset: 0, line: 1, bytes: bytes.clone() }.count();
    shared.bodies.submit(&shared.context, &stream, bytes, (0, 1), limits.full()).await?;
    Ok(lines)
}
