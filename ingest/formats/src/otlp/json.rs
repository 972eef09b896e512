//! Telemetry out of JSON documents.
//!
//! OTLP/JSON is protobuf's JSON mapping with ids in hexadecimal digits and enumerations as numbers. Exporters differ, so
//! what is meant is taken where it is clear: `snake_case` names, ids in Base64, names of enumeration values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use demi_schemas::EventRecord;
use serde_json::Value;

use crate::read::lines::without_mark;

use super::kept::{span_event, status_value};
use super::logs::Repeats;
use super::spans::{span_events, take};
use super::values::required;
use super::{
    Attributes, Bad, Context, Item, Link, Log, OtlpError, OtlpOptions, Span, SpanKind, Surroundings,
    attributes,
};

/// What is said of a process, out of the `resource` of a list's element.
pub(crate) fn resource(resource: &Value) -> Result<Attributes, String> {
    attributes::from_json(resource.get("attributes"))
}

/// Name and attributes of an instrumentation library, out of the `scope` of a list's element.
pub(crate) fn scope(scope: &Value) -> Result<(String, Attributes), String> {
    let name = scope.get("name").and_then(Value::as_str).unwrap_or_default();
    Ok((name.to_owned(), attributes::from_json(scope.get("attributes"))?))
}

/// The events of a single span.
pub(crate) fn span(
    value: &Value,
    around: &Surroundings,
    options: &OtlpOptions,
) -> Result<Vec<EventRecord>, Bad> {
    span_events(read_span(value)?, around, options)
}

/// The events of one JSON document: a request, or a line of a collector's file, with spans, log records or both.
///
/// # Errors
/// When it is no JSON object with `resourceSpans` or `resourceLogs`. An element that is no event is an [`Item`].
pub fn from_json(document: &[u8], options: &OtlpOptions) -> Result<Vec<Item>, OtlpError> {
    let document: Value =
        serde_json::from_slice(without_mark(document)).map_err(|e| OtlpError::Json(e.to_string()))?;
    from_json_value(&document, options)
}

/// [`from_json`] of a document that is parsed already.
///
/// # Errors
/// As [`from_json`].
pub fn from_json_value(document: &Value, options: &OtlpOptions) -> Result<Vec<Item>, OtlpError> {
    if !document.is_object() {
        return Err(OtlpError::Shape("an OTLP document is an object".to_owned()));
    }
    // Tempo answers with `batches`; some files hold single elements of the lists.
    let bare = |names: [&str; 2]| {
        let element = list(document, names[0])?.is_some() || list(document, names[1])?.is_some();
        Ok::<_, OtlpError>(element.then(|| std::slice::from_ref(document)))
    };
    let spans = match (list(document, "resourceSpans")?, list(document, "batches")?) {
        (None, None) => bare(["scopeSpans", "instrumentationLibrarySpans"])?,
        (spans, batches) => spans.or(batches),
    };
    let logs = match list(document, "resourceLogs")? {
        None => bare(["scopeLogs", "instrumentationLibraryLogs"])?,
        logs => logs,
    };
    if spans.is_none() && logs.is_none() {
        let what = "neither 'resourceSpans' nor 'resourceLogs' is in the document";
        return Err(OtlpError::Shape(what.to_owned()));
    }
    let mut out = Vec::new();
    walk(spans.unwrap_or(&[]), ["resourceSpans", "scopeSpans", "spans"], |element, around, place| {
        take(span(element, around, options), &mut out, || (place, element.to_string()));
    })?;
    let mut repeats = Repeats::default();
    walk(logs.unwrap_or(&[]), ["resourceLogs", "scopeLogs", "logRecords"], |element, around, place| {
        let event = repeats.json(element, around, options);
        take(event.map(|event| vec![event]), &mut out, || (place, element.to_string()));
    })?;
    Ok(out)
}

