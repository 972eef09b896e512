//! Spans as Jaeger's query service and its user interface write them in JSON.
//!
//! A trace is an object with `spans` and `processes`; a span names its process by `processID`, or has it as `process`. What it is to other
//! spans stand in `references`: the first of the same trace with `CHILD_OF` is its parent, else the first with `FOLLOWS_FROM`, which is a parent
//! that does not wait for it; all others are links. Times are microseconds.
//! Fields are those of `ui.Span` in Jaeger's `model/json`.

use demi_schemas::EventRecord;
use serde_json::{Map, Value};

use super::values::{micros, required};
use super::{Attributes, Bad, Context, Link, OtlpOptions, Span, SpanKind, Surroundings, span_events};

/// The processes of a trace, by their ids: attributes of a resource.
pub(crate) type Processes = Map<String, Value>;

/// The events of a span of a trace.
///
/// # Errors
/// When it is no span, or has no time.
pub(crate) fn span(
    value: &Value,
    trace: Option<&str>,
    processes: Option<&Processes>,
    options: &OtlpOptions,
) -> Result<Vec<EventRecord>, Bad> {
    let (around, span) = read(value, trace, processes)?;
    span_events(span, &around, options)
}

/// An id: hexadecimal digits are filled with zeros to 16 or 32, as Jaeger leaves them out; other texts stay as they are.
pub(crate) fn id(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let hex = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let width = if text.len() <= 16 { 16 } else { 32 };
    let whole = if hex { format!("{:0>width$}", text.to_ascii_lowercase()) } else { text.to_owned() };
    (!text.is_empty() && whole.bytes().any(|byte| byte != b'0')).then_some(whole)
}

/// A list of `key`, `type` and `value` as attributes. Of a key that comes twice the last one counts.
fn tags(value: Option<&Value>) -> Attributes {
    let tags = value.and_then(Value::as_array).into_iter().flatten();
    tags.filter_map(|tag| Some((tag.get("key")?.as_str()?.to_owned(), tag.get("value")?.clone()))).collect()
}

fn kind(tags: &Attributes) -> SpanKind {
    let name = tags.get("span.kind").and_then(Value::as_str).unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "" => SpanKind::Unspecified,
        "client" => SpanKind::Client,
        "server" => SpanKind::Server,
        "producer" => SpanKind::Producer,
        "consumer" => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}

/// The attributes of a process: its tags, and its service.
fn resource(process: &Value) -> Attributes {
    let mut attributes = tags(process.get("tags"));
    if let Some(service) = process.get("serviceName").filter(|name| name.is_string()) {
        attributes.insert("service.name".to_owned(), service.clone());
    }
    attributes
}

