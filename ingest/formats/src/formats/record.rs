//! A record as it was read: parts of a line by name, or a JSON value.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

/// What templates take their values from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record<'a> {
    /// Parts of a text, which are not copied.
    Parts(Parts<'a>),
    /// A JSON value.
    Json(Value),
}

/// Named parts of a text. Of equal names the last counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts<'a> {
    pub(crate) names: Arc<[String]>,
    pub(crate) text: Cow<'a, str>,
    /// By name: where the part begins and ends in the text, in bytes. Ends lie on characters.
    pub(crate) spans: Vec<Option<(usize, usize)>>,
    /// Whether a part that is not there is a `null` of the whole record; else the whole record is without it.
    pub(crate) nulls: bool,
}

impl Parts<'_> {
    fn at(&self, index: usize) -> Option<&str> {
        let (begin, end) = (*self.spans.get(index)?)?;
        self.text.get(begin..end)
    }

    /// The part of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.at(self.names.iter().rposition(|n| n == name)?)
    }

    /// The names, each once, with their parts, in the order in which they are written first.
    fn each(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let first = |(i, name): &(usize, &String)| !self.names[..*i].contains(name);
        self.names.iter().enumerate().filter(first).map(|(_, name)| (name.as_str(), self.get(name)))
    }
}

impl Record<'_> {
    /// The record without what it was read from.
    pub(crate) fn into_owned(self) -> Record<'static> {
        match self {
            Record::Json(value) => Record::Json(value),
            Record::Parts(parts) => Record::Parts(Parts {
                names: parts.names,
                text: Cow::Owned(parts.text.into_owned()),
                spans: parts.spans,
                nulls: parts.nulls,
            }),
        }
    }

    /// All of it.
    pub(crate) fn value(&self) -> Value {
        let parts = match self {
            Record::Json(value) => return value.clone(),
            Record::Parts(parts) => parts,
        };
        let members = parts.each().filter_map(|(name, part)| match part {
            Some(part) => Some((name.to_owned(), Value::from(part))),
            None => parts.nulls.then(|| (name.to_owned(), Value::Null)),
        });
        Value::Object(members.collect())
    }

    /// The members for which `keep` holds and that have a value.
    pub(crate) fn members(&self, keep: impl Fn(&str) -> bool) -> Map<String, Value> {
        match self {
            Record::Json(value) => value
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, value)| !value.is_null() && keep(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            Record::Parts(parts) => parts
                .each()
                .filter(|(name, _)| keep(name))
                .filter_map(|(name, part)| Some((name.to_owned(), Value::from(part?))))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_equal_names_the_last_counts() {
        let names: Arc<[String]> = ["a", "b", "a", "c"].map(str::to_owned).into();
        let spans = vec![Some((0, 1)), Some((1, 2)), Some((2, 3)), None];
        let mut parts = Parts { names, text: Cow::Borrowed("123"), spans, nulls: false };
        assert_eq!((parts.get("a"), parts.get("c"), parts.get("z")), (Some("3"), None, None));
        assert_eq!(Record::Parts(parts.clone()).value(), json!({"a": "3", "b": "2"}));
        parts.nulls = true;
        let record = Record::Parts(parts).into_owned();
        assert_eq!(record.value().to_string(), r#"{"a":"3","b":"2","c":null}"#);
        assert_eq!(Value::Object(record.members(|name| name != "b")), json!({"a": "3"}));
    }
}
