//! What templates can ask for, and what they find: values of a record by name, which are not copied.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use chrono::NaiveDateTime;
use serde_json::Value;

use super::path::{Step, Steps, descend, find, left, parts};
use super::stamp::{Formats, Instant, Latest};
use super::template::Template;
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

/// The values of a record that templates used, as the steps to them.
#[derive(Debug, Default)]
pub(crate) struct Uses(RefCell<Vec<Steps>>);

impl Uses {
    /// What no template used.
    pub(crate) fn rest(&self, record: &Record<'_>) -> Option<Value> {
        left(record, &self.0.borrow())
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
    /// Where what templates use of the record is noted, if somebody asks.
    pub(crate) uses: Option<&'a Uses>,
    /// Values that records before this one told, for names that the record has not.
    pub(crate) carried: Option<&'a BTreeMap<String, String>>,
    /// The element at hand, where events are made for each one of a list.
    pub(crate) each: Option<&'a Each<'a>>,
    /// How stamps are written, and what is known of the one before.
    pub(crate) stamps: Option<Stamps<'a>>,
}

/// An element of a list or object of the record.
pub(crate) struct Each<'a> {
    /// Its place from 0, or its name.
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: &'a Value,
    /// The steps to it.
    pub(crate) steps: Steps,
}

/// How stamps are written.
#[derive(Clone, Copy)]
pub(crate) struct Stamps<'a> {
    pub(crate) formats: &'a Formats,
    /// The latest times before.
    pub(crate) latest: &'a Latest,
}

impl<'a> Stamps<'a> {
    /// The time in UTC that a stamp tells.
    pub(crate) fn read(&self, text: &str, scope: &Scope<'a>) -> Result<NaiveDateTime, String> {
        self.instant(text, scope).map(|time| time.utc)
    }

    /// The same, with its digits.
    pub(crate) fn instant(&self, text: &str, scope: &Scope<'a>) -> Result<Instant, String> {
        let date = match &self.formats.date {
            Some(date) => date.text(scope)?,
            None => None,
        };
        self.formats.read(text, date.as_deref(), self.latest)
    }
}

impl<'a> Scope<'a> {
    /// A record by itself.
    pub(crate) fn of(record: &'a Record<'a>) -> Self {
        Scope { record, groups: &[], known: &|_| None, uses: None, carried: None, each: None, stamps: None }
    }