fn read(
    value: &Value,
    trace: Option<&str>,
    processes: Option<&Processes>,
) -> Result<(Surroundings, Span), Bad> {
    if !value.is_object() {
        return Err(("bad_shape", "a span is an object".to_owned()));
    }
    let trace = match value.get("traceID").and_then(id).or_else(|| trace.map(str::to_owned)) {
        Some(trace) => trace,
        None => required(value.get("traceID").and_then(id), "traceID")?,
    };
    let context = Context { trace, span: required(value.get("spanID").and_then(id), "spanID")? };
    let named = value.get("processID").and_then(Value::as_str);
    let process = value.get("process").or_else(|| processes?.get(named?));
    let Some(process) = process else {
        let reason = named.map_or_else(
            || "neither 'processID' nor 'process' says whose span it is".to_owned(),
            |name| format!("there is no process '{name}' in its trace"),
        );
        return Err(("no_process", reason));
    };
    let attributes = tags(value.get("tags"));
    // Older versions write the parent as a field of its own.
    let mut parent = value.get("parentSpanID").and_then(id);
    let mut links = Vec::new();
    let references = || value.get("references").and_then(Value::as_array).into_iter().flatten();
    let of_trace =
        |reference: &Value| reference.get("traceID").and_then(id).unwrap_or_else(|| context.trace.clone());
    for wanted in ["CHILD_OF", "FOLLOWS_FROM"] {
        let is_wanted = |reference: &&Value| {
            reference.get("refType").and_then(Value::as_str) == Some(wanted)
                && of_trace(reference) == context.trace
        };
        parent = parent.or_else(|| {
            references().filter(is_wanted).find_map(|reference| reference.get("spanID").and_then(id))
        });
    }
    for reference in references() {
        let Some(span) = reference.get("spanID").and_then(id) else { continue };
        let trace = of_trace(reference);
        match &parent {
            Some(known) if *known == span && trace == context.trace => {}
            _ => {
                let told = reference.get("refType").cloned().map(|told| ("refType".to_owned(), told));
                links.push(Link { context: Context { trace, span }, attributes: told.into_iter().collect() });
            }
        }
    }
    let mut extra = Attributes::new();
    for (name, kept) in [("logs", "events"), ("warnings", "warnings")] {
        if let Some(found) = value.get(name).filter(|v| !v.is_null() && **v != Value::Array(vec![])) {
            extra.insert(kept.to_owned(), found.clone());
        }
    }
    let (start, duration) = (micros(value, "startTime")?, micros(value, "duration")?);
    let span = Span {
        context,
        parent,
        remote_parent: None,
        shared: false,
        kind: kind(&attributes),
        name: value.get("operationName").and_then(Value::as_str).unwrap_or_default().to_owned(),
        start,
        end: start.saturating_add(duration),
        attributes,
        links,
        extra,
    };
    Ok((Surroundings { resource: resource(process), ..Surroundings::default() }, span))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use demi_schemas::{EventRecord, Kind};
    use serde_json::json;

    use super::*;

    fn event(span_of: &Value, processes: &Value) -> Result<EventRecord, Bad> {
        let events = span(span_of, Some("00000000000000ab"), processes.as_object(), &OtlpOptions::default())?;
        Ok(events.into_iter().next().unwrap())
    }

    #[test]
    fn a_request_is_sent_and_received() {
        let processes = json!({
            "p1": {"serviceName": "shop", "tags": [{"key": "hostname", "type": "string", "value": "h1"}]},
            "p2": {"serviceName": "stock"},
        });
        let client = json!({
            "traceID": "ab", "spanID": "1", "operationName": "GET", "processID": "p1", "startTime": 1_700_000_000_000_001_u64,
            "duration": 90, "references": [{"refType": "CHILD_OF", "traceID": "ab", "spanID": "9"}],
            "tags": [{"key": "span.kind", "type": "string", "value": "client"}],
        });
        let server = json!({
            "spanID": "2", "operationName": "GET", "processID": "p2", "startTime": 1_700_000_000_000_020_u64, "duration": 20,
            "references": [{"refType": "CHILD_OF", "spanID": "1"}, {"refType": "FOLLOWS_FROM", "traceID": "cd", "spanID": "7"}],
            "tags": [{"key": "span.kind", "value": "server"}],
        });
        let sent = event(&client, &processes).unwrap();
        let received = event(&server, &processes).unwrap();
        assert_eq!((sent.kind, sent.actor.as_str()), (Kind::Send, "shop/h1"));
        assert_eq!((received.kind, received.actor.as_str()), (Kind::Receive, "stock"));
        assert_eq!(sent.msg_id, received.msg_id);
        assert_eq!(sent.msg_id.as_deref(), Some("00000000000000ab:0000000000000001"));
        assert_eq!(sent.attrs["parent_span_id"], json!("0000000000000009"));
        assert_eq!(received.seq, 1_700_000_000_000_020_000);
    }

    #[test]
    fn what_is_missing_is_said() {
        let nobody = json!({});
        let code = |span: Value| event(&span, &nobody).unwrap_err().0;
        let whole =
            json!({"spanID": "1", "startTime": 1_700_000_000_000_001_u64, "process": {"serviceName": "s"}});
        assert_eq!(event(&whole, &nobody).unwrap().kind, Kind::Local);
        let without = |name: &str, put: Option<Value>| {
            let mut span = whole.clone();
            span.as_object_mut().unwrap().remove(name);
            if let Some(value) = put {
                span[name] = value;
            }
            code(span)
        };
        assert_eq!(without("spanID", None), "bad_id");
        assert_eq!(without("spanID", Some(json!("000"))), "bad_id");
        assert_eq!(without("process", None), "no_process");
        assert_eq!(without("startTime", None), "no_time");
        assert_eq!(without("startTime", Some(json!("soon"))), "bad_number");
        assert_eq!(code(json!(3)), "bad_shape");
    }
}
