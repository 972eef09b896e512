//! What a message of a queue holds.

use bytes::Bytes;
use demi_schemas::EventRecord;
use serde::Deserialize;

use crate::batch::Item;
use crate::sources::batches::of_system;
use demi_formats::otlp::{OtlpOptions, Told};
use demi_formats::{Rejection, request};

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
    let mut push = |line: u64, (bytes, rejected)| each(Item { offset: sequence, line, bytes, rejected });
    match format {
        Format::Events => {
            for (n, line) in payload.split(|b| *b == b'\n').enumerate() {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let rejected = |why: Rejection| (payload.slice_ref(line), Some(why));
                let made = if line.len() > limit {
                    let reason =
                        format!("the line is {} bytes long, more than the limit of {limit}", line.len());
                    rejected(Rejection::new("too_long", reason))
                } else {
                    match EventRecord::parse(line) {
                        Ok(record) => of_system(&record, system),
                        Err(error) => rejected(error.into()),
                    }
                };
                if !push(n as u64 + 1, made) {
                    return;
                }
            }
        }
        Format::OtlpJson => match request::check(payload) {
            Ok(_) => request::read(payload, &OtlpOptions::default(), limit, &mut |told| {
                let made = match told {
                    Told::Event(record) => of_system(&record, system),
                    Told::Refused(refused) => (Bytes::from(refused.raw.clone()), Some(refused.rejection())),
                };
                push(1, made)
            }),
            Err(error) => {
                push(1, (payload.clone(), Some(Rejection::new("not_otlp", error.to_string()))));
            }
        },
    }
}
