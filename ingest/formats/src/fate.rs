//! What becomes of what a source holds: rows, nothing, or a reason against it.

use std::borrow::Cow;
use std::str::Utf8Error;

use demi_schemas::{EventRecord, RecordError};

/// The words for what is wrong ([`Rejection::code`]), in alphabetical order. Counters begin at 0 for each.
pub const REASONS: [&str; 32] = [
    "bad_attribute",
    "bad_body",
    "bad_id",
    "bad_kind",
    "bad_number",
    "bad_shape",
    "clock",
    "conflict",
    "execution",
    "header",
    "held",
    "no_match",
    "no_process",
    "no_time",
    "not_csv",
    "not_edn",
    "not_json",
    "not_logfmt",
    "not_otlp",
    "not_protobuf",
    "not_telemetry",
    "not_utf8",
    "not_wrapped",
    "not_xml",
    "nuls",
    "reserved",
    "rule",
    "too_long",
    "too_many_actors",
    "too_wide",
    "truncated",
    "unknown_kind",
];

/// What becomes of a piece of a log, at every step from its decoder to the quarantine. `T` is what a row has been made of it so far.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate<T> {
    /// It goes on its way to the rows.
    Row(T),
    /// No event, and that is as it should be; why.
    LeftOut(&'static str),
    /// No event, and it should be one: it goes to quarantine.
    Quarantined(Rejection),
}

/// Why something is no event and goes to quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    code: Cow<'static, str>,
    reason: String,
}

/// Events of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// The events.
    pub records: Vec<EventRecord>,
    /// What is odd about them.
    pub warnings: Vec<String>,
}

impl Rejection {
    /// A rejection with a short, stable word for what is wrong, which is one of [`REASONS`], and a sentence.
    pub fn new(code: &'static str, reason: impl Into<String>) -> Self {
        debug_assert!(REASONS.contains(&code), "'{code}' is no word that is known");
        Rejection { code: code.into(), reason: reason.into() }
    }

    /// A rejection that was written down, perhaps by another version.
    pub fn read(code: String, reason: String) -> Self {
        Rejection { code: code.into(), reason }
    }

    /// A short, stable word for what is wrong (`not_json`, `rule`, …).
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What is wrong, as a sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The same word with another sentence, made of the one there is.
    #[must_use]
    pub fn reworded(self, reword: impl FnOnce(&str) -> String) -> Self {
        Rejection { reason: reword(&self.reason), ..self }
    }
}

impl From<(&'static str, String)> for Rejection {
    fn from((code, reason): (&'static str, String)) -> Self {
        Rejection::new(code, reason)
    }
}

impl From<RecordError> for Rejection {
    fn from(error: RecordError) -> Self {
        Rejection::new(error.code(), error.to_string())
    }
}

impl<T> Fate<T> {
    /// No event, with a short, stable word for what is wrong, and a sentence.
    pub fn rejected(code: &'static str, reason: impl Into<String>) -> Self {
        Fate::Quarantined(Rejection::new(code, reason))
    }
}

impl<T, E: Into<Rejection>> From<Result<T, E>> for Fate<T> {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(|error| Fate::Quarantined(error.into()), Fate::Row)
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_word_has_a_row_in_the_documents() {
        let page = include_str!("../../../docs/troubleshooting.md");
        let table = page.split("| word | reason | what to do |").nth(1).unwrap();
        let rows = table
            .lines()
            .skip(1)
            .skip_while(|line| line.starts_with("| ---"))
            .take_while(|l| l.starts_with('|'));
        let words = |row: &str| -> Vec<String> {
            let first = row.split('|').nth(1).unwrap();
            first.split(',').map(|word| word.trim().trim_matches('`').to_owned()).collect()
        };
        let told: BTreeSet<String> = rows.flat_map(words).collect();
        assert_eq!(told, REASONS.iter().map(|word| (*word).to_owned()).collect());
    }
}
