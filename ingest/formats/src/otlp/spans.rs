//! A span as events.

use demi_schemas::{EventRecord, Kind};
use serde_json::{Map, Value};

use super::actor::actor;
use super::clock::{rfc3339, seq_at};
use super::semconv::{self, Role};
use super::{Attributes, Bad, Context, Item, OtlpOptions, Rejected, Span, SpanKind, Surroundings};

/// Order of what one coarse clock puts at the same time.
const RECEIVED: u64 = 0;
const LOCAL: u64 = 1;
const SENT: u64 = 2;
const ANSWERED: u64 = 3;

/// The events of a span: one at its start; of a batch of messages one for each message; with
/// [`OtlpOptions::responses`] another one at the end of a request.
///
/// # Errors
/// The code and reason why it is no event: it has no start.
pub fn span_events(
    span: Span,
    around: &Surroundings,
    options: &OtlpOptions,
) -> Result<Vec<EventRecord>, Bad> {
    let time = span.start;
    if time == 0 {
        // Its end says nothing of when it began, and others may have begun in between.
        return Err((
            "no_time",
            format!("span '{}' ({}) has no start", span.name, span.context.message_id()),
        ));
    }
    let mut out = Vec::new();
    let role = semconv::role(&span);
    // A receiver that waits for messages has them when the wait is over.
    let waits = matches!(role, Role::Receive(_)) && semconv::waits_for_messages(&span);
    let time = if waits { time.max(span.end) } else { time };
    let mut template = record(&span, around, options, time);
    // Links that are no messages tell an order too.
    let taken: &[Context] = if let Role::Receive(contexts) = &role { contexts } else { &[] };
    let links: Vec<Value> = span
        .links
        .iter()
        .filter(|link| !taken.contains(&link.context))
        .map(|link| link_value(&link.context, &link.attributes))
        .collect();
    if !links.is_empty() {
        template.attrs.insert("links".to_owned(), Value::Array(links));
    }
    match role {
        Role::Local => {
            template.kind = Kind::Local;
            template.type_ = Some(span.name.clone());
            template.seq = seq_at(time, LOCAL);
            out.push(template);
        }
        Role::Send => {
            template.kind = Kind::Send;
            template.seq = seq_at(time, SENT);
            template.msg_id = Some(span.context.message_id());
            template.from = Some(template.actor.clone());
            template.to = Some(semconv::sent_to(&span));
            template.type_ = Some(semconv::message_type(&span));
            out.push(template.clone());
            if options.responses && span.kind == SpanKind::Client && span.end > time {
                out.push(response(template, &span, Kind::Receive, &span.context));
            }
        }
        Role::Receive(contexts) => {
            template.kind = Kind::Receive;
            template.seq = seq_at(time, RECEIVED);
            template.from = Some(semconv::received_from(&span));
            template.to = Some(template.actor.clone());
            template.type_ = Some(semconv::message_type(&span));
            if contexts.is_empty() && span.kind == SpanKind::Server {
                template.external = Some(true);
            }
            let asked = contexts.first().cloned();
            receives(template.clone(), &span, contexts, &mut out)?;
            if let (true, SpanKind::Server, Some(asked)) = (options.responses, span.kind, asked)
                && span.end > time
            {
                out.push(response(template, &span, Kind::Send, &asked));
            }
        }
    }
    Ok(out)
}

/// Most bytes that the events of one span may come to: each message of a batch says all that the span says.
const MOST_BYTES: usize = 8 << 20;