    /// The value of a name; `null`, and what is not there, have none.
    pub(crate) fn get(&self, path: &'a Path) -> Option<Found<'a>> {
        self.look(path, None)
    }

    /// Notes that the value of a name was used.
    pub(crate) fn note(&self, path: &'a Path) {
        let Some(uses) = self.uses else { return };
        let mut steps = Vec::new();
        let mut is_record = false;
        self.look(path, Some((&mut steps, &mut is_record)));
        if is_record {
            uses.0.borrow_mut().push(steps);
        }
    }

    /// How many values are noted as used.
    pub(crate) fn noted(&self) -> usize {
        self.uses.map_or(0, |uses| uses.0.borrow().len())
    }

    /// Takes back what was noted last.
    pub(crate) fn note_no_more_than(&self, noted: usize) {
        if let Some(uses) = self.uses {
            uses.0.borrow_mut().truncate(noted);
        }
    }

    /// The elements of the list or object at a path of the record, each with the steps to it.
    pub(crate) fn elements(&self, path: &'a Path) -> Vec<Each<'a>> {
        let Record::Json(record) = self.record else { return Vec::new() };
        let mut trail = Vec::new();
        let element = |key: Cow<'a, str>, value: &'a Value, step: Step, trail: &Steps| {
            let mut steps = trail.clone();
            steps.push(step);
            Each { key, value, steps }
        };
        match self.find(record, path, Some(&mut trail)) {
            Some(Value::Array(items)) => {
                let items = items.iter().enumerate();
                items
                    .map(|(i, v)| element(i.to_string().into(), v, Step::Item { index: i, by: None }, &trail))
                    .collect()
            }
            Some(Value::Object(map)) => {
                map.iter().map(|(k, v)| element(Cow::Borrowed(k), v, Step::Key(k.clone()), &trail)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The value at a path.
    fn find(&self, value: &'a Value, path: &'a Path, trail: Option<&mut Steps>) -> Option<&'a Value> {
        let Some(chosen) = path.chosen() else { return find(value, path.text(), trail) };
        let parts = chosen.iter().map(|part| part.text(self).ok()?);
        let parts: Vec<String> = parts.collect::<Option<_>>()?;
        descend(value, parts.into_iter().map(Cow::Owned), true, trail)
    }

    /// The value of a name. If it is the record's, the steps to it are told.
    fn look(&self, path: &'a Path, told: Option<(&mut Steps, &mut bool)>) -> Option<Found<'a>> {
        let text = path.text();
        let (mut trail, is_record) = told.unzip();
        if let Some(name) = text.strip_prefix('@') {
            let Some(each) = self.each else { return (self.known)(name) };
            let inner = match name {
                "key" => return Some(Found::Text(each.key.clone())),
                "each" => ".",
                _ => match name.strip_prefix("each.") {
                    Some(inner) => inner,
                    None => return (self.known)(name),
                },
            };
            if let Some(trail) = trail.as_deref_mut() {
                trail.extend(each.steps.iter().cloned());
            }
            let found = find(each.value, inner, trail).and_then(Found::of);
            if let Some(is_record) = is_record {
                *is_record = found.is_some();
            }
            return found;
        }
        if let Some((_, text)) = self.groups.iter().rfind(|(name, _)| *name == text) {
            return Some(Found::Text(Cow::Borrowed(text)));
        }
        let record: &'a Record<'a> = self.record;
        let found = match record {
            Record::Json(value) => self.find(value, path, trail).and_then(Found::of),
            Record::Parts(_) if text == "." => Some(Found::from(record.value())),
            Record::Parts(parts) => match path.chosen() {
                None => name_of(text),
                // What is left of a line has no parts of its own: such a name is one step.
                Some([only]) => only.text(self).ok().flatten().map(Cow::Owned),
                Some(_) => None,
            }
            .and_then(|name| {
                let found = parts.get(&name).map(Found::from);
                if let Some(trail) = trail {
                    trail.push(Step::Key(name.into_owned()));
                }
                found
            }),
        };
        if let Some(is_record) = is_record {
            *is_record = found.is_some();
        }
        found.or_else(|| self.carried?.get(text).map(|text| Found::from(text.as_str())))
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

/// How a template names a value: `a.b.0`, or `state.{node}.term` where a part of the path is itself the value of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    text: String,
    chosen: Option<Vec<Template>>,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// When a part that is to be chosen is no template.
    pub(crate) fn parse(text: &str) -> Result<Path, String> {
        let chosen = match text.contains('{') {
            false => None,
            true if text.starts_with('/') => {
                return Err(format!(
                    "'{text}': in a JSON pointer no part is chosen by a value; write a.{{b}}.c"
                ));
            }
            true => Some(parts(text).map(Template::parse).collect::<Result<_, _>>()?),
        };
        Ok(Path { text: text.to_owned(), chosen })
    }

    /// As it is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its parts, where one is chosen by a value.
    fn chosen(&self) -> Option<&[Template]> {
        self.chosen.as_deref()
    }

    /// Calls `each` with this path and those that choose its parts.
    pub(crate) fn each_name(&self, each: &mut dyn FnMut(&str)) {
        match &self.chosen {
            None => each(&self.text),
            Some(parts) => parts.iter().for_each(|part| part.each_name(each)),
        }
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
            let path = Path::parse(&path).unwrap();
            let get = |record| Scope::of(record).get(&path).map(Found::value);
            prop_assert_eq!(get(&parts), get(&object));
        }
    }
}
