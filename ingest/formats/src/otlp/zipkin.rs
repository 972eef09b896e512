//! Zipkin spans as events, by the same path as OpenTelemetry's.
//!
//! Version 2 of its JSON is read. A span of version 1, which says by annotations what it did (`cs`, `sr`, `ss`, `cr`, `ms`, `mr`), is brought into
//! version 2 first: one span for each side that has an annotation of its own (`zipkin_v1.rs`).
//!
//! **Parts.** A service may report a span in parts, and only one of them has the start. A [`Window`] joins them, as Zipkin's own storage does: to the
//! part with the start goes what other parts of the same id, side and service say. A part whose start is nowhere is no event.

use std::collections::VecDeque;

use demi_schemas::EventRecord;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::read::lines::without_mark;

use super::spans::{span_events, take};
use super::values::{micros, required};
use super::zipkin_v1;
use super::{Attributes, Bad, Context, Item, OtlpError, OtlpOptions, Span, SpanKind, Surroundings};

/// Bytes of spans among which parts of a span are joined. The spans of a trace stand side by side, and one of this length has thousands.
const WINDOW: usize = 1 << 20;

/// The events of one JSON document: a list of spans, a list of such lists (traces), or a single span.
///
/// # Errors
/// When it is no JSON, or neither list nor object. A span that is no event is an [`Item`].
pub fn from_zipkin_json(document: &[u8], options: &OtlpOptions) -> Result<Vec<Item>, OtlpError> {
    let document: Value =
        serde_json::from_slice(without_mark(document)).map_err(|e| OtlpError::Json(e.to_string()))?;
    let mut out = Vec::new();
    let mut window = Window::default();
    let one = |path: String, span: &Value, window: &mut Window<(String, String)>| {
        let raw = span.to_string();
        window.push(span.clone(), raw.len(), (path, raw));
    };
    let mut give = |(path, raw): (String, String), spans: Vec<Value>| {
        for span in spans {
            take(self::span(&span, options), &mut out, || (path.clone(), raw.clone()));
        }
    };
    match &document {
        Value::Array(list) => {
            for (n, element) in list.iter().enumerate() {
                match element {
                    Value::Array(trace) => {
                        for (m, span) in trace.iter().enumerate() {
                            one(format!("[{n}][{m}]"), span, &mut window);
                            window.give_beyond(WINDOW, &mut give);
                        }
                        window.give_beyond(0, &mut give);
                    }
                    span => one(format!("[{n}]"), span, &mut window),
                }
                window.give_beyond(WINDOW, &mut give);
            }
        }
        Value::Object(_) => one("[0]".to_owned(), &document, &mut window),
        _ => return Err(OtlpError::Shape("a Zipkin document is a list of spans".to_owned())),
    }
    window.give_beyond(0, &mut give);
    Ok(out)
}

/// The events of a single span of version 2.
pub(crate) fn span(value: &Value, options: &OtlpOptions) -> Result<Vec<EventRecord>, Bad> {
    let (around, span) = read(value)?;
    if span.start == 0 {
        let name = span.context.message_id();
        return Err((
            "no_time",
            format!("no part of span '{}' ({name}) that stands near says when it began", span.name),
        ));
    }
    span_events(span, &around, options)
}

/// Elements of a document that wait for parts of their spans, each with what its owner wants back.
pub(crate) struct Window<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Number of the first that waits.
    first: u64,
    bytes: usize,
    /// By trace and span: the numbers of those that wait.
    of_span: FxHashMap<(String, String), Vec<u64>>,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Window { waiting: VecDeque::new(), first: 0, bytes: 0, of_span: FxHashMap::default() }
    }
}

/// An element that waits.
struct Waiting<T> {
    of: T,
    bytes: usize,
    /// Trace and span of each that it came with.
    names: Vec<(String, String)>,
    /// Its spans in version 2. Those whose parts went to another element are gone.
    spans: Vec<Value>,
}

