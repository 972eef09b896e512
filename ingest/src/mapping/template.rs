//! Templates: text with names in braces, filled from a record.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::error::MappingError;
use super::filters::Filter;
use super::shape::Shape;

/// What a template can ask for: the record, and what is known without it.
pub(crate) struct Scope<'a> {
    /// The record's values by name.
    pub(crate) record: &'a Value,
    /// Groups of the rule's conditions; they hide the record's.
    pub(crate) groups: &'a Map<String, Value>,
    /// Values of names that begin with `@`.
    pub(crate) known: &'a dyn Fn(&str) -> Option<Value>,
}

impl Scope<'_> {
    /// The value of a name; `null`, and what is not there, have none. What the record holds is not copied.
    pub(crate) fn get(&self, path: &str) -> Option<Cow<'_, Value>> {
        if let Some(name) = path.strip_prefix('@') {
            return (self.known)(name).map(Cow::Owned);
        }
        if !self.groups.is_empty()
            && let Some(value) = self.groups.get(path)
        {
            return Some(Cow::Borrowed(value));
        }
        find(self.record, path).filter(|v| !v.is_null()).map(Cow::Borrowed)
    }
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
pub(crate) fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// As [`text_of`], of a value that is not needed any more.
fn into_text(value: Cow<'_, Value>) -> Option<String> {
    match value {
        Cow::Owned(Value::String(text)) => Some(text),
        value => text_of(&value).map(Cow::into_owned),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Path(String),
    /// Always a string.
    Constant(Value),
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

    /// The value: that of the name where the template is a single one, else text. None where a name has no value.
    pub(crate) fn value(&self, scope: &Scope<'_>) -> Result<Option<Value>, String> {
        if let [Part::Name { sources, filters }] = self.parts.as_slice() {
            return Ok(fill(sources, filters, scope)?.map(Cow::into_owned));
        }
        Ok(self.joined(scope)?.map(Value::String))
    }

    /// The value as text.
    pub(crate) fn text(&self, scope: &Scope<'_>) -> Result<Option<String>, String> {
        match self.parts.as_slice() {
            [Part::Name { sources, filters }] => Ok(fill(sources, filters, scope)?.and_then(into_text)),
            _ => self.joined(scope),
        }
    }

    fn joined(&self, scope: &Scope<'_>) -> Result<Option<String>, String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Name { sources, filters } => {
                    match fill(sources, filters, scope)?.as_deref().and_then(text_of) {
                        Some(text) => out.push_str(&text),
                        None => return Ok(None),
                    }
                }
            }
        }
        Ok(Some(out))
    }
}

fn fill<'a>(
    sources: &'a [Source],
    filters: &[Filter],
    scope: &'a Scope<'_>,
) -> Result<Option<Cow<'a, Value>>, String> {
    for source in sources {
        let found = match source {
            Source::Constant(text) => Some(Cow::Borrowed(text)),
            Source::Path(path) => scope.get(path),
        };
        if let Some(mut value) = found {
            for filter in filters {
                match filter.apply(value.into_owned())? {
                    Some(next) => value = Cow::Owned(next),
                    None => return Ok(None),
                }
            }
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Where the name ends: the first brace that is not inside quotes.
fn closing(inner: &str) -> Option<usize> {
    let mut quoted = false;
    inner.char_indices().find_map(|(i, c)| {
        quoted ^= c == '\'';
        (c == '}' && !quoted).then_some(i)
    })
}

fn name(inner: &str) -> Result<Part, String> {
    let mut pieces = split_outside_quotes(inner, '!').into_iter();
    let sources = pieces.next().unwrap_or("");
    let filters = pieces.map(|f| Filter::parse(f.trim())).collect::<Result<_, _>>()?;
    let sources = split_outside_quotes(sources, '|')
        .into_iter()
        .map(|source| {
            let source = source.trim();
            match source.strip_prefix('\'').and_then(|s| s.strip_suffix('\'')) {
                Some(constant) => Ok(Source::Constant(Value::from(constant))),
                None if source.is_empty() => Err("a name is missing between the braces".to_owned()),
                None => Ok(Source::Path(source.to_owned())),
            }
        })
        .collect::<Result<_, String>>()?;
    Ok(Part::Name { sources, filters })
}

fn split_outside_quotes(text: &str, at: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '\'';
        c == at && !quoted
    })
    .collect()
}

/// A [`Shape`], read once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    One(Template),
    Table(Vec<(String, Form)>),
    List(Vec<Form>),
}

impl Form {
    pub(crate) fn parse(shape: &Shape) -> Result<Form, String> {
        Ok(match shape {
            Shape::Template(text) => Form::One(Template::parse(text)?),
            Shape::Table(table) => Form::Table(
                table.iter().map(|(k, s)| Ok((k.clone(), Form::parse(s)?))).collect::<Result<_, String>>()?,
            ),
            Shape::List(list) => Form::List(list.iter().map(Form::parse).collect::<Result<_, _>>()?),
        })
    }

    /// The value; a table in which nothing has a value has none itself.
    pub(crate) fn value(&self, scope: &Scope<'_>) -> Result<Option<Value>, String> {
        match self {
            Form::One(template) => template.value(scope),
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

    fn filled(template: &str, record: &Value) -> Option<Value> {
        let known = |name: &str| (name == "line").then(|| json!(7));
        let scope = Scope { record, groups: &Map::new(), known: &known };
        Template::parse(template).unwrap().value(&scope).unwrap()
    }

    #[test]
    fn names_alternatives_constants_and_filters() {
        let record = json!({"a": {"b": [1, {"c": "x"}]}, "d.e": true, "n": null, "j": "{\"k\":[2]}",
            "t": [3, {"k": "x.y", "v": 1}, {"k": 2, "v": "two"}, {"k": "x.y", "v": 5}]});
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
        for (template, why) in
            [("{a", "not closed"), ("a}b", "stands alone"), ("{}", "missing"), ("{a!nope}", "no filter")]
        {
            let error = Template::parse(template).unwrap_err();
            assert!(error.contains(why), "{template}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_template_or_an_error(text in "[a-z{}|!'@. ]{0,24}") {
            if let Ok(template) = Template::parse(&text) {
                let record = json!({"a": 1});
                let scope = Scope { record: &record, groups: &Map::new(), known: &|_| None };
                let _ = template.value(&scope);
            }
        }

        #[test]
        fn text_without_braces_is_itself(text in "[^{}]{0,24}") {
            prop_assert_eq!(filled(&text, &json!({})), Some(Value::String(text)));
        }
    }
}
