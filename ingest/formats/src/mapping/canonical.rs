//! Values as text that is equal where the values are.

use serde::Serialize;
use serde_json::Value;

use super::template::Found;

/// The value as text that is equal for equal values, whatever the order of keys: JSON with its keys sorted.
pub(super) fn canonical(found: &Found<'_>) -> String {
    let mut out = Vec::with_capacity(64);
    match found {
        Found::Text(text) => write_json(&mut out, text),
        Found::Json(value) => write_sorted(&mut out, value),
    }
    String::from_utf8(out).unwrap_or_default()
}

fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Texts and numbers can always be written as JSON, and into memory.
    let _ = serde_json::to_writer(out, value);
}

fn write_sorted(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            for (i, (key, value)) in entries.into_iter().enumerate() {
                out.push(if i == 0 { b'{' } else { b',' });
                write_json(out, key);
                out.push(b':');
                write_sorted(out, value);
            }
            out.extend_from_slice(if map.is_empty() { b"{}" } else { b"}" });
        }
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_sorted(out, item);
            }
            out.push(b']');
        }
        other => write_json(out, other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        /// The same as sorting the keys and writing the value.
        #[test]
        fn keys_are_sorted(keys in proptest::collection::vec("[a-c\"é]{0,2}", 0..5), text: String, number: f64) {
            let mut value = json!([text, number, null, {}, []]);
            for key in keys {
                value = json!({ key.clone(): value, "b": [{ "z": 1, key: 2 }], "a": true });
            }
            let sorted: std::collections::BTreeMap<String, Value> =
                value.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
            let found = canonical(&Found::from(value.clone()));
            prop_assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), value.clone());
            if value.is_object() {
                let keys: Vec<&String> = sorted.keys().collect();
                let read: serde_json::Map<String, Value> = serde_json::from_str(&found).unwrap();
                prop_assert_eq!(read.keys().collect::<Vec<_>>(), keys);
            }
        }
    }
}
