//! OpenTelemetry spans and logs, and Zipkin spans, as event records.
//!
//! A pure conversion: no I/O, no state, nothing remembered from one request to the next. OTLP comes as protobuf (feature `otlp`) or
//! as JSON ([`from_json`]); both become the same [`Span`]s and [`Log`]s first, so there is one path from there on.
//!
//! # What becomes what
//!
//! | telemetry | event |
//! | --- | --- |
//! | `PRODUCER` and `CLIENT` spans, messaging operations `create`, `send`, `publish` | `send` |
//! | `CONSUMER` spans, messaging operations `receive`, `process`, `deliver` | `receive`, one for each linked message |
//! | `SERVER` spans | `receive`; external if nothing is known of a caller |
//! | other spans | `local`, with the span's name as `type` |
//! | log records that hold an event record | that event record |
//! | other log records | `local`, with the body as `payload` |
//!
//! **Messages.** A message's id is the context that travelled with it, `TRACE:SPAN` of the span that sent it. A receiver
//! knows it from its links, else from its parent (OpenTelemetry semantic conventions for messaging spans; B3 shares
//! one span id between both ends, which Zipkin marks `shared`). What is sent to a queue or topic has `to: "*"`, because
//! several may take it; the queue is its `type`.
//!
//! **Actors.** An actor is what [`OtlpOptions::actor_by`] names: the service and its instance, pod, container or host by default.
//!
//! **Order.** OTLP numbers nothing. An event's `seq` is its time in nanoseconds since 1970, a *sequence number from a clock*
//! ([`demi_schemas::event::FIRST_CLOCK_SEQ`]): the order among the events of one actor counts, and gaps say nothing.
//! Nothing compares the clocks of two actors. Events of one nanosecond are told apart by whoever stores them. What an
//! event is, is said by its attribute `key`, so a request that is sent again adds nothing.

mod actor;
mod attributes;
mod clock;
pub(crate) mod jaeger;
pub(crate) mod json;
mod kept;
mod logs;
#[cfg(feature = "otlp")]
mod proto;
pub(crate) mod runs;
mod semconv;
mod spans;
mod values;
#[cfg(feature = "otlp")]
pub mod wire;
pub(crate) mod zipkin;
mod zipkin_v1;

use demi_schemas::EventRecord;
use serde_json::{Map, Value};

use crate::fate::Rejection;

pub use json::{from_json, from_json_value};
pub(crate) use logs::Repeats;
pub use logs::log_event;
#[cfg(feature = "otlp")]
pub use proto::{from_log_resources, from_span_resources};
pub use runs::{Refused, Told};
pub use spans::span_events;
pub use values::Bad;
pub use zipkin::from_zipkin_json;

/// Attributes by name.
pub type Attributes = Map<String, Value>;

/// How telemetry becomes events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpOptions {
    /// Attributes whose values, joined by `/`, name the actor; looked up in the span or log record, then in its scope,
    /// then in its resource. Absent ones are left out. Default: the resource's `service.namespace`, `service.name` and
    /// `service.instance.id`; where there is no such instance, the first of the resource's `k8s.pod.name`, `k8s.pod.uid`, `container.id`, `host.name`,
    /// `hostname`, `ip`, and its `process.pid` unless that is 1, so that replicas and workers are told apart.
    pub actor_by: Option<Vec<String>>,
    /// Whether the ends of `CLIENT` and `SERVER` spans become events too: the response as a message of its own.
    /// Default: no, one event a span.
    pub responses: bool,
}

/// What a span or log record became.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An event.
    Event(Box<EventRecord>),
    /// Nothing, and why.
    Rejected(Rejected),
}

/// A part of a request that is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {}", .why.reason())]
pub struct Rejected {
    /// Where it stands, such as `resourceSpans[0].scopeSpans[1].spans[2]`.
    pub path: String,
    /// The rule that was broken.
    pub why: Rejection,
    /// What was sent, as JSON.
    pub raw: String,
}

/// Why bytes are no telemetry at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtlpError {
    /// The bytes are no JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// The bytes are no protobuf.
    #[cfg(feature = "otlp")]
    #[error(transparent)]
    Wire(#[from] wire::WireError),
    /// The bytes are JSON of another shape.
    #[error("{0}")]
    Shape(String),
}

/// What stands around a span or a log record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Attributes of the process or machine.
    pub resource: Attributes,
    /// Name of the instrumentation library.
    pub scope: String,
    /// Attributes of the instrumentation library.
    pub scope_attributes: Attributes,
}

/// The role of a span, as its instrumentation gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// Not given.
    #[default]
    Unspecified,
    /// Within one process.
    Internal,
    /// Handling of a request.
    Server,
    /// A request.
    Client,
    /// Sending of a message.
    Producer,
    /// Taking of a message.
    Consumer,
}

impl SpanKind {
    /// The name written in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SpanKind::Unspecified => "unspecified",
            SpanKind::Internal => "internal",
            SpanKind::Server => "server",
            SpanKind::Client => "client",
            SpanKind::Producer => "producer",
            SpanKind::Consumer => "consumer",
        }
    }
}

/// The name of a span: what travels with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Context {
    /// Trace id, in lower-case hexadecimal digits.
    pub trace: String,
    /// Span id, in lower-case hexadecimal digits.
    pub span: String,
}

impl Context {
    /// The message id of what the span sent.
    #[must_use]
    pub fn message_id(&self) -> String {
        format!("{}:{}", self.trace, self.span)
    }
}

/// A reference to another span that is no parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// The other span.
    pub context: Context,
    /// What is said of the reference.
    pub attributes: Attributes,
}

/// A span in the shape that all encodings share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// Its own name.
    pub context: Context,
    /// Id of the parent, in the same trace.
    pub parent: Option<String>,
    /// Whether the parent is known to be, or not to be, in another process.
    pub remote_parent: Option<bool>,
    /// Whether the id is shared with the client's span (Zipkin).
    pub shared: bool,
    /// Its role.
    pub kind: SpanKind,
    /// Its name.
    pub name: String,
    /// Nanoseconds since 1970; 0 where not given.
    pub start: u64,
    /// Nanoseconds since 1970; 0 where not given.
    pub end: u64,
    /// What is said of it.
    pub attributes: Attributes,
    /// Other spans it refers to.
    pub links: Vec<Link>,
    /// What is kept as it came: span events, status, trace state.
    pub extra: Attributes,
}

/// A log record in the shape that all encodings share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Nanoseconds since 1970; 0 where not given.
    pub time: u64,
    /// When a collector saw it, nanoseconds since 1970; 0 where not given.
    pub observed: u64,
    /// Name of the event, empty where not given.
    pub event_name: String,
    /// Severity as text, empty where not given.
    pub severity: String,
    /// What was logged.
    pub body: Option<Value>,
    /// What is said of it.
    pub attributes: Attributes,
    /// The span in which it was logged.
    pub context: Option<Context>,
}
