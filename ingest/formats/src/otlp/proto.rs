//! Telemetry out of protobuf messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span as ProtoSpan, span};
use serde::Serialize;
use serde_json::Value;

use super::kept::{span_event, status_value};
use super::logs::Repeats;
use super::spans::{span_events, take};
use super::{
    Attributes, Bad, Context, Item, Link, Log, OtlpOptions, Span, SpanKind, Surroundings, attributes,
};

/// Bits of `flags`: whether the next one says something, and whether the parent is in another process.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The events of spans.
#[must_use]
pub fn from_span_resources(resources: Vec<ResourceSpans>, options: &OtlpOptions) -> Vec<Item> {
    let mut out = Vec::new();
    for (r, resource) in resources.into_iter().enumerate() {
        let attributes = resource_attributes(resource.resource);
        for (s, scope) in resource.scope_spans.into_iter().enumerate() {
            let around = surroundings(&attributes, scope.scope);
            for (n, span) in scope.spans.into_iter().enumerate() {
                let place =
                    |raw: &ProtoSpan| (format!("resourceSpans[{r}].scopeSpans[{s}].spans[{n}]"), text(raw));
                let bad = span.start_time_unix_nano == 0 || !has_ids(&span);
                let kept = bad.then(|| place(&span));
                let events = read_span(span).and_then(|span| span_events(span, &around, options));
                take(events, &mut out, || kept.unwrap_or_default());
            }
        }
    }
    out
}

/// The events of log records.
#[must_use]
pub fn from_log_resources(resources: Vec<ResourceLogs>, options: &OtlpOptions) -> Vec<Item> {
    let mut out = Vec::new();
    let mut repeats = Repeats::default();
    for (r, resource) in resources.into_iter().enumerate() {
        let attributes = resource_attributes(resource.resource);
        for (s, scope) in resource.scope_logs.into_iter().enumerate() {
            let around = surroundings(&attributes, scope.scope);
            for (n, log) in scope.log_records.into_iter().enumerate() {
                let kept = log.clone();
                let place = || (format!("resourceLogs[{r}].scopeLogs[{s}].logRecords[{n}]"), text(&kept));
                let event = repeats.event(read_log(log), &around, options);
                take(event.map(|event| vec![event]), &mut out, place);
            }
        }
    }
    out
}

pub(super) fn text(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

pub(super) fn resource_attributes(resource: Option<Resource>) -> Attributes {
    resource.map(|r| from_proto(r.attributes)).unwrap_or_default()
}

pub(super) fn surroundings(resource: &Attributes, scope: Option<InstrumentationScope>) -> Surroundings {
    let scope = scope.unwrap_or_default();
    Surroundings {
        resource: resource.clone(),
        scope: scope.name,
        scope_attributes: from_proto(scope.attributes),
    }
}

fn has_ids(span: &ProtoSpan) -> bool {
    id(&span.trace_id, 16).is_some() && id(&span.span_id, 8).is_some()
}

/// An id in hexadecimal digits, unless it is of another length or zero.
fn id(bytes: &[u8], length: usize) -> Option<String> {
    (bytes.len() == length && bytes.iter().any(|b| *b != 0)).then(|| hex(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to memory cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn read_span(span: ProtoSpan) -> Result<Span, Bad> {
    let bad = |what: &str, bytes: &[u8], length: usize| {
        ("bad_id", format!("the {what} '{}' is not {length} bytes that are not all zero", hex(bytes)))
    };
    let trace = id(&span.trace_id, 16).ok_or_else(|| bad("trace id", &span.trace_id, 16))?;
    let own = id(&span.span_id, 8).ok_or_else(|| bad("span id", &span.span_id, 8))?;
    let kind = match span.kind() {
        span::SpanKind::Unspecified => SpanKind::Unspecified,
        span::SpanKind::Internal => SpanKind::Internal,
        span::SpanKind::Server => SpanKind::Server,
        span::SpanKind::Client => SpanKind::Client,
        span::SpanKind::Producer => SpanKind::Producer,
        span::SpanKind::Consumer => SpanKind::Consumer,
    };
    let remote = (span.flags & HAS_IS_REMOTE != 0).then_some(span.flags & IS_REMOTE != 0);
    let mut extra = Attributes::new();
    if !span.trace_state.is_empty() {
        extra.insert("trace_state".to_owned(), Value::from(span.trace_state));
    }
    if let Some(status) = span.status.filter(|s| s.code != 0 || !s.message.is_empty()) {
        extra.insert("status".to_owned(), status_value(i64::from(status.code), &status.message));
    }
    if !span.events.is_empty() {
        let events = span
            .events
            .into_iter()
            .map(|event| span_event(event.time_unix_nano, &event.name, from_proto(event.attributes)));
        extra.insert("events".to_owned(), events.collect());
    }
    let links = span.links.into_iter().filter_map(|link| {
        let context = Context { trace: id(&link.trace_id, 16)?, span: id(&link.span_id, 8)? };
        Some(Link { context, attributes: from_proto(link.attributes) })
    });
    Ok(Span {
        context: Context { trace, span: own },
        parent: id(&span.parent_span_id, 8),
        remote_parent: remote,
        shared: false,
        kind,
        name: span.name,
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: from_proto(span.attributes),
        links: links.collect(),
        extra,
    })
}

pub(super) fn read_log(log: LogRecord) -> Log {
    let context = id(&log.trace_id, 16).zip(id(&log.span_id, 8));
    Log {
        time: log.time_unix_nano,
        observed: log.observed_time_unix_nano,
        event_name: log.event_name,
        severity: log.severity_text,
        body: log.body.map(value_from_proto),
        attributes: from_proto(log.attributes),
        context: context.map(|(trace, span)| Context { trace, span }),
    }
}

/// Attributes of a protobuf message. Of two of one name the last counts.
fn from_proto(list: Vec<KeyValue>) -> Attributes {
    list.into_iter().map(|pair| (pair.key, pair.value.map_or(Value::Null, value_from_proto))).collect()
}

/// A value of a protobuf message; bytes as Base64 text.
fn value_from_proto(value: AnyValue) -> Value {
    match value.value {
        Some(any_value::Value::StringValue(text)) => Value::from(text),
        Some(any_value::Value::BoolValue(yes)) => Value::from(yes),
        Some(any_value::Value::IntValue(number)) => Value::from(number),
        Some(any_value::Value::DoubleValue(number)) => attributes::double(number),
        Some(any_value::Value::ArrayValue(list)) => list.values.into_iter().map(value_from_proto).collect(),
        Some(any_value::Value::KvlistValue(map)) => Value::Object(from_proto(map.values)),
        Some(any_value::Value::BytesValue(bytes)) => Value::from(STANDARD.encode(bytes)),
        // An index into a table that only profiles have.
        Some(any_value::Value::StringValueStrindex(_)) | None => Value::Null,
    }
}
