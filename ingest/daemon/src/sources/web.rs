//! Serving HTTP on a [`Listener`], with limits on time and connections.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;

use super::Context;
use super::accept::accept;
use crate::net::guard::{Guard, Kept};
use crate::net::security::{Connection, Listener};

/// Accepts connections and serves them with `router` until shutdown; requests that were begun are finished. Handlers
/// find the peer's address as an `Extension<SocketAddr>`.
pub async fn serve(
    listener: Listener,
    guard: Guard,
    router: Router,
    context: Context,
    max_connections: usize,
) {
    let router = router.layer(from_fn_with_state((guard, context.clone()), guarded));
    accept(listener, &context, max_connections, |stream, peer| {
        let (router, context) = (router.clone(), context.clone());
        async move { connection(stream, peer, router, &context).await }
    })
    .await;
}

/// [`Guard::check`] as a layer of a router, counting what is kept out.
async fn guarded(State((guard, context)): State<(Guard, Context)>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match guard.check(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(Kept { status, reason, text }) => {
            context.metrics.count_refused(&context.origin.source, reason);
            (status, format!("{text}\n")).into_response()
        }
    }
}

async fn connection(stream: Connection, peer: SocketAddr, router: Router, context: &Context) {
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    // The time for a request's head also ends connections that are kept open and say nothing.
    let mut served = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(context.limits.read())
            .serve_connection(TokioIo::new(stream), service)
    );
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = context.shutdown.wait() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        let reason = if error.is_timeout() { "too_slow" } else { "bad_request" };
        context.metrics.count_refused(&context.origin.source, reason);
        tracing::debug!(source = %context.origin.source, %peer, %error, "connection ended");
    }
}

/// The bearer token of a request.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
