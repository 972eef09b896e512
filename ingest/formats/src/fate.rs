//! What becomes of what a source holds: rows, nothing, or a reason against it.

use std::borrow::Cow;
use std::str::Utf8Error;

use demi_schemas::{EventRecord, RecordError};

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
    /// A rejection with a short, stable word for what is wrong, and a sentence.
    pub fn new(code: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        Rejection { code: code.into(), reason: reason.into() }
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
    pub fn rejected(code: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
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