/// What takes an element back with its spans. One whose spans are all parts of others has none.
pub(crate) type Give<'a, T> = dyn FnMut(T, Vec<Value>) + 'a;

impl<T> Window<T> {
    /// Takes an element.
    pub(crate) fn push(&mut self, element: Value, bytes: usize, of: T) {
        let spans = zipkin_v1::upgraded(element);
        let number = self.first + self.waiting.len() as u64;
        let names: Vec<_> = spans.iter().filter_map(name).collect();
        for name in &names {
            let numbers = self.of_span.entry(name.clone()).or_default();
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        }
        self.bytes += bytes;
        self.waiting.push_back(Waiting { of, bytes, names, spans });
    }

    /// Takes an element and gives back those that waited long enough.
    pub(crate) fn take(&mut self, element: Value, bytes: usize, of: T, give: &mut Give<'_, T>) {
        self.push(element, bytes, of);
        self.give_beyond(WINDOW, give);
    }

    /// Gives back the first elements, until no more bytes than that wait.
    pub(crate) fn give_beyond(&mut self, bytes: usize, give: &mut Give<'_, T>) {
        while self.bytes > bytes || bytes == 0 && !self.waiting.is_empty() {
            self.join_first();
            let Some(Waiting { of, bytes, names, spans }) = self.waiting.pop_front() else { return };
            for name in names {
                if let Some(numbers) = self.of_span.get_mut(&name) {
                    numbers.retain(|number| *number != self.first);
                    if numbers.is_empty() {
                        self.of_span.remove(&name);
                    }
                }
            }
            self.bytes -= bytes;
            self.first += 1;
            give(of, spans);
        }
    }

    fn waiting(&mut self, number: u64) -> Option<&mut Waiting<T>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(place)
    }

    /// Joins the parts of the spans of the first element.
    fn join_first(&mut self) {
        let names = |waiting: &Waiting<T>| waiting.spans.iter().filter_map(name).collect::<Vec<_>>();
        for name in self.waiting.front().map(names).unwrap_or_default() {
            let numbers = self.of_span.get(&name).cloned().unwrap_or_default();
            if numbers.len() < 2 {
                continue;
            }
            // Where each part is: the number of its element, and its place in there.
            let mut parts: Vec<(u64, usize)> = Vec::new();
            for &number in &numbers {
                let Some(waiting) = self.waiting(number) else { continue };
                let here = waiting
                    .spans
                    .iter()
                    .enumerate()
                    .filter(|(_, span)| self::name(span).as_ref() == Some(&name));
                parts.extend(here.map(|(place, _)| (number, place)));
            }
            self.join(&parts);
        }
    }

    /// Joins parts of one id: one without a start goes to the only one with a start that it fits.
    fn join(&mut self, parts: &[(u64, usize)]) {
        let mut spans: Vec<Value> = Vec::with_capacity(parts.len());
        for &(number, place) in parts {
            let found =
                self.waiting(number).and_then(|waiting| waiting.spans.get_mut(place)).map(Value::take);
            spans.push(found.unwrap_or_default());
        }
        let begun: Vec<usize> = (0..spans.len()).filter(|&i| has_start(&spans[i])).collect();
        for i in (0..spans.len()).filter(|i| !begun.contains(i)) {
            let fitting: Vec<usize> = begun.iter().copied().filter(|&b| fits(&spans[b], &spans[i])).collect();
            if let [only] = fitting[..] {
                let part = spans[i].take();
                add(&mut spans[only], part);
            }
        }
        for (&(number, place), span) in parts.iter().zip(spans) {
            if let Some(slot) = self.waiting(number).and_then(|waiting| waiting.spans.get_mut(place)) {
                *slot = span;
            }
        }
        for &(number, _) in parts {
            if let Some(waiting) = self.waiting(number) {
                waiting.spans.retain(|span| !span.is_null());
            }
        }
    }
}

