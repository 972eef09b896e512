//! What is found in a history, and when two values are one.

use serde_json::Value;

/// Something that a history breaks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Anomaly {
    /// What it is called: without keys and values, so that the same anomaly has the same name in every history.
    pub name: &'static str,
    /// Where it is, for people.
    pub told: String,
}

impl Anomaly {
    pub(crate) fn new(name: &'static str, told: String) -> Anomaly {
        Anomaly { name, told }
    }
}

/// A value as text by which equal ones are found: numbers by value, objects by sorted keys.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        // Without `arbitrary_precision` 1.0 and 1 are written apart.
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                format!("{}", float as i64)
            }
            _ => number.to_string(),
        },
        Value::Array(all) => format!("[{}]", all.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(all) => {
            let mut parts: Vec<String> = all
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            parts.sort_unstable();
            format!("{{{}}}", parts.join(","))
        }
        other => other.to_string(),
    }
}
