//! What a mapper gives back, and what a command line may tell it.

use std::str::Utf8Error;

use demi_schemas::EventRecord;

use crate::read::lines::Line;

/// What a command line may say beside a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The pattern of a text log, in place of the mapping's and of the file's own.
    pub parser: Option<String>,
    /// The delimiter of executions, in place of the mapping's and of the file's own.
    pub delimiter: Option<String>,
    /// Whether several sources are mapped: executions of delimited files are then named after their file too.
    pub several: bool,
}

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

/// Consecutive lines that are one record, or one line that is none. Empty lines between records are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The first line; its length is that of all of them.
    pub line: Line,
    /// How many lines.
    pub lines: u64,
    /// Their bytes.
    pub raw: Vec<u8>,
    /// Name of the execution, where the source holds several.
    pub execution: Option<String>,
    /// What they became.
    pub outcome: Outcome,
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
