//! OTLP requests in protobuf, read one element at a time.
//!
//! Decoded whole, a request of empty spans takes a hundred times its bytes. So the levels above spans and log records are walked over the
//! bytes, and each element is decoded by itself, after its parts were counted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use demi_schemas::EventRecord;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span as ProtoSpan;
use prost::Message;

use super::logs::Repeats;
use super::proto::{read_log, read_span, resource_attributes, surroundings, text};
use super::runs::{Runs, Told};
use super::spans::span_events;
use super::{Bad, OtlpOptions, Surroundings};
use crate::fate::Rejection;
use crate::read::lines::KEPT_OF_OVERLONG;

/// Most parts of an element: attributes, events, links, and what is inside of them. The limits of the OpenTelemetry SDKs come to fewer.
const MOST_PARTS: usize = 1 << 16;
/// Deepest nesting of groups, which nobody uses.
const MOST_DEPTH: usize = 64;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Log records.
    Logs,
}

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not protobuf: {0}")]
pub struct WireError(&'static str);

/// The number of a field, and its bytes where it has a length.
type Field<'a> = (u64, Option<&'a [u8]>);

/// The fields of a message, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for (n, byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * n);
            if byte & 0x80 == 0 {
                self.0 = &self.0[n + 1..];
                return Ok(value);
            }
        }
        Err(WireError("a number is cut off or too long"))
    }

    fn take(&mut self, bytes: u64) -> Result<&'a [u8], WireError> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(WireError("a field is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Number of the next field, and its bytes where it has a length.
    fn next(&mut self) -> Result<Option<Field<'a>>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut groups = 0;
        loop {
            let key = self.varint()?;
            let mut bytes = None;
            match key & 7 {
                0 => drop(self.varint()?),
                1 => drop(self.take(8)?),
                2 => {
                    let length = self.varint()?;
                    bytes = Some(self.take(length)?);
                }
                3 if groups < MOST_DEPTH => groups += 1,
                4 if groups > 0 => groups -= 1,
                5 => drop(self.take(4)?),
                _ => return Err(WireError("a field has no type")),
            }
            if groups == 0 {
                return Ok(Some((key >> 3, bytes.filter(|_| key & 7 == 2))));
            }
        }
    }

    /// The fields of a number that have bytes, of a message that was checked.
    fn all(bytes: &'a [u8], number: u64) -> impl Iterator<Item = &'a [u8]> {
        let mut fields = Fields(bytes);
        std::iter::from_fn(move || {
            loop {
                if let (found, Some(bytes)) = fields.next().ok()??
                    && found == number
                {
                    return Some(bytes);
                }
            }
        })
    }
}

/// The messages whose parts are counted. A request has resources, these have scopes, these have elements: each in field 2 of the one
/// above, the request's in field 1.
#[derive(Clone, Copy)]
enum Shape {
    Resource,
    Scope,
    Span,
    Event,
    Link,
    Log,
    Pair,
    Any,
    List,
    Map,
}

impl Shape {
    /// The message in a field.
    fn inside(self, field: u64) -> Option<Shape> {
        Some(match (self, field) {
            (Shape::Resource, 1) | (Shape::Scope | Shape::Event, 3) | (Shape::Link, 4) | (Shape::Log, 6) => {
                Shape::Pair
            }
            (Shape::Span, 9) | (Shape::Map, 1) => Shape::Pair,
            (Shape::Span, 11) => Shape::Event,
            (Shape::Span, 13) => Shape::Link,
            (Shape::Log, 5) | (Shape::Pair, 2) | (Shape::List, 1) => Shape::Any,
            (Shape::Any, 5) => Shape::List,
            (Shape::Any, 6) => Shape::Map,
            _ => return None,
        })
    }

    /// Adds the fields with bytes to `count`, those of the messages inside too; how deep they are nested is said by what decodes them.
    fn count(self, bytes: &[u8], depth: usize, count: &mut usize) -> Result<(), WireError> {
        let mut fields = Fields(bytes);
        while let Some((number, bytes)) = fields.next()? {
            let Some(bytes) = bytes else { continue };
            *count += 1;
            if *count > MOST_PARTS || depth > 4 * MOST_DEPTH {
                return Ok(());
            }
            if let Some(shape) = self.inside(number) {
                shape.count(bytes, depth + 1, count)?;
            }
        }
        Ok(())
    }

