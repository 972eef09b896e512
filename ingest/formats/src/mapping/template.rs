//! Templates: text with names in braces, filled from a record, and what they can ask for and find: values by name, which are not copied.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use chrono::NaiveDateTime;
use serde_json::{Map, Value};

use super::error::MappingError;
use super::filters::Filter;
use super::path::{Step, Steps, descend, find, left, parts};
use super::shape::Shape;
use super::stamp::{Formats, Instant, Latest};
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
    /// The day of stamps that have none.
    pub(crate) date: Option<&'a Template>,
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
        let date = match self.date {
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
        // Other names that begin so are the record's own, as `@timestamp`.
        if let Some(name) = text.strip_prefix('@').filter(|name| is_told(name)) {
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

/// Whether `@name` is what a mapping knows beside the record.
fn is_told(name: &str) -> bool {
    const NAMES: [&str; 11] =
        ["line", "offset", "file", "stem", "raw", "rest", "time", "execution", "host", "each", "key"];
    let dotted = ["each.", "clock."].iter().any(|begin| name.starts_with(begin));
    NAMES.contains(&name) || dotted
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

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Path(Path),
    Constant(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Name { sources: Vec<Source>, filters: Vec<Filter> },
}

/// A template, read once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Reads a template. `{{` and `}}` are braces.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{") {
                plain.push('{');
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                plain.push('}');
                rest = after;
            } else if let Some(inner) = from.strip_prefix('{') {
                let end = closing(inner).ok_or_else(|| format!("'{text}': a brace is not closed"))?;
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(name(&inner[..end]).map_err(|e| format!("'{text}': {e}"))?);
                rest = &inner[end + 1..];
            } else {
                return Err(format!("'{text}': a closing brace stands alone; write '}}}}' for a brace"));
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    /// The text of a template that always makes the same.
    pub(crate) fn constant(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What the template makes: the value of the name where it is a single one, else text. None where a name has no value.
    pub(crate) fn found<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Found<'a>>, String> {
        let mut out = match self.parts.as_slice() {
            [Part::Name { sources, filters }] => return fill(sources, filters, scope),
            [Part::Text(text)] => return Ok(Some(Found::from(text.as_str()))),
            _ => String::new(),
        };
        let noted = scope.noted();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Name { sources, filters } => {
                    match fill(sources, filters, scope)?.and_then(Found::text) {
                        Some(text) => out.push_str(&text),
                        None => {
                            // It fills nothing, so nothing was used.
                            scope.note_no_more_than(noted);
                            return Ok(None);
                        }
                    }
                }
            }
        }
        Ok(Some(Found::Text(Cow::Owned(out))))
    }

    /// Calls `each` with all names that it may ask for.
    pub(crate) fn each_name(&self, each: &mut dyn FnMut(&str)) {
        for part in &self.parts {
            let Part::Name { sources, .. } = part else { continue };
            for source in sources {
                if let Source::Path(path) = source {
                    path.each_name(each);
                }
            }
        }
    }

    /// Whether it may ask for a name.
    pub(crate) fn names(&self, name: &str) -> bool {
        let mut found = false;
        self.each_name(&mut |n| found |= n == name);
        found
    }

    /// As [`Template::found`], as a JSON value.
    pub(crate) fn value<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Value>, String> {
        Ok(self.found(scope)?.map(Found::value))
    }

    /// As [`Template::found`], as text.
    pub(crate) fn look<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Cow<'a, str>>, String> {
        Ok(self.found(scope)?.and_then(Found::text))
    }

    /// As [`Template::look`], as text of its own.
    pub(crate) fn text<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<String>, String> {
        Ok(self.look(scope)?.map(Cow::into_owned))
    }
}

