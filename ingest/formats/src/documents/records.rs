//! Documents of records: an array of them, one alone, or an array somewhere inside.

use serde_json::Value;

use super::kept::Part;
use super::out::Out;
use super::scan::{Action, Handler, Level, Tag};
use crate::fate::{Fate, not_utf8};
use crate::formats::json_record;

/// The value of a part, or why it has none.
pub(super) fn value(part: &Part) -> Result<Value, (&'static str, String)> {
    if part.line.overlong.is_some() {
        let reason = format!(
            "this part of the document is {} bytes long, more than the limit; its first {} bytes are kept",
            part.line.length,
            part.raw.len()
        );
        return Err(("too_long", reason));
    }
    if let Err(error) = std::str::from_utf8(&part.raw) {
        return Err(("not_utf8", not_utf8(&part.raw, error)));
    }
    serde_json::from_slice(&part.raw).map_err(|error| {
        let text = error.to_string();
        // The place would count from the part's beginning.
        ("not_json", text.split(" at line ").next().unwrap_or_default().to_owned())
    })
}

/// Finds the records of documents.
#[derive(Default)]
pub(super) struct Records {
    /// Where the array is, if it is inside: the pointer and its parts.
    pointer: Option<(String, Vec<String>)>,
    /// Whether the array was in the document at hand.
    found: bool,
    /// Whether a record was.
    given: bool,
}

impl Records {
    /// Records in the array at a JSON pointer, else in the document's own.
    pub(super) fn new(pointer: Option<&str>) -> Self {
        let pointer = pointer.map(|text| {
            let names = text.split('/').skip(1);
            (text.to_owned(), names.map(|name| name.replace("~1", "/").replace("~0", "~")).collect())
        });
        Records { pointer, ..Records::default() }
    }
}

impl Handler for Records {
    fn begin(&mut self, path: &[Level], first: u8) -> Action {
        let names = self.pointer.as_ref().map_or(&[][..], |(_, names)| names);
        if path.len() > names.len() {
            return Action::Capture(Tag::Record);
        }
        if self.pointer.is_none() {
            return if first == b'[' { Action::Enter } else { Action::Capture(Tag::Record) };
        }
        // The levels further out were asked about before.
        let leads = path.len().checked_sub(1).is_none_or(|last| match (path.get(last), names.get(last)) {
            (Some(level), Some(name)) if level.array => level.index.to_string() == *name,
            (Some(level), Some(name)) => level.key == *name,
            _ => false,
        });
        let here = path.len() == names.len();
        match (leads, here, first) {
            (true, true, b'[') => {
                self.found = true;
                Action::Enter
            }
            (true, false, b'[' | b'{') => Action::Enter,
            _ => Action::Skip,
        }
    }

    fn end(&mut self, _: &mut Out<'_>) {}

    fn captured(&mut self, _: Tag, _: &[Level], part: Part, out: &mut Out<'_>) {
        self.given = true;
        let fate = match value(&part) {
            Ok(record @ (Value::Object(_) | Value::Array(_))) => json_record(record),
            Ok(_) => Fate::rejected("not_json", "this part of the document is no object or array"),
            Err(error) => Fate::Quarantined(error.into()),
        };
        out.give(part, fate);
    }

    fn document(&mut self, part: Part, out: &mut Out<'_>) {
        if let Some((pointer, _)) = self.pointer.as_ref().filter(|_| !self.found) {
            out.give(part, Fate::rejected("not_json", format!("there is no array at {pointer}")));
        } else if !self.given {
            out.give(part, Fate::LeftOut("no records"));
        }
        (self.found, self.given) = (false, false);
    }

    fn broken(&mut self, part: Part, reason: String, out: &mut Out<'_>) {
        (self.found, self.given) = (false, false);
        out.give(part, Fate::rejected("not_json", reason));
    }
}
