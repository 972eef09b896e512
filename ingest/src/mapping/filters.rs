//! Filters of templates: small conversions by name.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::scope::Found;
use crate::formats::dinv;
use crate::time::utc_nanos;

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

const ALL: [(&str, Filter); 8] = [
    ("json", Filter::Json),
    ("trim", Filter::Trim),
    ("lower", Filter::Lower),
    ("int", Filter::Int),
    ("word", Filter::Word),
    ("last", Filter::Last),
    ("instant", Filter::Instant),
    ("dinv", Filter::Dinv),
];

impl Filter {
    /// The filter of that name.
    pub(crate) fn parse(name: &str) -> Result<Filter, String> {
        ALL.iter().find(|(n, _)| *n == name).map(|(_, f)| *f).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|(n, _)| *n).collect();
            format!("there is no filter '{name}'; there are {}", names.join(", "))
        })
    }

    /// Applies the filter; what is empty afterwards has no value. A part of a text is not copied.
    pub(crate) fn apply_to(self, found: Found<'_>) -> Result<Option<Found<'_>>, String> {
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

    fn apply(self, value: Value) -> Result<Option<Value>, String> {
        if self == Filter::Instant {
            return utc_nanos(&value).map(|nanos| Some(Value::from(nanos))).ok_or_else(|| {
                format!("{value} is no time stamp between 2006-07-15 and 2262, before and after which none can be a sequence number")
            });
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
            Filter::Json => serde_json::from_str(text).map(Some).map_err(|e| format!("no JSON: {e}")),
            Filter::Lower => Ok(Some(text.to_lowercase()).filter(|t| !t.is_empty()).map(Value::String)),
            Filter::Int => match text.trim().parse::<i64>() {
                Ok(n) => Ok(Some(Value::Number(Number::from(n)))),
                Err(_) => Err(format!("'{text}' is no whole number")),
            },
            Filter::Dinv => dinv::parse(text),
            Filter::Instant | Filter::Trim | Filter::Word | Filter::Last => Ok(None),
        }
    }
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
            Filter::parse(name).unwrap().apply_to(Found::from(value)).unwrap().map(Found::value)
        };
        assert_eq!(apply("int", json!(" 12 ")), Some(json!(12)));
        assert_eq!(apply("trim", json!("  ")), None);
        assert_eq!(apply("word", json!(" a b")), Some(json!("a")));
        assert_eq!(apply("last", json!("akka://x/user/node-1#99")), Some(json!("99")));
        assert_eq!(apply("json", json!(4)), Some(json!(4)));
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