/// One event for each message; the first has the span's own key.
///
/// # Errors
/// When the span says too much to say it for each message.
fn receives(
    template: EventRecord,
    span: &Span,
    contexts: Vec<Context>,
    out: &mut Vec<EventRecord>,
) -> Result<(), Bad> {
    if contexts.is_empty() {
        out.push(template);
        return Ok(());
    }
    let batch = contexts.len();
    if batch > 1 {
        let each = serde_json::to_vec(&template).map_or(0, |json| json.len());
        if each.saturating_mul(batch) > MOST_BYTES {
            let reason =
                format!("it says {each} bytes of each of {batch} messages, more than {MOST_BYTES} in all");
            return Err(("too_wide", reason));
        }
    }
    for (n, context) in contexts.into_iter().enumerate() {
        let mut record = template.clone();
        record.msg_id = Some(context.message_id());
        if n > 0 {
            record.attrs.insert("key".to_owned(), Value::from(format!("{}#{n}", span.context.message_id())));
        }
        if batch > 1 {
            record.attrs.insert("batch".to_owned(), Value::from(batch));
        }
        let link = span.links.iter().find(|link| link.context == context);
        if let Some(link) = link.filter(|link| !link.attributes.is_empty()) {
            record.attrs.insert("link".to_owned(), Value::Object(link.attributes.clone()));
        }
        out.push(record);
    }
    Ok(())
}

/// The answer to a request, at the end of either side's span.
fn response(mut record: EventRecord, span: &Span, kind: Kind, asked: &Context) -> EventRecord {
    record.kind = kind;
    record.seq = seq_at(span.end, if kind == Kind::Receive { RECEIVED } else { ANSWERED });
    record.msg_id = Some(format!("{}:response", asked.message_id()));
    std::mem::swap(&mut record.from, &mut record.to);
    record.time = Some(Value::from(rfc3339(span.end)));
    record.fields = None;
    record.attrs.remove("links");
    record.attrs.insert("key".to_owned(), Value::from(format!("{}#end", span.context.message_id())));
    record
}

/// What all events of a span have in common.
fn record(span: &Span, around: &Surroundings, options: &OtlpOptions, time: u64) -> EventRecord {
    let mut record = EventRecord::new(actor(&span.attributes, around, options), 1, Kind::Local);
    record.time = Some(Value::from(rfc3339(time)));
    if !span.attributes.is_empty() {
        record.fields = Some(Value::Object(span.attributes.clone()));
    }
    let attrs = &mut record.attrs;
    let mut put = |name: &str, value: Value| attrs.insert(name.to_owned(), value);
    // Client and server share an id in Zipkin; what they did is not the same.
    let side = if span.shared { "#shared" } else { "" };
    put("key", Value::from(format!("{}{side}", span.context.message_id())));
    put("trace_id", Value::from(span.context.trace.clone()));
    put("span_id", Value::from(span.context.span.clone()));
    if let Some(parent) = &span.parent {
        put("parent_span_id", Value::from(parent.clone()));
    }
    put("span_name", Value::from(span.name.clone()));
    put("span_kind", Value::from(span.kind.as_str()));
    if span.start > 0 && span.end >= span.start {
        put("duration_ns", Value::from(span.end - span.start));
    }
    for (name, value) in &span.extra {
        put(name, value.clone());
    }
    surroundings(&mut record, around);
    record
}

/// Keeps what is said of the process and of the instrumentation.
pub(super) fn surroundings(record: &mut EventRecord, around: &Surroundings) {
    if !around.scope.is_empty() {
        record.attrs.insert("scope".to_owned(), Value::from(around.scope.clone()));
    }
    for (name, attributes) in [("scope_attributes", &around.scope_attributes), ("resource", &around.resource)]
    {
        if !attributes.is_empty() {
            record.attrs.insert(name.to_owned(), Value::Object(attributes.clone()));
        }
    }
}

fn link_value(context: &Context, attributes: &Attributes) -> Value {
    let mut map = Map::new();
    map.insert("trace_id".to_owned(), Value::from(context.trace.clone()));
    map.insert("span_id".to_owned(), Value::from(context.span.clone()));
    if !attributes.is_empty() {
        map.insert("attributes".to_owned(), Value::Object(attributes.clone()));
    }
    Value::Object(map)
}

/// Appends the events of one element, or why it is none.
pub(super) fn take(
    events: Result<Vec<EventRecord>, Bad>,
    out: &mut Vec<Item>,
    place: impl FnOnce() -> (String, String),
) {
    match events {
        Ok(events) => out.extend(events.into_iter().map(|record| Item::Event(Box::new(record)))),
        Err(why) => {
            let (path, raw) = place();
            out.push(Item::Rejected(Rejected { path, why: why.into(), raw }));
        }
    }
}
