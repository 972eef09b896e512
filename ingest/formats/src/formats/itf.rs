//! Values of the Informal Trace Format, as Apalache and Quint write them, without their marks.

use serde_json::{Map, Value};

/// The value that is meant: a map becomes an object (a key that is no text becomes its text), a set or tuple an array, a large number a number where it
/// fits. What is said about the trace itself (`#meta`) is left out.
pub(crate) fn plain(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        Value::Object(map) => object(map),
        other => other,
    }
}

fn object(mut map: Map<String, Value>) -> Value {
    if map.len() == 1 {
        match map.iter_mut().next() {
            Some((mark, inner)) if mark == "#bigint" => {
                let text = inner.as_str().map_or_else(|| inner.to_string(), str::to_owned);
                return text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
            }
            Some((mark, inner)) if matches!(mark.as_str(), "#tup" | "#set" | "#unserializable") => {
                return plain(inner.take());
            }
            Some((mark, Value::Array(pairs))) if mark == "#map" => {
                let pairs = std::mem::take(pairs).into_iter().filter_map(|pair| match pair {
                    Value::Array(mut pair) if pair.len() == 2 => {
                        let value = plain(pair.pop()?);
                        let key = match plain(pair.pop()?) {
                            Value::String(text) => text,
                            other => other.to_string(),
                        };
                        Some((key, value))
                    }
                    _ => None,
                });
                return Value::Object(pairs.collect());
            }
            _ => {}
        }
    }
    Value::Object(
        map.into_iter()
            .filter(|(name, _)| name != "#meta")
            .map(|(name, value)| (name, plain(value)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_are_taken_off() {
        let state = json!({
            "#meta": {"index": 1},
            "term": {"#map": [["n1", {"#bigint": "2"}], [{"#tup": [1, "x"]}, {"#bigint": "99999999999999999999"}]]},
            "msgs": {"#set": [{"tag": "Vote", "value": {"#map": []}}]},
            "odd": {"#map": 3},
        });
        let read = json!({
            "term": {"n1": 2, "[1,\"x\"]": "99999999999999999999"},
            "msgs": [{"tag": "Vote", "value": {}}],
            "odd": {"#map": 3},
        });
        assert_eq!(plain(state), read);
    }
}