/// Trace and span of a span, where it has both.
fn name(span: &Value) -> Option<(String, String)> {
    Some((id(span, "traceId").ok()??, id(span, "id").ok()??))
}

/// Whether a span says when it began.
fn has_start(span: &Value) -> bool {
    start(span).is_ok_and(|start| start > 0)
}

/// Whether two parts may be of one span: what both say of side, service and kind is the same.
fn fits(one: &Value, other: &Value) -> bool {
    let same = |a: Option<Value>, b: Option<Value>| a.is_none() || b.is_none() || a == b;
    let told = |span: &Value, name: &str| span.get(name).filter(|value| !value.is_null()).cloned();
    let service = |span: &Value| endpoint(span.get("localEndpoint")).map(Value::from);
    same(told(one, "kind"), told(other, "kind"))
        && same(told(one, "shared"), told(other, "shared"))
        && same(service(one), service(other))
}

/// Adds to a span what another part of it says.
fn add(span: &mut Value, part: Value) {
    let (Some(span), Value::Object(part)) = (span.as_object_mut(), part) else { return };
    for (name, told) in part {
        match (span.get_mut(&name), told) {
            (_, Value::Null) => {}
            (None | Some(Value::Null), told) => {
                span.insert(name, told);
            }
            // A part without a start may have a stamp of 0.
            (Some(Value::Object(known)), Value::Object(more)) if name == "tags" => {
                for (tag, value) in more {
                    known.entry(tag).or_insert(value);
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if name == "annotations" => {
                let new: Vec<Value> =
                    more.into_iter().filter(|annotation| !known.contains(annotation)).collect();
                known.extend(new);
            }
            (Some(known), told) if name == "duration" && told.as_f64() > known.as_f64() => *known = told,
            (Some(known), told) if name == "name" && known.as_str().is_some_and(str::is_empty) => {
                *known = told
            }
            _ => {}
        }
    }
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

/// The attribute for the address of the machine that a span is of. It names the actor where `actor_by` says so: a service of one process may have several.
const HOST_ADDRESS: &str = "net.host.ip";

/// When a span began, in nanoseconds: its stamp, else that of its first annotation; 0 where there is neither.
fn start(value: &Value) -> Result<u64, Bad> {
    let stamp = micros(value, "timestamp")?;
    if stamp > 0 {
        return Ok(stamp);
    }
    let annotations = value.get("annotations").and_then(Value::as_array).into_iter().flatten();
    Ok(annotations.filter_map(|a| micros(a, "timestamp").ok()).filter(|t| *t > 0).min().unwrap_or(0))
}

fn read(value: &Value) -> Result<(Surroundings, Span), Bad> {
    let Some(map) = value.as_object() else {
        return Err(("bad_shape", "a span is an object".to_owned()));
    };
    let context = Context {
        trace: required(id(value, "traceId")?, "traceId")?,
        span: required(id(value, "id")?, "id")?,
    };
    let mut resource = Attributes::new();
    if let Some(local) = map.get("localEndpoint").and_then(Value::as_object) {
        resource.insert("service.name".to_owned(), endpoint(map.get("localEndpoint")).into());
        resource.insert("endpoint".to_owned(), Value::Object(local.clone()));
        let address = ["ipv4", "ipv6"].iter().find_map(|key| local.get(*key)?.as_str());
        if let Some(address) = address.filter(|address| !address.is_empty()) {
            resource.insert(HOST_ADDRESS.to_owned(), address.into());
        }
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
    let (start, duration) = (start(value)?, micros(value, "duration")?);
    let span = Span {
        context,
        parent: id(value, "parentId")?,
        remote_parent: None,
        shared: map.get("shared").and_then(Value::as_bool).unwrap_or(false),
        kind: kind(value)?,
        name: map.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        start,
        end: if start == 0 { 0 } else { start.saturating_add(duration) },
        attributes,
        links: Vec::new(),
        extra,
    };
    Ok((Surroundings { resource, ..Surroundings::default() }, span))
}
