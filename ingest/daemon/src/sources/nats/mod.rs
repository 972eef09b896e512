//! A durable pull consumer of a NATS JetStream stream.
//!
//! A message holds event records, one JSON object a line, or a document of OTLP JSON. It is acknowledged when its events
//! are on disk; one that is delivered again, because the acknowledgement was lost, adds nothing. The server keeps the
//! consumer's position under its durable name, so nothing is kept here. While the server or the stream is not there the
//! source tries again, later and later.

mod message;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{self, Message};
use async_nats::{ConnectOptions, ServerAddr};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::hand::Work;
use super::mapped::{Bodies, Carrier};
use super::{Context, Running, Source, SourceError};
use crate::backoff::Backoff;
use crate::batch::Refusal;
use crate::net::security::Secret;
use demi_formats::secret_file::{self, Holds};

use message::read_into;
pub use message::{Format, read};

/// Messages, and bytes of them, that are handed over together.
const FETCH_MESSAGES: usize = 512;
const FETCH_BYTES: usize = 4 << 20;
/// How long the server waits for messages before it answers that there are none.
const FETCH_WAIT: Duration = Duration::from_millis(500);
/// Time after which an unacknowledged message is delivered again, unless the consumer is there already.
const ACK_WAIT: Duration = Duration::from_secs(60);
/// First and longest pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// `[sources.NAME]` with `type = "nats"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Server, such as `nats://127.0.0.1:4222`; `tls://…` for TLS.
    url: String,
    /// Name of the stream.
    stream: String,
    /// Subject to take, with the server's wildcards. Default: all of the stream.
    #[serde(default)]
    subject: String,
    /// Durable name of the consumer; made if it is not there. Default `demi-lineage`.
    #[serde(default = "durable")]
    durable: String,
    /// What messages hold: `events` (default) or `otlp_json`.
    #[serde(default)]
    format: Format,
    /// Mapping of the lines, by name or file, in place of `format`; each message is mapped by itself. Default: none.
    #[serde(default)]
    mapping: Option<String>,
    /// File with a token to show to the server.
    #[serde(default)]
    token_file: Option<PathBuf>,
    /// Authorities (PEM) to trust besides those of the system.
    #[serde(default)]
    tls_ca: Option<PathBuf>,
    /// Certificate (PEM) to show to the server.
    #[serde(default)]
    tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[serde(default)]
    tls_key: Option<PathBuf>,
}

fn durable() -> String {
    "demi-lineage".to_owned()
}

impl Config {
    fn bodies(&self) -> Result<Bodies, SourceError> {
        Bodies::of(self.mapping.as_deref(), Carrier::Bodies)
    }
}

impl Source for Config {
    fn check(&self) -> Result<(), SourceError> {
        let named = |e| SourceError::setting("url", format!("'{}': {e}", self.url));
        self.url.parse::<ServerAddr>().map_err(named)?;
        let forbidden = |c: char| c.is_whitespace() || matches!(c, '.' | '*' | '>' | '/' | '\\');
        for (key, name) in [("stream", &self.stream), ("durable", &self.durable)] {
            if name.is_empty() || name.contains(forbidden) {
                let reason = format!(
                    "'{name}' is no name: it must not be empty or hold spaces, '.', '*', '>', '/' or '\\'"
                );
                return Err(SourceError::setting(key, reason));
            }
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(SourceError::setting("tls_cert", "tls_cert and tls_key go together"));
        }
        if self.mapping.is_some() && self.format != Format::Events {
            let reason = "a document of OTLP is no log of lines: leave out format or mapping";
            return Err(SourceError::setting("mapping", reason));
        }
        self.bodies().map(drop)
    }

    fn check_files(&self) -> Result<(), SourceError> {
        options(self)?;
        for (key, path, holds) in [
            ("tls_ca", &self.tls_ca, Holds::Public),
            ("tls_cert", &self.tls_cert, Holds::Public),
            ("tls_key", &self.tls_key, Holds::Secret),
        ] {
            if let Some(path) = path {
                let failed = |reason| SourceError::setting(key, format!("{}: {reason}", path.display()));
                secret_file::read(path, holds).map_err(failed)?;
            }
        }
        self.bodies().map(drop)
    }