fn fill<'a>(
    sources: &'a [Source],
    filters: &'a [Filter],
    scope: &Scope<'a>,
) -> Result<Option<Found<'a>>, String> {
    for source in sources {
        let noted = scope.noted();
        let found = match source {
            Source::Constant(text) => Some(Found::from(text.as_str())),
            Source::Path(path) => scope.get(path),
        };
        let Some(mut value) = found else {
            scope.note_no_more_than(noted);
            continue;
        };
        // What the mapping made of the time is in none of its formats.
        let made = matches!(source, Source::Path(path) if path.text() == "@time");
        let stamps = scope.stamps.filter(|_| !made);
        for filter in filters {
            match filter.apply_to(value, scope, stamps.as_ref())? {
                Some(next) => value = next,
                None => return Ok(None),
            }
        }
        if let Source::Path(path) = source
            && filters.iter().all(|filter| filter.takes_all())
        {
            scope.note(path);
        }
        return Ok(Some(value));
    }
    Ok(None)
}

/// Where the name ends: the brace that closes it and is not inside quotes.
fn closing(inner: &str) -> Option<usize> {
    let (mut quoted, mut depth) = (false, 0_usize);
    for (i, c) in inner.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted && depth == 0 => return Some(i),
            '}' if !quoted => depth -= 1,
            _ => {}
        }
    }
    None
}

fn name(inner: &str) -> Result<Part, String> {
    let mut pieces = split(inner, '!').into_iter();
    let sources = pieces.next().unwrap_or("");
    let filters = pieces.map(|f| Filter::parse(f.trim())).collect::<Result<_, _>>()?;
    let sources = split(sources, '|')
        .into_iter()
        .map(|source| {
            let source = source.trim();
            match source.strip_prefix('\'').and_then(|s| s.strip_suffix('\'')) {
                Some(constant) => Ok(Source::Constant(constant.to_owned())),
                None if source.is_empty() => Err("a name is missing between the braces".to_owned()),
                None => Path::parse(source).map(Source::Path),
            }
        })
        .collect::<Result<_, String>>()?;
    Ok(Part::Name { sources, filters })
}

/// Splits what stands neither in quotes nor in braces.
pub(crate) fn split(text: &str, at: char) -> Vec<&str> {
    let (mut quoted, mut depth) = (false, 0_usize);
    text.split(|c| {
        quoted ^= c == '\'';
        match c {
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == at && !quoted && depth == 0
    })
    .collect()
}

/// A [`Shape`], read once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    One(Template),
    /// A number or truth value that is the same everywhere.
    Constant(Value),
    Table(Vec<(String, Form)>),
    List(Vec<Form>),
}

impl Form {
    pub(crate) fn parse(shape: &Shape) -> Result<Form, String> {
        Ok(match shape {
            Shape::Template(text) => Form::One(Template::parse(text)?),
            Shape::Constant(value) => Form::Constant(value.clone()),
            Shape::Table(table) => Form::Table(
                table.iter().map(|(k, s)| Ok((k.clone(), Form::parse(s)?))).collect::<Result<_, String>>()?,
            ),
            Shape::List(list) => Form::List(list.iter().map(Form::parse).collect::<Result<_, _>>()?),
        })
    }

    /// Calls `each` with its templates.
    pub(crate) fn each_template<'a>(&'a self, each: &mut dyn FnMut(&'a Template)) {
        match self {
            Form::One(template) => each(template),
            Form::Constant(_) => {}
            Form::Table(table) => table.iter().for_each(|(_, form)| form.each_template(each)),
            Form::List(list) => list.iter().for_each(|form| form.each_template(each)),
        }
    }

    /// The value; a table in which nothing has a value has none itself.
    pub(crate) fn value<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Value>, String> {
        match self {
            Form::One(template) => template.value(scope),
            Form::Constant(value) => Ok(Some(value.clone())),
            Form::Table(table) => {
                let mut map = Map::new();
                for (key, form) in table {
                    if let Some(value) = form.value(scope)? {
                        map.insert(key.clone(), value);
                    }
                }
                Ok((!map.is_empty()).then_some(Value::Object(map)))
            }
            Form::List(list) => {
                let mut items = Vec::new();
                for form in list {
                    items.extend(form.value(scope)?);
                }
                Ok(Some(Value::Array(items)))
            }
        }
    }
}

