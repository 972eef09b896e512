//! What is kept of a span besides its event, alike from both encodings.

use serde_json::{Value, json};

use super::Attributes;
use super::clock::rfc3339;

/// A status as it is kept.
pub(super) fn status_value(code: i64, message: &str) -> Value {
    let code = match code {
        1 => Value::from("ok"),
        2 => Value::from("error"),
        other => Value::from(other),
    };
    if message.is_empty() { json!({"code": code}) } else { json!({"code": code, "message": message}) }
}

/// An event within a span as it is kept.
pub(super) fn span_event(time: u64, name: &str, attributes: Attributes) -> Value {
    if attributes.is_empty() {
        json!({"time": rfc3339(time), "name": name})
    } else {
        json!({"time": rfc3339(time), "name": name, "attributes": attributes})
    }
}
