//! Filters of templates: small conversions by name.

use std::borrow::Cow;

use demi_common::text::exact_numbers;
use demi_schemas::event::clock_seq;
use serde_json::{Map, Number, Value};

use super::path::find;
use super::template::{Found, Path, Scope, Stamps};
use crate::formats::{dinv, itf, tla};
use crate::time::utc_nanos;

/// A conversion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    /// JSON text to its value.
    Json,
    /// Text without blanks around it.
    Trim,
    /// Lower case.
    Lower,
    /// A whole number.
    Int,
    /// The first word.
    Word,
    /// What follows the last `/` or `#`.
    Last,
    /// A time stamp to nanoseconds since 1970, as a sequence number.
    Instant,
    /// Dinv's dumps of variables to an object by program point.
    Dinv,
    /// Values of TLA+ as TLC prints them.
    Tla,
    /// Values of the Informal Trace Format without their marks.
    Itf,
    /// Of an object of objects those members of the inner ones that have a name, by the names of the outer ones: of variables that are functions of
    /// nodes, the values at one node.
    At(Box<Path>),
    /// Of an object or array what a path leads to.
    Get(String),
}

const ALL: [(&str, Filter); 10] = [
    ("json", Filter::Json),
    ("trim", Filter::Trim),
    ("lower", Filter::Lower),
    ("int", Filter::Int),
    ("word", Filter::Word),
    ("last", Filter::Last),
    ("instant", Filter::Instant),
    ("dinv", Filter::Dinv),
    ("tla", Filter::Tla),
    ("itf", Filter::Itf),
];

impl Filter {
    /// The filter of that name.
    pub(crate) fn parse(name: &str) -> Result<Filter, String> {
        if let Some(path) = name.strip_prefix("at(").and_then(|rest| rest.strip_suffix(')')) {
            return Ok(Filter::At(Box::new(Path::parse(path.trim())?)));
        }
        if let Some(path) = name.strip_prefix("get(").and_then(|rest| rest.strip_suffix(')')) {
            return Ok(Filter::Get(path.trim().to_owned()));
        }
        ALL.iter().find(|(n, _)| *n == name).map(|(_, f)| f.clone()).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(n, _)| *n).chain(["at(NAME)", "get(PATH)"]).collect();
            format!("there is no filter '{name}'; there are {}", names.join(", "))
        })
    }

    /// Whether the whole value goes into the result, and not just a part of it.
    pub(crate) fn takes_all(&self) -> bool {
        !matches!(self, Filter::Word | Filter::Last | Filter::At(_) | Filter::Get(_))
    }

    /// Applies the filter; what is empty afterwards has no value. A part of a text is not copied.
    pub(crate) fn apply_to<'a>(
        &'a self,
        found: Found<'a>,
        scope: &Scope<'a>,
        stamps: Option<&Stamps<'a>>,
    ) -> Result<Option<Found<'a>>, String> {
        if let Filter::At(path) = self {
            let Some(key) = scope.get(path).and_then(Found::text) else { return Ok(None) };
            return Ok(at(&found.value(), &key).map(Found::from));
        }
        if let Filter::Get(path) = self {
            return Ok(find(&found.value(), path, None).filter(|v| !v.is_null()).cloned().map(Found::from));
        }
        if let (Filter::Instant, Some(stamps)) = (self, stamps) {
            let Some(text) = found.text() else { return Ok(None) };
            let time = stamps.read(&text, scope)?;
            let nanos = time.and_utc().timestamp_nanos_opt().and_then(|nanos| u64::try_from(nanos).ok());
            return match nanos {
                // Of a time before 2006 too gaps mean nothing.
                Some(nanos) if nanos > 0 => Ok(Some(Found::from(clock_seq(nanos)))),
                _ => Err(format!("the time '{text}' is not between 1970 and 2262")),
            };
        }
        let part: fn(&str) -> &str = match self {
            Filter::Trim => str::trim,
            Filter::Word => first_word,
            Filter::Last => last_step,
            _ => return Ok(self.apply(found.value())?.map(Found::from)),
        };
        Ok(match found {
            Found::Text(Cow::Borrowed(text)) => Some(part(text)).filter(|t| !t.is_empty()).map(Found::from),
            Found::Text(Cow::Owned(text)) => {
                Some(part(&text).to_owned()).filter(|t| !t.is_empty()).map(|t| Found::Text(Cow::Owned(t)))
            }
            other => Some(other),
        })
    }

    fn apply(&self, value: Value) -> Result<Option<Value>, String> {
        if *self == Filter::Instant {
            return utc_nanos(&value).map(|nanos| Some(Value::from(nanos))).ok_or_else(|| {
                format!("{value} is no time stamp between 2006-07-15 and 2262, before and after which none can be a sequence number")
            });
        }
        if *self == Filter::Itf {
            return Ok(Some(itf::plain(value)));
        }
        let Value::String(text) = &value else {
            return match self {
                Filter::Int if !value.is_u64() && !value.is_i64() => {
                    Err(format!("{value} is no whole number"))
                }
                _ => Ok(Some(value)),
            };
        };
        match self {
            Filter::Json => {
                serde_json::from_str(&exact_numbers(text)).map(Some).map_err(|e| format!("no JSON: {e}"))
            }
            Filter::Lower => Ok(Some(text.to_lowercase()).filter(|t| !t.is_empty()).map(Value::String)),
            Filter::Int => match text.trim().parse::<i64>() {
                Ok(n) => Ok(Some(Value::Number(Number::from(n)))),
                Err(_) => Err(format!("'{text}' is no whole number")),
            },
            Filter::Dinv => dinv::parse(text),
            Filter::Tla => tla::parse(text).map(Some),
            Filter::Instant
            | Filter::Itf
            | Filter::Trim
            | Filter::Word
            | Filter::Last
            | Filter::At(_)
            | Filter::Get(_) => Ok(None),
        }
    }
}