    fn secrets(&mut self) -> Vec<Secret<'_>> {
        vec![
            ("token_file", &mut self.token_file),
            ("tls_cert", &mut self.tls_cert),
            ("tls_key", &mut self.tls_key),
        ]
    }

    /// Starts consuming; a server that is not there yet is waited for.
    fn start(&self, context: Context) -> BoxFuture<'static, Result<Running, SourceError>> {
        let config = self.clone();
        Box::pin(async move {
            config.check()?;
            config.check_files()?;
            let bodies = config.bodies()?;
            // The client takes the provider of the process, and there are two to choose from. Whichever is there already will do.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            let task = tokio::spawn(async move {
                let shutdown = context.shutdown.clone();
                let _stopped = shutdown.unless(consume_forever(config, bodies, context)).await;
            });
            Ok(Running { addresses: Vec::new(), task })
        })
    }
}

fn options(config: &Config) -> Result<ConnectOptions, SourceError> {
    let mut options = ConnectOptions::new().name("demi-lineage").max_reconnects(1);
    if let Some(path) = &config.token_file {
        let failed =
            |reason: String| SourceError::setting("token_file", format!("{}: {reason}", path.display()));
        let token = secret_file::read(path, Holds::Secret).map_err(failed)?;
        let token = String::from_utf8(token).map_err(|_| failed("is no text".to_owned()))?;
        options = options.token(token.trim().to_owned());
    }
    if let Some(path) = &config.tls_ca {
        options = options.add_root_certificates(path.clone());
    }
    if let (Some(cert), Some(key)) = (&config.tls_cert, &config.tls_key) {
        options = options.add_client_certificate(cert.clone(), key.clone());
    }
    Ok(options)
}

async fn consume_forever(config: Config, bodies: Bodies, context: Context) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        context.tasks.may_break(&context.origin.source);
        let begin = std::time::Instant::now();
        let Err(error) = consume(&config, &bodies, &context).await else { return };
        let pause = backoff.after(begin.elapsed());
        context.count_refused("server_unreachable");
        tracing::warn!(source = %context.origin.source, %error, retry_in = ?pause, "no messages from NATS");
        tokio::time::sleep(pause).await;
    }
}

/// Takes messages until something fails. Ends without an error when the daemon stops.
async fn consume(config: &Config, bodies: &Bodies, context: &Context) -> Result<(), async_nats::Error> {
    let client = options(config)?.connect(&config.url).await?;
    let stream = jetstream::new(client.clone()).get_stream(&config.stream).await?;
    let consumer: PullConsumer = stream
        .get_or_create_consumer(
            &config.durable,
            pull::Config {
                durable_name: Some(config.durable.clone()),
                filter_subject: config.subject.clone(),
                ack_policy: AckPolicy::Explicit,
                ack_wait: ACK_WAIT,
                ..pull::Config::default()
            },
        )
        .await?;
    tracing::info!(source = %context.origin.source, stream = config.stream, durable = config.durable, "consuming");
    let name: Arc<str> = Arc::from(format!("nats://{}", config.stream));
    loop {
        let fetch = consumer.fetch().max_messages(FETCH_MESSAGES).max_bytes(FETCH_BYTES).expires(FETCH_WAIT);
        let mut fetched = fetch.messages().await?;
        let mut messages: Vec<Message> = Vec::new();
        while let Some(message) = fetched.next().await {
            messages.push(message?);
        }
        if messages.is_empty() {
            continue;
        }
        let mut payloads = Vec::new();
        for message in &messages {
            payloads.push((message.payload.clone(), message.info()?.stream_sequence));
        }
        let bytes = payloads.iter().map(|(payload, _)| payload.len()).sum();
        context.rate.take(bytes).await;
        // Waits as long as it takes; meanwhile the server delivers nothing new.
        let work = Work { context, stream: &name, bytes, most: u64::MAX, patience: Duration::MAX };
        let (bodies, own, stream, format) = (bodies.clone(), context.clone(), name.clone(), config.format);
        let handed = work.hand_over(move |out| {
            for (payload, sequence) in &payloads {
                match bodies.are_mapped() {
                    true => bodies.message(&own, &stream, payload, *sequence, out),
                    false => {
                        let how = (&*own.origin.system, own.limits.line_bytes);
                        read_into(payload, *sequence, format, how, &mut |item| out.push(item));
                    }
                }
            }
        });
        match handed.await {
            Ok(()) => {}
            Err(Refusal::Closed) => return Ok(()),
            Err(error) => return Err(Box::new(error)),
        }
        for message in &messages {
            message.ack().await?;
        }
        client.flush().await?;
    }
}
