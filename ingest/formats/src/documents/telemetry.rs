//! What OTLP and Zipkin have in common.

use super::kept::Part;
use super::out::Out;
use super::scan::Level;
use crate::otlp::Item;
use crate::outcome::Outcome;

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
pub(super) fn rejected(place: &str, code: &'static str, reason: &str) -> Outcome {
    let reason = if place.is_empty() { reason.to_owned() } else { format!("{place}: {reason}") };
    Outcome::Rejected { code, reason }
}

/// What became of an element.
pub(super) fn done(items: Result<Vec<Item>, (&'static str, String)>, part: &Part, place: &str) -> Outcome {
    let items = match items {
        Ok(items) => items,
        Err((code, reason)) => return rejected(place, code, &reason),
    };
    let records = items.into_iter().filter_map(|item| match item {
        Item::Event(mut event) => {
            event.line = Some(part.line.number);
            Some(*event)
        }
        Item::Rejected(_) => None,
    });
    Outcome::Events { records: records.collect(), warnings: Vec::new() }
}

/// Gives what could not be read.
pub(super) fn broken(part: Part, reason: String, out: &mut Out<'_>) {
    out.done(part, Outcome::Rejected { code: "not_json", reason });
}