    /// Refuses a message that is too much to be decoded.
    fn check(self, bytes: &[u8], most: usize) -> Result<(), Bad> {
        if bytes.len() > most {
            return Err((
                "too_long",
                format!("it is {} bytes long, more than the limit of {most}", bytes.len()),
            ));
        }
        let mut count = 0;
        self.count(bytes, 0, &mut count).map_err(|error| ("not_protobuf", error.to_string()))?;
        if count > MOST_PARTS {
            return Err(("too_wide", format!("it has more than {MOST_PARTS} attributes and other parts")));
        }
        Ok(())
    }

    /// A message of several stretches, which are read as one.
    fn decode<M: Message + Default>(
        self,
        stretches: impl Iterator<Item = impl AsRef<[u8]>>,
        most: usize,
    ) -> Result<M, Bad> {
        let (mut message, mut left) = (M::default(), most);
        for stretch in stretches {
            let bytes = stretch.as_ref();
            self.check(bytes, left)?;
            left -= bytes.len();
            message.merge(bytes).map_err(|error| ("not_protobuf", error.to_string()))?;
        }
        Ok(message)
    }
}

/// Checks the levels above the elements.
///
/// # Errors
/// When the bytes are no request.
pub fn check(request: &[u8]) -> Result<(), WireError> {
    let mut resources = Fields(request);
    while let Some((number, resource)) = resources.next()? {
        let Some(resource) = resource.filter(|_| number == 1) else { continue };
        let mut scopes = Fields(resource);
        while let Some((number, scope)) = scopes.next()? {
            let Some(scope) = scope.filter(|_| number == 2) else { continue };
            let mut elements = Fields(scope);
            while elements.next()?.is_some() {}
        }
    }
    Ok(())
}

/// Where an element stands in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    signal: Signal,
    at: [usize; 3],
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [r, s, n] = self.at;
        match self.signal {
            Signal::Traces => write!(f, "resourceSpans[{r}].scopeSpans[{s}].spans[{n}]"),
            Signal::Logs => write!(f, "resourceLogs[{r}].scopeLogs[{s}].logRecords[{n}]"),
        }
    }
}

/// Gives what a request that was [checked](check) holds, in order, as long as somebody listens. Elements and what stands around them have at
/// most that many bytes.
pub fn read(
    request: &[u8],
    signal: Signal,
    options: &OtlpOptions,
    most: usize,
    each: &mut dyn FnMut(Told) -> bool,
) {
    let mut reading = Reading {
        signal,
        options,
        most,
        repeats: Repeats::default(),
        runs: Runs::new(request.len()),
        same: None,
    };
    for (r, resource) in Fields::all(request, 1).enumerate() {
        let attributes = Shape::Resource.decode::<Resource>(Fields::all(resource, 1), most);
        let attributes = attributes.map(|resource| resource_attributes(Some(resource)));
        for (s, scope) in Fields::all(resource, 2).enumerate() {
            let mut around: Option<Result<Surroundings, Bad>> = None;
            for (n, element) in Fields::all(scope, 2).enumerate() {
                let around = around.get_or_insert_with(|| {
                    let own = Shape::Scope.decode::<InstrumentationScope>(Fields::all(scope, 1), most);
                    let named = |what: &str, (code, reason): Bad| (code, format!("{what}: {reason}"));
                    let attributes = attributes.as_ref().map_err(|bad| named("its resource", bad.clone()))?;
                    Ok(surroundings(attributes, Some(own.map_err(|bad| named("its scope", bad))?)))
                });
                if !reading.element(element, around, Place { signal, at: [r, s, n] }, each) {
                    return;
                }
            }
        }
    }
    reading.runs.end(each);
}

struct Reading<'a> {
    signal: Signal,
    options: &'a OtlpOptions,
    most: usize,
    repeats: Repeats,
    runs: Runs<Place>,
    /// The element that was refused just before, by itself: an equal one is refused for the same reason.
    same: Option<&'a [u8]>,
}

