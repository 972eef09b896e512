//! `/healthz`, `/readyz`, `/metrics`, `/v1/positions` and `/v1/invariants`.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::monitors::Monitors;
use super::net::security::{ListenConfig, Listener, SecurityError, Tokens};
use super::sources::web::{Protocols, bearer, serve};
use super::sources::{Context, Running};

#[derive(Clone)]
struct Shared {
    context: Context,
    tokens: Tokens,
    monitors: Monitors,
}

/// Starts listening. Health needs no token; metrics and positions do if there are tokens.
///
/// # Errors
/// When the address cannot be listened on as configured.
pub(crate) async fn start(
    config: &ListenConfig,
    context: Context,
    monitors: Monitors,
) -> Result<Running, SecurityError> {
    let listener = Listener::bind(config, &context.reload, &[]).await?;
    let addresses = vec![listener.address()];
    let shared = Arc::new(Shared { tokens: listener.tokens(), context: context.clone(), monitors });
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/positions", get(positions))
        .route("/v1/invariants", get(invariants))
        .route("/v1/invariants/{id}/mute", post(|shared, headers, id| mute(shared, headers, id, true)))
        .route("/v1/invariants/{id}/unmute", post(|shared, headers, id| mute(shared, headers, id, false)))
        .with_state(shared);
    let task = tokio::spawn(serve(listener, context, router, Protocols::HTTP1));
    Ok(Running { addresses, task })
}

/// Ready while the spool and the store can be written and the daemon does not stop.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let context = &shared.context;
    let why = if context.shutdown.is_thrown() {
        "stopping\n"
    } else if let Some((task, why)) = context.tasks.down() {
        let why = format!("the task '{task}' does not run: {why}\n");
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    } else if let Some(why) = context.tasks.trouble() {
        return (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response();
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
    let mut positions = shared.context.intake.all_positions();
    positions.committed = u64::try_from(shared.context.metrics.committed_lsn.get()).unwrap_or(0);
    axum::Json(positions).into_response()
}

/// The invariants that are watched, by monitor, as they stood a moment ago.
async fn invariants(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !shared.tokens.allow(bearer(&headers)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    axum::Json(shared.monitors.list()).into_response()
}

/// Mutes an invariant, by id or name, or lets it be heard again.
async fn mute(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    muted: bool,
) -> Response {
    if !shared.tokens.allow(bearer(&headers)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match shared.monitors.mute(&id, muted).await {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (StatusCode::NOT_FOUND, "no invariant of this id or name is watched\n").into_response(),
    }
}
