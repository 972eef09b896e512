//! Templates: text with names in braces, filled from a record.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::error::MappingError;
use super::filters::Filter;
use super::scope::{Found, Path, Scope};
use super::shape::Shape;

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
fn split(text: &str, at: char) -> Vec<&str> {
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
