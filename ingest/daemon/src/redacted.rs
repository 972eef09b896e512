//! Redaction of batches, before they are spooled.

use bytes::Bytes;
use demi_schemas::EventRecord;

use super::batch::{Batch, Content, Item, Outcome};
use demi_formats::Redaction;
use demi_formats::read::lines::Lines;

/// The batch as it may be written. Lines become items, each with its own place, for their lengths change.
pub(super) fn redacted(batch: &Batch, redact: &Redaction) -> Batch {
    let system = &*batch.origin.system;
    let content = match &batch.content {
        Content::Nothing => Content::Nothing,
        Content::Items(items) => {
            let one = |item: &Item| Item { outcome: outcome(redact, system, &item.outcome), ..item.clone() };
            Content::Items(items.iter().map(one).collect())
        }
        Content::Lines { offset, line, bytes } => {
            let lines = Lines::new(bytes, *offset, *line, usize::MAX);
            let told = lines.filter(|(_, raw)| !bytes[raw.clone()].trim_ascii().is_empty());
            let item = |(line, raw): (demi_formats::read::lines::Line, std::ops::Range<usize>)| Item {
                offset: line.offset,
                line: line.number,
                outcome: record(redact, system, without_mark(&bytes[raw], line.offset)),
            };
            Content::Items(told.map(item).collect())
        }
    };
    Batch { content, ..batch.clone() }
}

/// A line without the byte order mark that a file may begin with.
fn without_mark(line: &[u8], offset: u64) -> &[u8] {
    match offset {
        0 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
        _ => line,
    }
}

fn outcome(redact: &Redaction, system: &str, outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Record(json) => record(redact, system, json),
        Outcome::Rejected { raw, code, reason } => rejected(redact, system, (raw, code, reason)),
    }
}

/// A record as it may be written, or what may be kept of what is none.
fn record(redact: &Redaction, system: &str, json: &[u8]) -> Outcome {
    let parsed = EventRecord::parse(json).map_err(|error| (error.code(), error.to_string()));
    let written = parsed.and_then(|mut record| {
        redact.record(system, &mut record);
        serde_json::to_vec(&record).map_err(|error| ("not_json", error.to_string()))
    });
    match written {
        Ok(json) => Outcome::Record(json.into()),
        Err((code, reason)) => rejected(redact, system, (json, code, &reason)),
    }
}

fn rejected(redact: &Redaction, system: &str, (raw, code, reason): (&[u8], &str, &str)) -> Outcome {
    Outcome::Rejected {
        raw: Bytes::from(redact.raw(system, raw)),
        code: code.to_owned(),
        reason: redact.text(system, reason).into_owned(),
    }
}
