//! A log record as an event.
//!
//! A collector that ships lines of event records puts each into the body of a log record, as text or parsed, or
//! spreads it over the attributes. Such a record is taken as it is.

use demi_common::Recent;
use demi_schemas::event::RecordError;
use demi_schemas::{EventRecord, Kind};
use serde_json::{Map, Value};

use super::actor::actor;
use super::clock::{rfc3339, seq_at};
use super::spans::surroundings;
use super::{Attributes, Bad, Log, OtlpOptions, Surroundings};
use crate::record_digest;

/// The event of a log record: the event record it holds, else something local with the body as `payload`.
///
/// # Errors
/// The code and reason why it is no event: a broken event record, or no time.
pub fn log_event(log: Log, around: &Surroundings, options: &OtlpOptions) -> Result<EventRecord, Bad> {
    if let Some(record) = native(&log) {
        return record.map_err(|e| (e.code(), format!("an event record in a log record: {e}")));
    }
    let time = if log.time == 0 { log.observed } else { log.time };
    if time == 0 {
        return Err(("no_time", "the log record has no time".to_owned()));
    }
    let mut record = EventRecord::new(actor(&log.attributes, around, options), seq_at(time, 1), Kind::Local);
    record.time = Some(Value::from(rfc3339(time)));
    record.type_ = Some(if log.event_name.is_empty() { "log".to_owned() } else { log.event_name });
    record.payload = match log.body {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(value) => Some(value.to_string()),
    };
    if !log.attributes.is_empty() {
        record.fields = Some(Value::Object(log.attributes));
    }
    if !log.severity.is_empty() {
        record.attrs.insert("severity".to_owned(), Value::from(log.severity));
    }
    if let Some(context) = log.context {
        record.attrs.insert("trace_id".to_owned(), Value::from(context.trace));
        record.attrs.insert("span_id".to_owned(), Value::from(context.span));
    }
    surroundings(&mut record, around);
    Ok(record)
}

/// The event record that the log record holds, if it holds one.
fn native(log: &Log) -> Option<Result<EventRecord, RecordError>> {
    match &log.body {
        Some(Value::String(text)) if text.trim_start().starts_with('{') => {
            let map: Map<String, Value> = serde_json::from_str(text).ok()?;
            is_event(&map).then(|| EventRecord::parse(text.trim().as_bytes()))
        }
        Some(Value::Object(map)) if is_event(map) => Some(parsed(map)),
        _ if is_event(&log.attributes) => Some(parsed(&log.attributes)),
        _ => None,
    }
}

fn is_event(map: &Attributes) -> bool {
    ["actor", "seq", "kind"].iter().all(|name| map.contains_key(*name))
}

fn parsed(map: &Attributes) -> Result<EventRecord, RecordError> {
    let text = serde_json::to_vec(map).map_err(|e| RecordError::Json(e.to_string()))?;
    EventRecord::parse(&text)
}

/// Gives log records that say the same at the same time, in one request, different keys: the second is no repetition
/// of the first, while a request that is sent again has the same keys again.
#[derive(Default)]
pub(crate) struct Repeats {
    /// How often each was said, by its digest.
    counts: Recent<u64, STRETCH>,
}

/// Log records after which those of an earlier such stretch are forgotten. Records that are equal have the same time and stand near
/// each other.
const STRETCH: usize = 1 << 19;

impl Repeats {
    /// The event of a log record in JSON.
    pub(crate) fn json(
        &mut self,
        value: &Value,
        around: &Surroundings,
        options: &OtlpOptions,
    ) -> Result<EventRecord, Bad> {
        self.event(super::json::read_log(value)?, around, options)
    }

    /// The event of a log record.
    pub(super) fn event(
        &mut self,
        log: Log,
        around: &Surroundings,
        options: &OtlpOptions,
    ) -> Result<EventRecord, Bad> {
        let mut record = log_event(log, around, options)?;
        self.count(&mut record);
        Ok(record)
    }

    /// Tells a record whose sequence number was taken from a clock from those before it that say the same.
    pub(crate) fn count(&mut self, record: &mut EventRecord) {
        if !demi_schemas::event::is_clock_seq(record.seq) {
            return;
        }
        let digest = record_digest(record);
        let count = 1 + self.counts.get(digest).copied().unwrap_or(0);
        if count > 1 {
            record.attrs.insert("repeat".to_owned(), Value::from(count));
        }
        self.counts.insert(digest, count);
    }
}