impl<'a> Reading<'a> {
    /// Takes an element; says whether somebody listens.
    fn element(
        &mut self,
        bytes: &'a [u8],
        around: &Result<Surroundings, Bad>,
        place: Place,
        each: &mut dyn FnMut(Told) -> bool,
    ) -> bool {
        if around.is_ok() && self.same == Some(bytes) {
            self.runs.again(place);
            return true;
        }
        let made = match around {
            Ok(around) => self.events(bytes, around),
            Err(bad) => Err(bad.clone()),
        };
        match made {
            Ok(records) => {
                self.same = None;
                records.into_iter().all(|record| self.runs.event(Box::new(record), each))
            }
            Err((code, reason)) => {
                self.same = around.is_ok().then_some(bytes);
                let whole = matches!(code, "not_protobuf" | "too_wide" | "too_long");
                let raw = || if whole || around.is_err() { packed(bytes) } else { self.shown(bytes) };
                let raw = if self.runs.keeps(bytes.len()) { raw() } else { String::new() };
                self.runs.refuse(place, Rejection::new(code, reason), raw.into_bytes(), each)
            }
        }
    }

    fn events(&mut self, bytes: &[u8], around: &Surroundings) -> Result<Vec<EventRecord>, Bad> {
        match self.signal {
            Signal::Traces => {
                let span: ProtoSpan = Shape::Span.decode(std::iter::once(bytes), self.most)?;
                span_events(read_span(span)?, around, self.options)
            }
            Signal::Logs => {
                let log: LogRecord = Shape::Log.decode(std::iter::once(bytes), self.most)?;
                Ok(vec![self.repeats.event(read_log(log), around, self.options)?])
            }
        }
    }

    /// An element as JSON.
    fn shown(&self, bytes: &[u8]) -> String {
        match self.signal {
            Signal::Traces => ProtoSpan::decode(bytes).map_or_else(|_| packed(bytes), |span| text(&span)),
            Signal::Logs => LogRecord::decode(bytes).map_or_else(|_| packed(bytes), |log| text(&log)),
        }
    }
}

