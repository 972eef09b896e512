//! `/healthz`, `/readyz`, `/metrics` and `/v1/positions`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::net::security::{ListenConfig, Listener, SecurityError, Tokens};
use super::sources::web::{bearer, serve};
use super::sources::{Context, Running};

#[derive(Clone)]
struct Shared {
    context: Context,
    tokens: Tokens,
}

/// Starts listening. Health needs no token; metrics and positions do if there are tokens.
///
/// # Errors
/// When the address cannot be listened on as configured.
pub async fn start(config: &ListenConfig, context: Context) -> Result<Running, SecurityError> {
    let listener = Listener::bind(config, &context.reload).await?;
    let addresses = listener.local_addr().into_iter().collect();
    let shared = Arc::new(Shared { tokens: listener.tokens(), context: context.clone() });
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/positions", get(positions))
        .with_state(shared);
    let task = tokio::spawn(serve(listener, router, context, config.max_connections));
    Ok(Running { addresses, task })
}

/// Ready while the spool and the store can be written and the daemon does not stop.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let context = &shared.context;
    let why = if context.shutdown.is_thrown() {
        "stopping\n"
    } else if context.metrics.spool_failing.get() != 0 {
        "the spool is full or cannot be written\n"
    } else if context.metrics.store_failing.get() != 0 {
        "the store cannot be written\n"
    } else {
        return "ready\n".into_response();
    };
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !shared.tokens.allow(bearer(&headers)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.context.metrics.text()).into_response()
}

/// Positions of all sources that are durable: what lies before them in a file may be deleted.
async fn positions(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !shared.tokens.allow(bearer(&headers)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    axum::Json(shared.context.intake.all_positions()).into_response()
}
