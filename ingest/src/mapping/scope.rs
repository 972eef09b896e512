//! What templates can ask for, and what they find: values of a record by name, which are not copied.

use std::borrow::Cow;

use serde_json::Value;

use crate::formats::Record;

/// A value that a template found. What the record holds is not copied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found<'a> {
    Text(Cow<'a, str>),
    /// Anything but a text.
    Json(Cow<'a, Value>),
}

impl<'a> Found<'a> {
    /// The value of an element of a record; `null` has none.
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(Found::Text(Cow::Borrowed(text))),
            other => Some(Found::Json(Cow::Borrowed(other))),
        }
    }

    /// As text: strings as they are, everything else as JSON; `null` is no text.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Found::Text(text) => Some(text),
            Found::Json(value) if value.is_null() => None,
            Found::Json(value) => Some(Cow::Owned(value.to_string())),
        }
    }

    /// As a JSON value.
    pub(crate) fn value(self) -> Value {
        match self {
            Found::Text(text) => Value::String(text.into_owned()),
            Found::Json(value) => value.into_owned(),
        }
    }
}

impl From<Value> for Found<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Found::Text(Cow::Owned(text)),
            other => Found::Json(Cow::Owned(other)),
        }
    }
}

impl From<u64> for Found<'_> {
    fn from(number: u64) -> Self {
        Found::Json(Cow::Owned(Value::from(number)))
    }
}

impl<'a> From<&'a str> for Found<'a> {
    fn from(text: &'a str) -> Self {
        Found::Text(Cow::Borrowed(text))
    }
}

/// What a template can ask for: the record, and what is known without it.
pub(crate) struct Scope<'a> {
    /// The record.
    pub(crate) record: &'a Record<'a>,
    /// Groups of the rule's conditions; they hide the record's. Of equal names the last counts.
    pub(crate) groups: &'a [(&'a str, Cow<'a, str>)],
    /// Values of names that begin with `@`.
    pub(crate) known: &'a dyn Fn(&str) -> Option<Found<'a>>,
}

impl<'a> Scope<'a> {
    /// The value of a name; `null`, and what is not there, have none.
    pub(crate) fn get(&self, path: &str) -> Option<Found<'a>> {
        if let Some(name) = path.strip_prefix('@') {
            return (self.known)(name);
        }
        if let Some((_, text)) = self.groups.iter().rfind(|(name, _)| *name == path) {
            return Some(Found::Text(Cow::Borrowed(text)));
        }
        let record: &'a Record<'a> = self.record;
        match record {
            Record::Json(value) => find(value, path).and_then(Found::of),
            Record::Parts(_) if path == "." => Some(Found::from(record.value())),
            Record::Parts(parts) => parts.get(&name_of(path)?).map(Found::from),
        }
    }
}

/// The name that a path asks a record of texts for: a JSON pointer of one step is a name too.
fn name_of(path: &str) -> Option<Cow<'_, str>> {
    Some(match path.strip_prefix('/') {
        // In a pointer `~1` stands for `/` and `~0` for `~`. A second step leads into a text, where nothing is.
        Some(step) if step.contains('/') => return None,
        Some(step) if step.contains('~') => Cow::Owned(step.replace("~1", "/").replace("~0", "~")),
        Some(step) => Cow::Borrowed(step),
        None => Cow::Borrowed(path),
    })
}

/// The value at a path: `a.b.0`, `tags.[key=span.kind].value` for the first element of an array whose `key` is that, or a JSON pointer where it begins
/// with a slash; `.` is the whole.
pub(crate) fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path == "." {
        return Some(value);
    }
    if path.starts_with('/') {
        return value.pointer(path);
    }
    // A key may itself hold dots.
    if let Some(found) = value.get(path) {
        return Some(found);
    }
    let mut at = value;
    for part in parts(path) {
        at = match (at, condition(part)) {
            (Value::Array(items), Some((key, wanted))) => {
                let is = |item: &&Value| item.get(key).and_then(text_of).as_deref() == Some(wanted);
                items.iter().find(is)?
            }
            (Value::Object(map), _) => map.get(part)?,
            (Value::Array(items), None) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// The parts of a path; a dot in brackets is none between two of them.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    path.split(move |c| {
        inside = c == '[' || inside && c != ']';
        c == '.' && !inside
    })
}

/// What `[key=value]` asks of an element of an array.
fn condition(part: &str) -> Option<(&str, &str)> {
    part.strip_prefix('[')?.strip_suffix(']')?.split_once('=')
}

/// A value as text: strings as they are, everything else as JSON; `null` is no text.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::formats::Parts;

    proptest! {
        /// Parts of a line give what the object of them gives.
        #[test]
        fn parts_are_an_object_of_texts(
            names in proptest::collection::vec("[ab/~.]{1,3}", 1..4),
            text in "[a-zé]{0,9}",
            cuts in proptest::collection::vec(proptest::option::of((0_usize..9, 0_usize..9)), 4),
            nulls: bool,
            path in "[ab/~.]{1,4}",
        ) {
            let char_at = |i: usize| text.char_indices().map(|(at, _)| at).nth(i).unwrap_or(text.len());
            let span = |cut: &Option<(usize, usize)>| {
                cut.map(|(a, b)| (char_at(a), char_at(b))).map(|(a, b)| (a.min(b), a.max(b)))
            };
            let spans = cuts.iter().take(names.len()).map(span).collect();
            let names = names.into();
            let parts = Record::Parts(Parts { names, text: Cow::Borrowed(&text), spans, nulls });
            let object = Record::Json(parts.value());
            let get = |record| Scope { record, groups: &[], known: &|_| None }.get(&path).map(Found::value);
            prop_assert_eq!(get(&parts), get(&object));
        }
    }
}