/// Calls `each` with every span or log record, what stands around it, and its place.
fn walk(
    resources: &[Value],
    names: [&str; 3],
    mut each: impl FnMut(&Value, &Surroundings, String),
) -> Result<(), OtlpError> {
    for (r, resource) in resources.iter().enumerate() {
        let path = format!("{}[{r}]", names[0]);
        let shape = |path: &str, reason| OtlpError::Shape(format!("{path}: {reason}"));
        let own = resource.get("resource").map_or(Ok(Attributes::new()), self::resource);
        let own = own.map_err(|e| shape(&path, e))?;
        // Before version 0.15 of the protocol scopes were called libraries.
        let scopes = match list(resource, names[1])? {
            Some(scopes) => scopes,
            None => list(
                resource,
                if names[2] == "spans" {
                    "instrumentationLibrarySpans"
                } else {
                    "instrumentationLibraryLogs"
                },
            )?
            .unwrap_or(&[]),
        };
        for (s, scope) in scopes.iter().enumerate() {
            let path = format!("{path}.{}[{s}]", names[1]);
            let library = either(scope, "scope").or_else(|| either(scope, "instrumentationLibrary"));
            let library = library.map_or(Ok(Default::default()), self::scope);
            let (name, scope_attributes) = library.map_err(|e| shape(&path, e))?;
            let around = Surroundings { resource: own.clone(), scope: name, scope_attributes };
            let elements = list(scope, names[2])?.or(list(scope, "logs")?).unwrap_or(&[]);
            for (n, element) in elements.iter().enumerate() {
                each(element, &around, format!("{path}.{}[{n}]", names[2]));
            }
        }
    }
    Ok(())
}

/// A field by its name in camel case, or the same in snake case.
fn either<'a>(value: &'a Value, camel: &str) -> Option<&'a Value> {
    let found = value.get(camel).or_else(|| {
        let mut snake = String::with_capacity(camel.len() + 4);
        for c in camel.chars() {
            if c.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        value.get(snake)
    });
    found.filter(|v| !v.is_null())
}

fn list<'a>(value: &'a Value, name: &str) -> Result<Option<&'a [Value]>, OtlpError> {
    match either(value, name) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(_) => Err(OtlpError::Shape(format!("'{name}' is no list"))),
    }
}

