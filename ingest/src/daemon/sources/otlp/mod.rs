//! OpenTelemetry over gRPC and HTTP, both on one port: traces and logs, as collectors and SDKs ship them.
//!
//! gRPC: the `TraceService` and `LogsService` of OTLP, plain, gzip or zstd. HTTP: `POST /v1/traces` and `/v1/logs`, as
//! protobuf or JSON. A request is answered when its events are on disk. Elements that are no events go to quarantine and
//! are counted in `partial_success`; a client need not send them again. Where there is no room the answer is
//! `RESOURCE_EXHAUSTED` with the time to wait, or 503 with `Retry-After`. A request that is sent again adds nothing.

mod grpc;
mod http;
mod serve;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::batches::{Batches, of_system};
use super::source::read_keys;
use super::{Context, Kind, Running, Source, SourceError};
use crate::daemon::batch::{Batch, Content, Item, Outcome, Refusal};
use crate::daemon::net::guard::Guard;
use crate::daemon::net::security::{ListenConfig, Listener, SecurityError, Tokens};
use crate::otlp::{self, OtlpOptions, Rejected};

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

/// What became of a request.
#[derive(Default)]
struct Taken {
    /// Elements put in quarantine.
    rejected: i64,
    /// Why the first of them was.
    message: String,
}

impl Shared {
    /// Converts a request and makes its events durable.
    async fn take(
        &self,
        peer: SocketAddr,
        bytes: usize,
        convert: impl FnOnce(&OtlpOptions) -> Vec<otlp::Item> + Send + 'static,
    ) -> Result<Taken, Refusal> {
        self.context.rate.take(bytes).await;
        let options = self.options.clone();
        let system = self.context.origin.system.clone();
        // A large request takes long; other connections shall not wait for it.
        let work = move || batches(convert(&options), &system);
        let converted = if bytes < 64 << 10 { Ok(work()) } else { tokio::task::spawn_blocking(work).await };
        let (batches, taken) = converted.map_err(|_| Refusal::Closed)?;
        for items in batches {
            let batch = Batch {
                origin: self.context.origin.clone(),
                stream: Arc::from(format!("otlp://{}", peer.ip())),
                content: Content::Items(items),
                positions: Vec::new(),
            };
            self.context.intake.submit(batch, self.context.limits.full()).await?;
        }
        Ok(taken)
    }
}

/// What is handed over, in batches of bounded size. The offset of an item is its number in the request.
fn batches(items: Vec<otlp::Item>, system: &str) -> (Vec<Vec<Item>>, Taken) {
    let mut batches = Batches::default();
    let mut taken = Taken::default();
    for (n, item) in items.into_iter().enumerate() {
        let outcome = match item {
            otlp::Item::Event(record) => of_system(&record, system),
            otlp::Item::Rejected(Rejected { path, code, reason, raw }) => Outcome::Rejected {
                raw: Bytes::from(raw),
                code: code.to_owned(),
                reason: format!("{path}: {reason}"),
            },
        };
        if let Outcome::Rejected { reason, .. } = &outcome {
            taken.rejected += 1;
            if taken.message.is_empty() {
                taken.message.clone_from(reason);
            }
        }
        batches.push(Item { offset: n as u64, line: 0, outcome });
    }
    (batches.all(), taken)
}
