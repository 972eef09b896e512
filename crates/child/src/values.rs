//! JSON values as states and messages: canonical, shared, and compared by content.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

/// A JSON value in its one canonical text: keys in order, no spaces.
#[derive(Clone, Debug)]
pub(crate) struct Canonical {
    pub(crate) text: Arc<str>,
    /// Of the text. Two texts with one hash of 128 bits are taken for equal.
    pub(crate) hash: u128,
}

impl Canonical {
    pub(crate) fn of(value: &Value) -> Canonical {
        let mut text = String::new();
        write(value, &mut text);
        Canonical::text(&text)
    }

    pub(crate) fn text(text: &str) -> Canonical {
        Canonical { hash: xxh3_128(text.as_bytes()), text: text.into() }
    }
}

impl PartialEq for Canonical {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Canonical {}

impl Hash for Canonical {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// A number from several hashes, in their order.
pub(crate) fn mixed(parts: &[u128]) -> u128 {
    let mut bytes = Vec::with_capacity(parts.len() * 16);
    parts.iter().for_each(|part| bytes.extend_from_slice(&part.to_le_bytes()));
    xxh3_128(&bytes)
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(key));
                out.push(':');
                write(&fields[key], out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Canonical;

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let one = Canonical::of(&json!({"b": [1, {"y": 2, "x": "é\n"}], "a": null}));
        let same = Canonical::of(&json!({"a": null, "b": [1, {"x": "é\n", "y": 2}]}));
        assert_eq!(one, same);
        assert_eq!(&*one.text, r#"{"a":null,"b":[1,{"x":"é\n","y":2}]}"#);
        assert_ne!(one, Canonical::of(&json!({"a": null, "b": [{"x": "é\n", "y": 2}, 1]})));
        assert_ne!(Canonical::of(&json!(1)), Canonical::of(&json!("1")));
    }
}
