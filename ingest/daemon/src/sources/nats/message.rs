//! What a message of a queue holds.

use bytes::Bytes;
use demi_schemas::EventRecord;
use serde::Deserialize;

use crate::batch::{Item, Outcome};
use crate::sources::batches::of_system;
use demi_formats::otlp::{OtlpOptions, Told};
use demi_formats::request;

/// What messages hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Event records, one JSON object a line.
    #[default]
    Events,
    /// A document of OTLP JSON.
    OtlpJson,
}

/// What a message holds; the offset of its items is its number in the stream. Lines longer than `limit` are refused.
#[must_use]
pub fn read(payload: &Bytes, sequence: u64, format: Format, system: &str, limit: usize) -> Vec<Item> {
    let mut items = Vec::new();
    read_into(payload, sequence, format, (system, limit), &mut |item| {
        items.push(item);
        true
    });
    items
}

/// [`read`], one item after the other, as long as somebody listens.
pub(super) fn read_into(
    payload: &Bytes,
    sequence: u64,
    format: Format,
    (system, limit): (&str, usize),
    each: &mut dyn FnMut(Item) -> bool,
) {
    let mut push = |line: u64, outcome: Outcome| each(Item { offset: sequence, line, outcome });
    let rejected =
        |raw: Bytes, code: &str, reason: String| Outcome::Rejected { raw, code: code.to_owned(), reason };
    match format {
        Format::Events => {
            for (n, line) in payload.split(|b| *b == b'\n').enumerate() {
                let number = n as u64 + 1;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let raw = || payload.slice_ref(line);
                if line.len() > limit {
                    let reason =
                        format!("the line is {} bytes long, more than the limit of {limit}", line.len());
                    if !push(number, rejected(raw(), "too_long", reason)) {
                        return;
                    }
                    continue;
                }
                let listens = push(
                    number,
                    match EventRecord::parse(line) {
                        Ok(record) => of_system(&record, system),
                        Err(error) => rejected(raw(), error.code(), error.to_string()),
                    },
                );
                if !listens {
                    return;
                }
            }
        }
        Format::OtlpJson => match request::check(payload) {
            Ok(_) => request::read(payload, &OtlpOptions::default(), limit, &mut |told| {
                let outcome = match told {
                    Told::Event(record) => of_system(&record, system),
                    Told::Refused(refused) => {
                        let reason = refused.sentence();
                        rejected(Bytes::from(refused.raw), refused.code, reason)
                    }
                };
                push(1, outcome)
            }),
            Err(error) => {
                push(1, rejected(payload.clone(), "not_otlp", error.to_string()));
            }
        },
    }
}
