//! Serving HTTP on a [`Listener`], with limits on time and connections, and keeping pages of elsewhere out: the one loop of all HTTP listeners.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;

use super::Context;
use super::accept::accept;
use super::body::Refused;
use crate::net::guard::Guard;
use crate::net::security::{Connection, Listener};

/// Seconds after which a client that found no room may try again.
pub(super) const RETRY_SECONDS: i64 = 5;
/// Requests that one connection of HTTP/2 may have open.
const MOST_STREAMS: u32 = 64;
/// Longest head of a request of HTTP/2, in bytes.
const MOST_HEADERS: u32 = 32 << 10;

/// What is spoken on a listener, and how it says that it does not answer.
#[derive(Clone, Copy)]
pub(crate) struct Protocols {
    /// Whether HTTP/2 is, besides HTTP/1.
    pub(super) http2: bool,
    /// The answer to a request that is kept out.
    pub(super) refuse: fn(&HeaderMap, Refused) -> Response,
}

impl Protocols {
    /// HTTP/1, with sentences for answers.
    pub(crate) const HTTP1: Protocols = Protocols {
        http2: false,
        refuse: |_, refused| (refused.status, format!("{}\n", refused.text)).into_response(),
    };
}

/// Accepts connections and serves them with `router` until shutdown; requests that were begun are finished. Handlers
/// find the peer's address as an `Extension<SocketAddr>`.
pub(crate) async fn serve(listener: Listener, context: Context, router: Router, protocols: Protocols) {
    let state = (listener.guard(), context.clone(), protocols);
    let router = router.layer(from_fn_with_state(state, guarded));
    accept(listener, &context, |stream, peer| {
        let (router, context) = (router.clone(), context.clone());
        async move { connection(stream, peer, router, &context, protocols).await }
    })
    .await;
}

/// [`Guard::check`] as a layer of a router, counting what is kept out.
async fn guarded(
    State((guard, context, protocols)): State<(Guard, Context, Protocols)>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(Begun(begun)) = request.extensions().get() {
        begun.store(true, Ordering::Relaxed);
    }
    let (parts, body) = request.into_parts();
    match guard.check(&parts).map_err(Refused::from) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refused) => {
            context.count(&refused);
            (protocols.refuse)(&parts.headers, refused)
        }
    }
}

/// Whether a request ever came over the connection.
#[derive(Clone, Default)]
struct Begun(Arc<AtomicBool>);

/// Returns if no request came in that time.
async fn silent(Begun(begun): &Begun, time: Duration) {
    tokio::time::sleep(time).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

async fn connection(
    stream: Connection,
    peer: SocketAddr,
    router: Router,
    context: &Context,
    protocols: Protocols,
) {
    let begun = Begun::default();
    let service = TowerToHyperService::new(router.layer(Extension(peer)).layer(Extension(begun.clone())));
    let read = context.limits.read();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if !protocols.http2 {
        builder = builder.http1_only();
    }
    // The time for a request's head also ends connections that are kept open and say nothing.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(read);
    // A peer that does not answer pings is gone; one that opens streams and sends nothing meets the limit of whoever answers it.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(read)
        .keep_alive_timeout(read)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_HEADERS);
    let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = served.as_mut() => result,
        // No protocol limits the time before it is known which of them is spoken.
        () = silent(&begun, read) => return context.count_refused("too_slow"),
        () = context.shutdown.wait() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        let slow = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout);
        context.count_refused(if slow { "too_slow" } else { "bad_request" });
        tracing::debug!(source = %context.origin.source, %peer, %error, "connection ended");
    }
}

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// An answer in JSON to a request that was refused; where room is missing it says when to come again.
pub(super) fn answer_json(refused: &Refused, body: Value) -> Response {
    come_again(refused.status, (refused.status, axum::Json(body)).into_response())
}

/// Says when to come again, where a request was refused for want of room.
pub(super) fn come_again(status: StatusCode, mut answer: Response) -> Response {
    if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        answer.headers_mut().insert(header::RETRY_AFTER, RETRY_SECONDS.into());
    }
    answer
}
