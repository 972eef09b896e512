//! What OTLP and Zipkin have in common.

use super::kept::Part;
use super::out::Out;
use super::scan::Level;
use crate::fate::{Events, Fate};
use crate::otlp::Bad;
use demi_schemas::EventRecord;

/// Where something stands in its document, such as `resourceSpans[0].scopeSpans[1].spans[2]`.
pub(super) fn place(path: &[Level]) -> String {
    let mut text = String::new();
    for level in path {
        if level.array {
            text.push_str(&format!("[{}]", level.index));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&level.key);
        }
    }
    if text.is_empty() { "[0]".to_owned() } else { text }
}

/// No event, and why.
pub(super) fn rejected(place: &str, code: &'static str, reason: &str) -> Fate<Events> {
    Fate::rejected(code, if place.is_empty() { reason.to_owned() } else { format!("{place}: {reason}") })
}

/// What became of an element.
pub(super) fn done(records: Result<Vec<EventRecord>, Bad>, part: &Part, place: &str) -> Fate<Events> {
    match records {
        Ok(mut records) => {
            records.iter_mut().for_each(|record| record.line = Some(part.line.number));
            Fate::Row(Events { records, warnings: Vec::new() })
        }
        Err((code, reason)) => rejected(place, code, &reason),
    }
}

/// Gives what could not be read.
pub(super) fn broken(part: Part, reason: String, out: &mut Out<'_>) {
    out.give(part, Fate::rejected("not_json", reason));
}
