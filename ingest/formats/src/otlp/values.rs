//! Values that spans of several formats have alike.

use serde_json::Value;

/// Why something is no event: a code, and a sentence.
pub type Bad = (&'static str, String);

/// An id that a span must have.
pub(super) fn required(id: Option<String>, name: &str) -> Result<String, Bad> {
    id.ok_or_else(|| ("bad_id", format!("'{name}' is missing, no text, or all zero")))
}

/// Microseconds as nanoseconds; 0 where there are none.
pub(super) fn micros(span: &Value, name: &str) -> Result<u64, Bad> {
    match span.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(found) => {
            let whole = found.as_u64().or_else(|| found.as_str()?.parse().ok());
            // Some reporters write fractions.
            let rounded = || found.as_f64().filter(|n| (0.0..1e16).contains(n)).map(|n| n as u64);
            let micros = whole.or_else(rounded).and_then(|n| n.checked_mul(1000));
            micros.ok_or_else(|| ("bad_number", format!("'{name}' is {found}, not a number of microseconds")))
        }
    }
}
