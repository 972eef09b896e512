//! What log files are made of: from lines or documents to records.

pub(crate) mod csv;
pub(crate) mod dinv;
pub(crate) mod edn;
pub(crate) mod itf;
pub(crate) mod logfmt;
mod quoted;
mod record;
pub(crate) mod tla;

use serde_json::Value;

pub(crate) use self::record::{Parts, Record};

/// What a line or a part of a document is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decoded<'a> {
    /// A record.
    Record(Record<'a>),
    /// No record, and that is as it should be; why.
    Nothing(&'static str),
    /// No record, and it should be one.
    Bad {
        /// A short stable word.
        code: &'static str,
        /// A sentence.
        reason: String,
    },
}

/// One JSON object.
pub(crate) fn json_line(text: &str) -> Decoded<'static> {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => Decoded::Record(Record::Json(value)),
        Ok(_) => Decoded::Bad { code: "not_json", reason: "the line is JSON, but no object".into() },
        Err(error) => Decoded::Bad { code: "not_json", reason: format!("no JSON object: {error}") },
    }
}