/// Reads a template of a mapping's field.
pub(crate) fn template(place: &str, text: &str) -> Result<Template, MappingError> {
    Template::parse(text).map_err(|e| MappingError::value(place, e))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::formats::Record;

    fn filled(template: &str, record: &Value) -> Option<Value> {
        let known = |name: &str| (name == "line").then(|| Found::from(7));
        let record = Record::Json(record.clone());
        let scope = Scope { known: &known, ..Scope::of(&record) };
        Template::parse(template).unwrap().value(&scope).unwrap()
    }

    #[test]
    fn keys_of_the_record_may_begin_as_what_is_told_does() {
        let record = json!({"@timestamp": "2020-03-24T17:42:23Z", "@line": 3, "@a": {"b": 1}});
        let read = |template| filled(template, &record).map(|found| found.to_string());
        assert_eq!(read("{time|@timestamp}").as_deref(), Some("\"2020-03-24T17:42:23Z\""));
        assert_eq!(read("{@line}").as_deref(), Some("7"), "what is told comes first");
        assert_eq!(read("{@a.b}").as_deref(), Some("1"));
    }

    #[test]
    fn names_alternatives_constants_and_filters() {
        let record = json!({"a": {"b": [1, {"c": "x"}]}, "d.e": true, "n": null, "j": "{\"k\":[2]}",
            "who": "p.q", "by": {"p.q": {"v": 8}, "x1": {"v": 9}}, "w": 2, "t": [3, {"k": "x.y", "v": 1}, {"k": 2, "v": "two"}, {"k": "x.y", "v": 5}]});
        for (template, expected) in [
            ("{a.b.1.c}", json!("x")),
            ("{a.b.0}", json!(1)),
            ("{d.e}", json!(true)),
            ("{/a/b/0}", json!(1)),
            ("{zz|n|a.b.0}", json!(1)),
            ("{zz|'the | } end'}", json!("the | } end")),
            ("{t.[k=x.y].v}", json!(1)),
            ("{t.[k=2].v|'none'}", json!("two")),
            ("{t.[k=3].v|'none'}", json!("none")),
            ("{@line}: {{{a.b.1.c}}}", json!("7: {x}")),
            // A part of a path that another value chooses.
            ("{by.{who}.v}", json!(8)),
            ("{by.{zz|who}.v}-", json!("8-")),
            ("{by.x{a.b.0}.v|'none'}", json!(9)),
            ("{by.{zz}.v|'none'}", json!("none")),
            ("{t.[k={w}].v}", json!("two")),
            ("{j!json}", json!({"k": [2]})),
            ("{a.b}-", json!("[1,{\"c\":\"x\"}]-")),
            ("", json!("")),
        ] {
            assert_eq!(filled(template, &record), Some(expected), "{template}");
        }
        assert_eq!(filled("{zz}", &record), None);
        assert_eq!(filled("x{n}", &record), None);
        assert_eq!(filled("{.}", &record).unwrap(), record);
    }

    #[test]
    fn what_is_no_template_is_said() {
        for (template, why) in [
            ("{a", "not closed"),
            ("a}b", "stands alone"),
            ("{}", "missing"),
            ("{a!nope}", "no filter"),
            ("{/a/{b}}", "pointer"),
            ("{a.{b}", "not closed"),
        ] {
            let error = Template::parse(template).unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_template_or_an_error(text in "[a-z{}|!'@. ]{0,24}") {
            if let Ok(template) = Template::parse(&text) {
                let record = Record::Json(json!({"a": 1}));
                let _ = template.value(&Scope::of(&record));
            }
        }

        #[test]
        fn text_without_braces_is_itself(text in "[^{}]{0,24}") {
            prop_assert_eq!(filled(&text, &json!({})), Some(Value::String(text)));
        }
    }
}

#[cfg(test)]
mod parts_tests {
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
