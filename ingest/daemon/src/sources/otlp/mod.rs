//! OpenTelemetry over gRPC and HTTP, both on one port: traces and logs, as collectors and SDKs ship them.
//!
//! gRPC: the `TraceService` and `LogsService` of OTLP, plain, gzip or zstd. HTTP: `POST /v1/traces` and `/v1/logs`, as
//! protobuf or JSON. A request is answered when its events are on disk. Elements that are no events go to quarantine and
//! are counted in `partial_success`; a client need not send them again. Where there is no room the answer is
//! `RESOURCE_EXHAUSTED` with the time to wait, or 503 with `Retry-After`; where too much of requests is in memory, 429. A request that is sent again adds nothing.

mod grpc;
mod http;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;

use super::batches::of_system;
use super::body::Refused;
use super::budget::Share;
use super::hand::Work;
use super::web::{Protocols, bearer, serve};
use super::{Context, Server, Serves, SourceError};
use crate::batch::Item;
use crate::net::security::Tokens;
use demi_formats::otlp::wire::{self, Signal};
use demi_formats::otlp::{OtlpError, OtlpOptions, Told};
use demi_formats::request;

/// The keys of `[sources.NAME]` with `type = "otlp"` besides those of the listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Attributes whose values, joined by `/`, name the actor. Default: the service and its instance, pod, container or host.
    actor_by: Option<Vec<String>>,
    /// Whether the ends of client and server spans become events too: the response as a message. Default false.
    #[serde(default)]
    responses: bool,
}

impl Serves for Config {
    const PROTOCOLS: &'static [&'static str] = &["h2", "http/1.1"];

    fn check(&self) -> Result<(), SourceError> {
        if self.actor_by.as_ref().is_some_and(Vec::is_empty) {
            return Err(SourceError::setting("actor_by", "must name at least one attribute"));
        }
        Ok(())
    }

    fn server(&self, context: Context) -> Result<Server, SourceError> {
        self.check()?;
        let options = OtlpOptions { actor_by: self.actor_by.clone(), responses: self.responses };
        Ok(Box::new(move |listener| {
            let shared =
                Shared { context: context.clone(), tokens: listener.tokens(), options: Arc::new(options) };
            let router = Router::new()
                .merge(grpc::router(&shared))
                .merge(http::router(&shared))
                .layer(from_fn_with_state(shared, admitted));
            Box::pin(serve(listener, context, router, Protocols { http2: true, refuse }))
        }))
    }
}

/// What requests share.
#[derive(Clone)]
struct Shared {
    context: Context,
    tokens: Tokens,
    options: Arc<OtlpOptions>,
}

/// Lets requests with a valid token through, and gives up those that take too long.
async fn admitted(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let limits = &shared.context.limits;
    // Reading, waiting for room in the spool, and a moment for the rest.
    let patience = limits.read().saturating_add(limits.full()).saturating_add(Duration::from_secs(5));
    let refused = if shared.tokens.allow(bearer(&headers)) {
        match tokio::time::timeout(patience, next.run(request)).await {
            Ok(response) => return response,
            Err(_) => Refused::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long"),
        }
    } else {
        Refused::new(StatusCode::UNAUTHORIZED, "wrong_token", "a valid bearer token is needed")
    };
    shared.refuse(&headers, refused)
}

/// Whether a request is one of gRPC.
fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|v| v.as_bytes().starts_with(b"application/grpc"))
}

/// The answer where nothing was taken, as the one who asks can read it.
fn refuse(headers: &HeaderMap, refused: Refused) -> Response {
    if is_grpc(headers) { grpc::refuse(refused) } else { http::refuse(headers, refused) }
}

/// How a request is encoded; its answer is encoded so too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

/// A request, unpacked.
struct Arrived {
    peer: SocketAddr,
    bytes: Bytes,
    /// The room that it takes in memory.
    held: Share,
    encoding: Encoding,
    signal: Signal,
}

/// What became of a request.
#[derive(Debug, Default)]
struct Taken {
    /// Elements put in quarantine.
    rejected: i64,
    /// Why the first of them was.
    message: String,
}

/// Most bytes that a request may become. What is said of a resource is said in each of its records: few bytes may become many.
fn most_bytes(request: usize) -> u64 {
    (16 << 20) + 32 * request as u64
}

impl Shared {
    /// Counts why a request is refused, and answers it.
    fn refuse(&self, headers: &HeaderMap, refused: Refused) -> Response {
        self.context.count(&refused);
        refuse(headers, refused)
    }

    /// Makes the events of a request durable.
    async fn take(&self, arrived: Arrived) -> Result<Taken, Refused> {
        let Arrived { peer, bytes, held, encoding, signal } = arrived;
        let context = &self.context;
        context.rate.take(bytes.len()).await;
        let stream: Arc<str> = Arc::from(format!("otlp://{}", peer.ip()));
        let work = Work {
            context,
            stream: &stream,
            bytes: bytes.len(),
            most: most_bytes(bytes.len()),
            patience: context.limits.full(),
        };
        let (options, system) = (self.options.clone(), context.origin.system.clone());
        let limit = context.limits.line_bytes;
        let done = work.hand_over(move |out| {
            let _held = held;
            let mut taken = Taken::default();
            // The offset of an item is its number in the request.
            let mut number = 0;
            let mut each = |told| out.push(taken.item(told, &mut number, &system));
            match encoding {
                Encoding::Protobuf => {
                    wire::check(&bytes)?;
                    wire::read(&bytes, signal, &options, limit, &mut each);
                }
                Encoding::Json => {
                    if request::check(&bytes)? {
                        request::read(&bytes, &options, limit, &mut each);
                    }
                }
            }
            Ok(taken)
        });
        done.await?.map_err(|error: OtlpError| {
            Refused::new(StatusCode::BAD_REQUEST, "bad_request", format!("not an OTLP request: {error}"))
        })
    }
}

impl Taken {
    /// The item of what was told.
    fn item(&mut self, told: Told, number: &mut u64, system: &str) -> Item {
        let ((bytes, rejected), count) = match told {
            Told::Event(record) => (of_system(&record, system), 1),
            Told::Refused(refused) => {
                let (why, count) = (refused.rejection(), refused.count);
                ((refused.raw.into(), Some(why)), count)
            }
        };
        if let Some(why) = &rejected {
            self.rejected = self.rejected.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
            if self.message.is_empty() {
                why.reason().clone_into(&mut self.message);
            }
        }
        let offset = *number;
        *number += count;
        Item { offset, line: 0, bytes, rejected }
    }
}