/// Of an object of objects the members of that name.
fn at(value: &Value, key: &str) -> Option<Value> {
    let members = value
        .as_object()?
        .iter()
        .filter_map(|(name, inner)| Some((name.clone(), inner.as_object()?.get(key)?.clone())));
    let members: Map<String, Value> = members.collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("")
}

fn last_step(text: &str) -> &str {
    text.rsplit(['/', '#']).next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_does_what_it_says() {
        let apply = |name: &str, value: Value| {
            let record = crate::formats::Record::Json(json!({"node": "n1"}));
            let (filter, scope) = (Filter::parse(name).unwrap(), Scope::of(&record));
            filter.apply_to(Found::from(value), &scope, None).unwrap().map(Found::value)
        };
        assert_eq!(apply("int", json!(" 12 ")), Some(json!(12)));
        assert_eq!(apply("trim", json!("  ")), None);
        assert_eq!(apply("word", json!(" a b")), Some(json!("a")));
        assert_eq!(apply("last", json!("akka://x/user/node-1#99")), Some(json!("99")));
        assert_eq!(apply("json", json!(4)), Some(json!(4)));
        let state =
            json!({"term": {"n1": 2, "n2": 3}, "log": {"n1": [1]}, "messages": [1], "other": {"n2": 1}});
        assert_eq!(apply("at(node)", state), Some(json!({"term": 2, "log": [1]})));
        assert_eq!(apply("at(node)", json!({"term": 2})), None);
        assert_eq!(
            apply("instant", json!("2024-05-15 00:00:00,25")),
            Some(json!(1_715_731_200_250_000_000_u64))
        );
        assert_eq!(apply("instant", json!(1_715_731_200)), Some(json!(1_715_731_200_000_000_000_u64)));
        assert!(Filter::parse("instant").unwrap().apply(json!("2005-05-15")).unwrap_err().contains("2006"));
        assert!(Filter::parse("int").unwrap().apply(json!("x")).unwrap_err().contains("'x'"));
        assert!(Filter::parse("int").unwrap().apply(json!(1.5)).is_err());
    }
}
