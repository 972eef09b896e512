//! Vector clocks as logs write them.

use demi_schemas::event::VectorClock;
use serde_json::Value;

use super::erlang;
use super::file::Clock;
use super::template::Found;

/// A clock as written: by name, or by number of the host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    Named(VectorClock),
    Array(Vec<u64>),
}

/// Most entries of an array.
const MOST: usize = 1 << 16;

impl Written {
    /// Reads a clock: `{"a": 1}`, `[1, 0]`, or text of either, or `1,0`, or a term of Erlang.
    pub(crate) fn read(found: Found<'_>) -> Result<Written, String> {
        match found {
            Found::Text(text) => Written::of_text(text.trim()),
            Found::Json(value) => Written::of_value(&value),
        }
    }

    fn of_text(text: &str) -> Result<Written, String> {
        if text.starts_with(['{', '[', '#']) {
            // Most are counts and nothing else, and need no JSON value in between.
            if text.starts_with('{') {
                if let Ok(clock) = serde_json::from_str(text) {
                    return Ok(Written::Named(clock));
                }
            } else if let Ok(counts) = serde_json::from_str::<Vec<u64>>(text)
                && counts.len() <= MOST
            {
                return Ok(Written::Array(counts));
            }
            let value: Value = match serde_json::from_str(text) {
                Ok(value) => value,
                Err(error) => match (unquoted(text), erlang::clock(text)) {
                    (Some(value), _) => value,
                    (None, Some(clock)) => return Ok(Written::Named(clock)),
                    (None, None) => return Err(format!("'{}': {error}", short(text))),
                },
            };
            return Written::of_value(&value);
        }
        let counts = text.split(',').map(|c| c.trim().parse::<u64>());
        let counts = counts.collect::<Result<Vec<_>, _>>();
        counts.map(Written::Array).map_err(|_| format!("'{}' is no list of counts", short(text)))
    }

    fn of_value(value: &Value) -> Result<Written, String> {
        match value {
            Value::Object(map) => {
                let entries = map.iter().map(|(host, count)| match count.as_u64() {
                    Some(count) => Ok((host.clone(), count)),
                    None => Err(format!("the entry of '{host}' is {count}, not a count")),
                });
                Ok(Written::Named(entries.collect::<Result<VectorClock, String>>()?))
            }
            Value::Array(items) if items.len() <= MOST => {
                let counts =
                    items.iter().map(|c| c.as_u64().ok_or_else(|| format!("the entry {c} is no count")));
                Ok(Written::Array(counts.collect::<Result<_, _>>()?))
            }
            Value::Array(items) => Err(format!("{} entries", items.len())),
            Value::String(_) => Err("no clock".into()),
            other => Err(format!("{other} is no clock")),
        }
    }

    /// The clock by names, without entries of 0.
    pub(crate) fn named(self, names: &Clock, deduced: Option<&[String]>) -> VectorClock {
        let name = |i: usize| deduced.and_then(|d| d.get(i).cloned()).unwrap_or_else(|| host(names, i));
        let mut clock = match self {
            Written::Named(clock) => clock,
            Written::Array(counts) => {
                counts.into_iter().enumerate().map(|(i, count)| (name(i), count)).collect()
            }
        };
        clock.retain(|_, count| *count > 0);
        clock
    }
}

/// A clock taken out of the middle of a JSON string, where its quotes are escaped: `{\"a\":1}`.
fn unquoted(text: &str) -> Option<Value> {
    if !text.contains('\\') {
        return None;
    }
    let inner: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
    serde_json::from_str(&inner).ok()
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Name of the host of an entry of an array.
pub(crate) fn host(names: &Clock, index: usize) -> String {
    names.hosts.get(index).cloned().unwrap_or_else(|| format!("p{}", names.first + index as u64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Written, String> {
        Written::read(Found::from(value.clone()))
    }

    #[test]
    fn clocks_come_in_several_forms() {
        let named = read(&json!({"a": 1, "b": 0})).unwrap();
        assert_eq!(read(&json!("{\"a\" : 1, \"b\":0} ")).unwrap(), named);
        assert_eq!(read(&json!(r#"{\"a\":1,\"b\":0}"#)).unwrap(), named, "out of a JSON string");
        assert_eq!(read(&json!("1,0,2")).unwrap(), Written::Array(vec![1, 0, 2]));
        assert_eq!(read(&json!("[1, 0, 2]")).unwrap(), read(&json!([1, 0, 2])).unwrap());
        let names = Clock {
            value: String::new(),
            hosts: vec!["x".into()],
            first: 1,
            deduce_host: false,
            name: None,
            ticks: Default::default(),
        };
        let clock = Written::Array(vec![4, 0, 2]).named(&names, None);
        assert_eq!(clock.into_iter().collect::<Vec<_>>(), [("p3".into(), 2), ("x".into(), 4)]);
    }

    #[test]
    fn what_is_no_clock_is_said() {
        for bad in [json!({"a": -1}), json!("{a:1}"), json!("1,x"), json!(3), json!([1.5]), json!("\"x\"")] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
