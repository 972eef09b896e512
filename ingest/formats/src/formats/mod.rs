//! What log files are made of: from lines or documents to records.

pub(crate) mod csv;
pub(crate) mod dinv;
pub(crate) mod edn;
pub(crate) mod itf;
pub(crate) mod logfmt;
mod quoted;
mod record;
pub(crate) mod tla;

use demi_common::text::exact_numbers;
use serde_json::Value;

use crate::fate::{Events, Fate};

pub(crate) use self::record::{Parts, Record};

/// What a decoder makes of a line or a part of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decoded<'a> {
    /// A record for the rules of a mapping.
    Record(Record<'a>),
    /// Events, where the format itself says what they are.
    Events(Events),
}

/// A record in JSON.
pub(crate) fn json_record<'a>(value: Value) -> Fate<Decoded<'a>> {
    Fate::Row(Decoded::Record(Record::Json(value)))
}

/// One JSON object.
pub(crate) fn json_line(text: &str) -> Fate<Decoded<'static>> {
    match serde_json::from_str::<Value>(&exact_numbers(text)) {
        Ok(value @ Value::Object(_)) => json_record(value),
        Ok(_) => Fate::rejected("not_json", "the line is JSON, but no object"),
        Err(error) => Fate::rejected("not_json", format!("no JSON object: {error}")),
    }
}
