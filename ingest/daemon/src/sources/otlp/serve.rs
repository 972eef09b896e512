//! Serving HTTP/1 and HTTP/2 on one port, with limits on time and connections, and who may ask.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tonic::Status;

use super::Shared;
use crate::net::guard::Kept;
use crate::net::security::{Connection, Listener};
use crate::sources::Context;
use crate::sources::accept::accept;
use crate::sources::body::Refused;
use crate::sources::web::bearer;

/// Whether a request ever came over the connection.
#[derive(Clone, Default)]
struct Begun(Arc<AtomicBool>);

/// Lets requests with a valid token through, and gives up those that take too long.
pub(super) async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    if let Some(Begun(begun)) = request.extensions().get() {
        begun.store(true, Ordering::Relaxed);
    }
    let (parts, body) = request.into_parts();
    let kept = shared.guard.check(&parts);
    let headers = parts.headers.clone();
    let request = Request::from_parts(parts, body);
    let is_grpc =
        headers.get(header::CONTENT_TYPE).is_some_and(|v| v.as_bytes().starts_with(b"application/grpc"));
    let refuse = |status: StatusCode, reason: &'static str, text: &str, grpc: fn(String) -> Status| {
        if is_grpc {
            shared.context.metrics.count_refused(&shared.context.origin.source, reason);
            grpc(text.to_owned()).into_http::<axum::body::Body>().into_response()
        } else {
            shared.refuse(&headers, Refused::new(status, reason, text))
        }
    };
    if let Err(Kept { status, reason, text }) = kept {
        return refuse(status, reason, text, Status::permission_denied);
    }
    if !shared.tokens.allow(bearer(&headers)) {
        let text = "a valid bearer token is needed";
        return refuse(StatusCode::UNAUTHORIZED, "wrong_token", text, Status::unauthenticated);
    }
    let limits = &shared.context.limits;
    // Reading, waiting for room in the spool, and a moment for the rest.
    let patience = limits.read().saturating_add(limits.full()).saturating_add(Duration::from_secs(5));
    match tokio::time::timeout(patience, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let text = "the request took too long";
            refuse(StatusCode::REQUEST_TIMEOUT, "too_slow", text, Status::deadline_exceeded)
        }
    }
}

/// Accepts connections and serves them until shutdown; requests that were begun are finished.
pub(super) async fn serve(listener: Listener, router: Router, context: Context, max_connections: usize) {
    accept(listener, &context, max_connections, |stream, peer| {
        let (router, context) = (router.clone(), context.clone());
        async move { connection(stream, peer, router, &context).await }
    })
    .await;
}

/// Returns if no request came in that time.
async fn silent(Begun(begun): &Begun, time: Duration) {
    tokio::time::sleep(time).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

async fn connection(stream: Connection, peer: SocketAddr, router: Router, context: &Context) {
    let begun = Begun::default();
    let service = TowerToHyperService::new(router.layer(Extension(peer)).layer(Extension(begun.clone())));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let read = context.limits.read();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(read);
    // A peer that does not answer pings is gone; one that opens streams and sends nothing meets the limit of `guard`.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(read)
        .keep_alive_timeout(read)
        .max_concurrent_streams(64)
        .max_header_list_size(32 << 10);
    let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = served.as_mut() => result,
        // Neither protocol limits the time before it knows which of them is spoken.
        () = silent(&begun, read) => {
            context.metrics.count_refused(&context.origin.source, "too_slow");
            return;
        }
        () = context.shutdown.wait() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        let slow = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout);
        let reason = if slow { "too_slow" } else { "bad_request" };
        context.metrics.count_refused(&context.origin.source, reason);
        tracing::debug!(source = %context.origin.source, %peer, %error, "connection ended");
    }
}
