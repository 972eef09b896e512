//! Redaction of batches, before they are spooled.

use std::ops::Range;

use demi_schemas::EventRecord;

use super::batch::{Batch, Content, Item};
use demi_formats::read::lines::{Line, Lines};
use demi_formats::{Redaction, Rejection};

/// The batch as it may be written. Lines become items, each with its own place, for their lengths change.
pub(super) fn redacted(batch: &Batch, redact: &Redaction) -> Batch {
    let system = &*batch.origin.system;
    let content = match &batch.content {
        Content::Nothing => Content::Nothing,
        Content::Items(items) => {
            Content::Items(items.iter().map(|item| item_of(redact, system, item.clone())).collect())
        }
        Content::Lines { offset, line, bytes } => {
            let lines = Lines::new(bytes, *offset, *line, usize::MAX);
            let told = lines.filter(|(_, raw)| !bytes[raw.clone()].trim_ascii().is_empty());
            let item = |(line, raw): (Line, Range<usize>)| {
                let bytes = bytes.slice_ref(line.text(&bytes[raw]));
                item_of(
                    redact,
                    system,
                    Item { offset: line.offset, line: line.number, bytes, rejected: None },
                )
            };
            Content::Items(told.map(item).collect())
        }
    };
    Batch { content, ..batch.clone() }
}

/// An item as it may be written: of what is no record, what may be kept of it.
fn item_of(redact: &Redaction, system: &str, item: Item) -> Item {
    let why = match item.rejected {
        Some(why) => why,
        None => match record(redact, system, &item.bytes) {
            Ok(json) => return Item { bytes: json.into(), rejected: None, ..item },
            Err(why) => why,
        },
    };
    let why = why.reworded(|reason| redact.text(system, reason).into_owned());
    Item { bytes: redact.raw(system, &item.bytes).into(), rejected: Some(why), ..item }
}

/// A record as it may be written.
fn record(redact: &Redaction, system: &str, json: &[u8]) -> Result<Vec<u8>, Rejection> {
    let mut record = EventRecord::parse(json)?;
    redact.record(system, &mut record);
    serde_json::to_vec(&record).map_err(|error| Rejection::new("not_json", error.to_string()))
}
