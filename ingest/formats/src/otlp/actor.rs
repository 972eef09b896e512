//! Who did it.

use serde_json::Value;

use super::{Attributes, OtlpOptions, Surroundings};

/// The name of those whose telemetry does not name them, as the specification of resources has it.
const UNKNOWN: &str = "unknown_service";

/// The actor that a span or log record with these attributes belongs to.
pub(super) fn actor(own: &Attributes, around: &Surroundings, options: &OtlpOptions) -> String {
    let mut name = String::new();
    for key in &options.actor_by {
        let places = [own, &around.scope_attributes, &around.resource];
        let value = match places.iter().find_map(|place| place.get(key)) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => continue,
        };
        if value.is_empty() {
            continue;
        }
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(&value);
    }
    if name.is_empty() { UNKNOWN.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attributes(value: Value) -> Attributes {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_nearest_attribute_counts() {
        let around = Surroundings {
            resource: attributes(
                json!({"service.name": "shop", "service.instance.id": "i-1", "thread.id": 1}),
            ),
            scope: String::new(),
            scope_attributes: attributes(json!({"thread.id": 2})),
        };
        let options = OtlpOptions::default();
        assert_eq!(actor(&Attributes::new(), &around, &options), "shop/i-1");
        let by_thread = OtlpOptions { actor_by: vec!["service.name".into(), "thread.id".into()], ..options };
        assert_eq!(actor(&Attributes::new(), &around, &by_thread), "shop/2");
        assert_eq!(actor(&attributes(json!({"thread.id": 3})), &around, &by_thread), "shop/3");
    }

    #[test]
    fn nobody_has_a_name_too() {
        let around =
            Surroundings { resource: attributes(json!({"service.name": " "})), ..Surroundings::default() };
        assert_eq!(actor(&Attributes::new(), &around, &OtlpOptions::default()), "unknown_service");
    }
}
