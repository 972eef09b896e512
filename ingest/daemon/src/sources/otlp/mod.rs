//! OpenTelemetry over gRPC and HTTP, both on one port: traces and logs, as collectors and SDKs ship them.
//!
//! gRPC: the `TraceService` and `LogsService` of OTLP, plain, gzip or zstd. HTTP: `POST /v1/traces` and `/v1/logs`, as
//! protobuf or JSON. A request is answered when its events are on disk. Elements that are no events go to quarantine and
//! are counted in `partial_success`; a client need not send them again. Where there is no room the answer is
//! `RESOURCE_EXHAUSTED` with the time to wait, or 503 with `Retry-After`; where too much of requests is in memory, 429. A request that is sent again adds nothing.

mod grpc;
mod http;
mod serve;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::batches::of_system;
use super::body::Refused;
use super::budget::Share;
use super::hand::Work;
use super::source::read_keys;
use super::{Context, Kind, Running, Source, SourceError};
use crate::batch::{Item, Outcome, Refusal};
use crate::net::guard::Guard;
use crate::net::security::{ListenConfig, Listener, SecurityError, Tokens};
use demi_formats::otlp::wire::{self, Signal};
use demi_formats::otlp::{OtlpError, OtlpOptions, Told};
use demi_formats::request;

/// `[sources.NAME]` with `type = "otlp"`.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// Where to listen.
    #[serde(flatten)]
    pub listen: ListenConfig,
    /// Attributes whose values, joined by `/`, name the actor. Default `["service.name", "service.instance.id"]`.
    #[serde(default = "actor_by")]
    pub actor_by: Vec<String>,
    /// Whether the ends of client and server spans become events too: the response as a message. Default false.
    #[serde(default)]
    pub responses: bool,
}

fn actor_by() -> Vec<String> {
    OtlpOptions::default().actor_by
}

impl Config {
    /// The keys, for messages that name the nearest one.
    pub const KEYS: [&'static str; 8] = [
        "listen",
        "tls_cert",
        "tls_key",
        "tls_client_ca",
        "token_file",
        "max_connections",
        "actor_by",
        "responses",
    ];
}

/// `otlp`: OpenTelemetry over gRPC and HTTP.
pub const KIND: Kind = Kind { name: "otlp", keys: &Config::KEYS, read: read_keys::<Config> };

impl Source for Config {
    fn check(&self) -> Result<(), SourceError> {
        check(self)
    }

    fn check_files(&self) -> Result<(), SourceError> {
        check_files(self)
    }

    fn start(&self, context: Context) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(start(self.clone(), context))
    }
}

/// What requests share.
#[derive(Clone)]
struct Shared {
    context: Context,
    tokens: Tokens,
    guard: Guard,
    options: Arc<OtlpOptions>,
}

/// Checks the settings.
///
/// # Errors
/// When nothing would name an actor.
fn check(config: &Config) -> Result<(), SourceError> {
    if config.actor_by.is_empty() {
        let reason = "must name at least one attribute".to_owned();
        return Err(SourceError::Setting { key: "actor_by".to_owned(), reason });
    }
    Ok(())
}

/// Checks the files that the configuration names, without listening.
///
/// # Errors
/// When certificates or tokens cannot be used, or the address is open to others without authentication.
fn check_files(config: &Config) -> Result<(), SourceError> {
    Ok(config.listen.check()?)
}

/// Starts listening.
///
/// # Errors
/// When the address cannot be listened on as configured.
async fn start(config: Config, context: Context) -> Result<Running, SourceError> {
    check(&config)?;
    let listener = Listener::bind_for(&config.listen, &context.reload, &["h2", "http/1.1"]).await?;
    let addresses = listener.local_addr().into_iter().collect();
    let guard =
        listener.guard().map_err(|source| SecurityError::Bind { address: config.listen.listen, source })?;
    let options = Arc::new(OtlpOptions { actor_by: config.actor_by, responses: config.responses });
    let shared = Shared { context: context.clone(), tokens: listener.tokens(), guard, options };
    let router = Router::new()
        .merge(grpc::router(&shared))
        .merge(http::router(&shared))
        .layer(middleware::from_fn_with_state(shared, serve::guard));
    let task = tokio::spawn(serve::serve(listener, router, context, config.listen.max_connections));
    Ok(Running { addresses, task })
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

/// Why a request was not taken.
enum NotTaken {
    /// It is no request.
    Bad(OtlpError),
    /// The daemon did not take it.
    Refused(Refusal),
}

/// What HTTP answers; gRPC makes its status of that.
impl From<NotTaken> for Refused {
    fn from(why: NotTaken) -> Refused {
        let refusal = match why {
            NotTaken::Bad(error) => {
                let text = format!("not an OTLP request: {error}");
                return Refused::new(StatusCode::BAD_REQUEST, "bad_request", text);
            }
            NotTaken::Refused(refusal) => refusal,
        };
        let (status, reason) = match refusal {
            Refusal::Full => (StatusCode::SERVICE_UNAVAILABLE, "full"),
            Refusal::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closed"),
            Refusal::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        };
        Refused::new(status, reason, refusal.to_string())
    }
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
    /// Makes the events of a request durable.
    async fn take(&self, arrived: Arrived) -> Result<Taken, NotTaken> {
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
        done.await.map_err(NotTaken::Refused)?.map_err(NotTaken::Bad)
    }
}

impl Taken {
    /// The item of what was told.
    fn item(&mut self, told: Told, number: &mut u64, system: &str) -> Item {
        let (outcome, count) = match told {
            Told::Event(record) => (of_system(&record, system), 1),
            Told::Refused(refused) => {
                let reason = refused.sentence();
                let code = refused.code.to_owned();
                (Outcome::Rejected { raw: Bytes::from(refused.raw), code, reason }, refused.count)
            }
        };
        if let Outcome::Rejected { reason, .. } = &outcome {
            self.rejected = self.rejected.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
            if self.message.is_empty() {
                self.message.clone_from(reason);
            }
        }
        let offset = *number;
        *number += count;
        Item { offset, line: 0, outcome }
    }
}
