//! Zipkin spans (version 2 of its JSON) as events, by the same path as OpenTelemetry's.

use serde_json::{Map, Value};

use super::spans::{span_events, take};
use super::{Attributes, Context, Item, OtlpError, OtlpOptions, Span, SpanKind, Surroundings};

type Bad = (&'static str, String);

/// The events of one JSON document: a list of spans, a list of such lists (traces), or a single span.
///
/// # Errors
/// When it is no JSON, or neither list nor object. A span that is no event is an [`Item`].
pub fn from_zipkin_json(document: &[u8], options: &OtlpOptions) -> Result<Vec<Item>, OtlpError> {
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let document: Value = serde_json::from_slice(document).map_err(|e| OtlpError::Json(e.to_string()))?;
    let mut out = Vec::new();
    let mut one = |path: String, span: &Value| {
        let (around, span_read) = match read(span) {
            Ok((around, read)) => (around, Ok(read)),
            Err(bad) => (Surroundings::default(), Err(bad)),
        };
        take(span_read, &around, options, &mut out, || (path, span.to_string()));
    };
    match &document {
        Value::Array(list) => {
            for (n, element) in list.iter().enumerate() {
                match element {
                    Value::Array(trace) => {
                        trace.iter().enumerate().for_each(|(m, span)| one(format!("[{n}][{m}]"), span));
                    }
                    span => one(format!("[{n}]"), span),
                }
            }
        }
        Value::Object(_) => one("[0]".to_owned(), &document),
        _ => return Err(OtlpError::Shape("a Zipkin document is a list of spans".to_owned())),
    }
    Ok(out)
}

/// The events of a single span.
pub(crate) fn span(value: &Value, options: &OtlpOptions) -> Result<Vec<Item>, Bad> {
    let mut out = Vec::new();
    let (around, span) = read(value)?;
    span_events(span, &around, options, &mut out)?;
    Ok(out)
}

/// An id of 16 or 32 hexadecimal digits, shorter ones filled with zeros as Zipkin's servers do.
fn id(span: &Value, name: &str) -> Result<Option<String>, Bad> {
    match span.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text))
            if (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            let width = if text.len() <= 16 { 16 } else { 32 };
            let digits = format!("{:0>width$}", text.to_ascii_lowercase());
            Ok(digits.bytes().any(|b| b != b'0').then_some(digits))
        }
        Some(other) => Err(("bad_id", format!("'{name}' is {other}, not up to 32 hexadecimal digits"))),
    }
}

fn own_id(span: &Value, name: &str) -> Result<String, Bad> {
    id(span, name)?.ok_or_else(|| ("bad_id", format!("'{name}' is missing or all zero")))
}

/// Microseconds as nanoseconds; 0 where there are none.
fn micros(span: &Value, name: &str) -> Result<u64, Bad> {
    match span.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(found) => {
            let whole = found.as_u64().or_else(|| found.as_str()?.parse().ok());
            // Some reporters write fractions.
            let rounded = || found.as_f64().filter(|n| (0.0..1e16).contains(n)).map(|n| n as u64);
            let micros = whole.or_else(rounded).and_then(|n| n.checked_mul(1000));
            micros.ok_or_else(|| ("bad_number", format!("'{name}' is {found}, not a number of microseconds")))
        }
    }
}

fn kind(span: &Value) -> Result<SpanKind, Bad> {
    Ok(match span.get("kind") {
        None | Some(Value::Null) => SpanKind::Internal,
        Some(Value::String(name)) => match name.to_ascii_uppercase().as_str() {
            "CLIENT" => SpanKind::Client,
            "SERVER" => SpanKind::Server,
            "PRODUCER" => SpanKind::Producer,
            "CONSUMER" => SpanKind::Consumer,
            _ => SpanKind::Unspecified,
        },
        Some(other) => return Err(("bad_kind", format!("'kind' is {other}"))),
    })
}

/// What an endpoint is called: its service, else its address.
fn endpoint(end: Option<&Value>) -> Option<String> {
    let end = end?;
    let name = |key: &str| end.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(service) = name("serviceName") {
        return Some(service.to_owned());
    }
    let address = name("ipv4").or_else(|| name("ipv6"))?;
    let port = end.get("port").and_then(Value::as_u64);
    Some(port.map_or_else(|| address.to_owned(), |port| format!("{address}:{port}")))
}

fn read(value: &Value) -> Result<(Surroundings, Span), Bad> {
    let Some(map) = value.as_object() else {
        return Err(("bad_shape", "a span is an object".to_owned()));
    };
    let context = Context { trace: own_id(value, "traceId")?, span: own_id(value, "id")? };
    let mut resource = Attributes::new();
    if let Some(local) = map.get("localEndpoint").and_then(Value::as_object) {
        resource.insert("service.name".to_owned(), endpoint(map.get("localEndpoint")).into());
        resource.insert("endpoint".to_owned(), Value::Object(local.clone()));
    }
    let mut attributes = map.get("tags").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    if let Some(remote) = endpoint(map.get("remoteEndpoint")) {
        attributes.insert("zipkin.remote".to_owned(), Value::from(remote));
    }
    let mut extra = Attributes::new();
    for (name, kept) in [("annotations", "events"), ("remoteEndpoint", "remote_endpoint"), ("debug", "debug")]
    {
        if let Some(found) = map.get(name).filter(|v| !v.is_null() && **v != Value::Array(vec![])) {
            extra.insert(kept.to_owned(), found.clone());
        }
    }
    let (start, duration) = (micros(value, "timestamp")?, micros(value, "duration")?);
    let annotated = || {
        let annotations = map.get("annotations").and_then(Value::as_array);
        annotations.into_iter().flatten().filter_map(|a| micros(a, "timestamp").ok()).filter(|t| *t > 0).min()
    };
    let start = if start == 0 { annotated().unwrap_or(0) } else { start };
    let span = Span {
        context,
        parent: id(value, "parentId")?,
        remote_parent: None,
        shared: map.get("shared").and_then(Value::as_bool).unwrap_or(false),
        kind: kind(value)?,
        name: map.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        start,
        end: start.saturating_add(duration),
        attributes,
        links: Vec::new(),
        extra,
    };
    Ok((Surroundings { resource, ..Surroundings::default() }, span))
}