fn text(value: &Value, name: &str) -> String {
    either(value, name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An id of so many bytes, `None` where there is none; all zero is none.
fn id(value: &Value, name: &str, bytes: usize) -> Result<Option<String>, Bad> {
    let text = match either(value, name) {
        None => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => return Err(("bad_id", format!("'{name}' is {other}, not hexadecimal digits"))),
    };
    let digits = if text.len() == bytes * 2 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        text.to_ascii_lowercase()
    } else {
        match STANDARD.decode(text) {
            Ok(raw) if raw.len() == bytes => raw.iter().map(|b| format!("{b:02x}")).collect(),
            _ => {
                return Err((
                    "bad_id",
                    format!("'{name}' is '{text}', not {} hexadecimal digits", bytes * 2),
                ));
            }
        }
    };
    Ok((digits.bytes().any(|b| b != b'0')).then_some(digits))
}

/// A whole number, or its digits as text; 0 where there is none.
fn number(value: &Value, name: &str) -> Result<u64, Bad> {
    match either(value, name) {
        None => Ok(0),
        Some(Value::String(text)) if text.is_empty() => Ok(0),
        Some(found) => found
            .as_u64()
            .or_else(|| found.as_str()?.trim().parse().ok())
            .ok_or_else(|| ("bad_number", format!("'{name}' is {found}, not a whole number"))),
    }
}

fn attributes_of(value: &Value) -> Result<Attributes, Bad> {
    attributes::from_json(value.get("attributes")).map_err(|e| ("bad_attribute", e))
}

fn kind(value: &Value) -> Result<SpanKind, Bad> {
    let found = match either(value, "kind") {
        None => return Ok(SpanKind::Unspecified),
        Some(found) => found,
    };
    let name = found.as_str().map(|s| s.strip_prefix("SPAN_KIND_").unwrap_or(s).to_ascii_lowercase());
    Ok(match (found.as_u64(), name.as_deref()) {
        (Some(1), _) | (_, Some("internal" | "1")) => SpanKind::Internal,
        (Some(2), _) | (_, Some("server" | "2")) => SpanKind::Server,
        (Some(3), _) | (_, Some("client" | "3")) => SpanKind::Client,
        (Some(4), _) | (_, Some("producer" | "4")) => SpanKind::Producer,
        (Some(5), _) | (_, Some("consumer" | "5")) => SpanKind::Consumer,
        // A receiver must take kinds it does not know for unspecified ones.
        (Some(_), _) | (_, Some("unspecified" | "0")) => SpanKind::Unspecified,
        _ => return Err(("bad_kind", format!("'kind' is {found}"))),
    })
}

fn status(value: &Value) -> Option<Value> {
    let status = either(value, "status")?;
    let code = status.get("code");
    let code = code.and_then(Value::as_i64).unwrap_or_else(|| match code.and_then(Value::as_str) {
        Some("STATUS_CODE_OK" | "1") => 1,
        Some("STATUS_CODE_ERROR" | "2") => 2,
        _ => 0,
    });
    let message = text(status, "message");
    (code != 0 || !message.is_empty()).then(|| status_value(code, &message))
}

fn read_span(value: &Value) -> Result<Span, Bad> {
    if !value.is_object() {
        return Err(("bad_shape", "a span is an object".to_owned()));
    }
    let shape = |e: OtlpError| ("bad_shape", e.to_string());
    let context = Context {
        trace: required(id(value, "traceId", 16)?, "traceId")?,
        span: required(id(value, "spanId", 8)?, "spanId")?,
    };
    let flags = number(value, "flags")?;
    let mut extra = Attributes::new();
    let trace_state = text(value, "traceState");
    if !trace_state.is_empty() {
        extra.insert("trace_state".to_owned(), Value::from(trace_state));
    }
    extra.extend(status(value).map(|status| ("status".to_owned(), status)));
    let mut events = Vec::new();
    for event in list(value, "events").map_err(shape)?.unwrap_or(&[]) {
        let time = number(event, "timeUnixNano")?;
        events.push(span_event(time, &text(event, "name"), attributes_of(event)?));
    }
    if !events.is_empty() {
        extra.insert("events".to_owned(), Value::Array(events));
    }
    let mut links = Vec::new();
    for link in list(value, "links").map_err(shape)?.unwrap_or(&[]) {
        if let (Some(trace), Some(span)) = (id(link, "traceId", 16)?, id(link, "spanId", 8)?) {
            links.push(Link { context: Context { trace, span }, attributes: attributes_of(link)? });
        }
    }
    Ok(Span {
        parent: id(value, "parentSpanId", 8)?,
        remote_parent: (flags & 0x100 != 0).then_some(flags & 0x200 != 0),
        shared: false,
        kind: kind(value)?,
        name: text(value, "name"),
        start: number(value, "startTimeUnixNano")?,
        end: number(value, "endTimeUnixNano")?,
        attributes: attributes_of(value)?,
        context,
        links,
        extra,
    })
}

pub(super) fn read_log(value: &Value) -> Result<Log, Bad> {
    if !value.is_object() {
        return Err(("bad_shape", "a log record is an object".to_owned()));
    }
    let body = either(value, "body").map(attributes::value_from_json).transpose();
    let context = id(value, "traceId", 16)?.zip(id(value, "spanId", 8)?);
    Ok(Log {
        time: number(value, "timeUnixNano")?,
        observed: number(value, "observedTimeUnixNano")?,
        event_name: text(value, "eventName"),
        severity: text(value, "severityText"),
        body: body.map_err(|e| ("bad_body", e))?,
        attributes: attributes_of(value)?,
        context: context.map(|(trace, span)| Context { trace, span }),
    })
}