/// Bytes that are not decoded, or their beginning.
fn packed(bytes: &[u8]) -> String {
    STANDARD.encode(&bytes[..bytes.len().min(KEPT_OF_OVERLONG / 4 * 3)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
    use opentelemetry_proto::tonic::logs::v1::{ResourceLogs, ScopeLogs};
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
    use proptest::prelude::*;

    use super::*;
    use crate::otlp::{Item, from_log_resources, from_span_resources};

    fn told(request: &[u8], signal: Signal, most: usize) -> Vec<Told> {
        check(request).unwrap();
        let mut all = Vec::new();
        read(request, signal, &OtlpOptions::default(), most, &mut |told| {
            all.push(told);
            true
        });
        all
    }

    fn pair(key: &str, value: Any) -> KeyValue {
        KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
    }

    fn events(told: &[Told]) -> (Vec<EventRecord>, u64) {
        let events = told.iter().filter_map(|t| match t {
            Told::Event(record) => Some((**record).clone()),
            Told::Refused(_) => None,
        });
        let refused = told.iter().map(|t| if let Told::Refused(refused) = t { refused.count } else { 0 });
        (events.collect(), refused.sum())
    }

    fn of_items(items: Vec<Item>) -> (Vec<EventRecord>, u64) {
        let mut both = (Vec::new(), 0);
        for item in items {
            match item {
                Item::Event(record) => both.0.push(*record),
                Item::Rejected(_) => both.1 += 1,
            }
        }
        both
    }

    proptest! {
        /// One element at a time, a request says what it says decoded whole.
        #[test]
        fn reading_element_by_element_gives_what_decoding_gives(
            shape in prop::collection::vec((0usize..3, prop::collection::vec(
                (any::<bool>(), any::<bool>(), 0u64..3, "[ab]{0,2}"), 0..5)), 0..4),
        ) {
            let (mut spans, mut logs) = (Vec::new(), Vec::new());
            for (scopes, elements) in shape {
                let resource = Some(Resource { attributes: vec![pair("service.name", Any::StringValue("s".into()))], ..Resource::default() });
                let of = |(id, time, kind, name): &(bool, bool, u64, String)| ProtoSpan {
                    trace_id: vec![u8::from(*id); 16],
                    span_id: vec![7; 8],
                    start_time_unix_nano: u64::from(*time) * 1_700_000_000_000_000_000,
                    kind: *kind as i32,
                    name: name.clone(),
                    attributes: vec![pair(name, Any::IntValue(3))],
                    ..ProtoSpan::default()
                };
                let log = |(_, time, _, name): &(bool, bool, u64, String)| LogRecord {
                    time_unix_nano: u64::from(*time) * 1_700_000_000_000_000_000,
                    body: Some(AnyValue { value: Some(Any::StringValue(name.clone())) }),
                    ..LogRecord::default()
                };
                spans.push(ResourceSpans {
                    resource: resource.clone(),
                    scope_spans: (0..scopes).map(|_| ScopeSpans { spans: elements.iter().map(of).collect(), ..ScopeSpans::default() }).collect(),
                    ..ResourceSpans::default()
                });
                logs.push(ResourceLogs {
                    resource,
                    scope_logs: (0..scopes).map(|_| ScopeLogs { log_records: elements.iter().map(log).collect(), ..ScopeLogs::default() }).collect(),
                    ..ResourceLogs::default()
                });
            }
            let options = OtlpOptions::default();
            let bytes = ExportTraceServiceRequest { resource_spans: spans.clone() }.encode_to_vec();
            prop_assert_eq!(events(&told(&bytes, Signal::Traces, 1 << 20)), of_items(from_span_resources(spans, &options)));
            let bytes = ExportLogsServiceRequest { resource_logs: logs.clone() }.encode_to_vec();
            prop_assert_eq!(events(&told(&bytes, Signal::Logs, 1 << 20)), of_items(from_log_resources(logs, &options)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for signal in [Signal::Traces, Signal::Logs] {
                if check(&bytes).is_ok() {
                    read(&bytes, signal, &OtlpOptions::default(), 100, &mut |_| true);
                }
            }
        }
    }

    #[test]
    fn a_run_of_equal_refusals_is_told_once_with_its_ends() {
        let scope = ScopeSpans { spans: vec![ProtoSpan::default(); 1000], ..ScopeSpans::default() };
        let mut good = ProtoSpan {
            trace_id: vec![1; 16],
            span_id: vec![1; 8],
            start_time_unix_nano: 9,
            ..ProtoSpan::default()
        };
        let mut second = scope.clone();
        second.spans[500] = good.clone();
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![scope, second],
                ..ResourceSpans::default()
            }],
        };
        let all = told(&request.encode_to_vec(), Signal::Traces, 1 << 20);
        let [Told::Refused(first), Told::Event(_), Told::Refused(last)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((first.count, last.count), (1500, 499));
        assert_eq!(first.first, "resourceSpans[0].scopeSpans[0].spans[0]");
        assert_eq!(first.last, "resourceSpans[0].scopeSpans[1].spans[499]");
        assert!(
            first.rejection().reason().contains("1500 in a row")
                && first.rejection().reason().contains("trace id"),
            "{:?}",
            first.rejection()
        );
        // Too much of one element is refused alone.
        good.attributes = vec![KeyValue::default(); MOST_PARTS + 1];
        let long = ProtoSpan { name: "x".repeat(5000), ..ProtoSpan::default() };
        let scope = ScopeSpans { spans: vec![good, long], ..ScopeSpans::default() };
        let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
        let request = ExportTraceServiceRequest { resource_spans: vec![resource] }.encode_to_vec();
        let codes = |most| -> Vec<String> {
            let all = told(&request, Signal::Traces, most);
            let code = |t: &Told| {
                if let Told::Refused(refused) = t { refused.why.code() } else { "event" }.to_owned()
            };
            all.iter().map(code).collect()
        };
        assert_eq!(codes(1 << 20), ["too_wide", "bad_id"]);
        assert_eq!(codes(4000), ["too_long", "too_long"]);
    }

    #[test]
    fn what_is_nested_deep_is_refused() {
        let mut value = AnyValue { value: Some(Any::IntValue(1)) };
        for _ in 0..300 {
            value = AnyValue { value: Some(Any::ArrayValue(ArrayValue { values: vec![value] })) };
        }
        let mut deep =
            LogRecord { time_unix_nano: 9, body: Some(value), ..LogRecord::default() }.encode_to_vec();
        for number in [0x12, 0x12, 0x0a] {
            let mut outer = vec![number];
            prost::encoding::encode_varint(deep.len() as u64, &mut outer);
            outer.extend(deep);
            deep = outer;
        }
        let all = told(&deep, Signal::Logs, 1 << 20);
        let [Told::Refused(refused)] = &all[..] else { panic!("{all:?}") };
        assert_eq!(refused.why.code(), "not_protobuf");
    }
}
