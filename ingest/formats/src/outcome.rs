//! What becomes of what a source holds: events, nothing, or a reason against it.

use std::str::Utf8Error;

use demi_schemas::EventRecord;

/// What became of a line, or of the lines of one record.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Events.
    Events {
        /// The events.
        records: Vec<EventRecord>,
        /// What is odd about them.
        warnings: Vec<String>,
    },
    /// No event, and that is as it should be.
    Skipped(&'static str),
    /// No event, and it should be one.
    Rejected {
        /// A short, stable word.
        code: &'static str,
        /// A sentence.
        reason: String,
    },
}

/// Why bytes are no text, with the byte.
pub(crate) fn not_utf8(bytes: &[u8], error: Utf8Error) -> String {
    let at = error.valid_up_to();
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!(
        "not UTF-8: byte {} is 0x{byte:02X}; if it is of another encoding, say so with --encoding",
        at + 1
    )
}
