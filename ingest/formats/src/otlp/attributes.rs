//! Values of attributes, out of JSON.

use serde_json::{Map, Number, Value};

use super::Attributes;

/// A number as JSON has it; what JSON has not is text.
pub(super) fn double(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => Value::from("NaN"),
        None if number > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}

/// Attributes of a JSON document: a list of `{"key": …, "value": {"stringValue": …}}`.
pub(super) fn from_json(list: Option<&Value>) -> Result<Attributes, String> {
    let mut attributes = Map::new();
    let Some(list) = list.filter(|l| !l.is_null()) else { return Ok(attributes) };
    let list = list.as_array().ok_or("'attributes' is no list")?;
    for pair in list {
        let key = pair.get("key").and_then(Value::as_str).ok_or("an attribute has no 'key'")?;
        let value = pair.get("value").map_or(Ok(Value::Null), value_from_json);
        attributes.insert(key.to_owned(), value.map_err(|e| format!("attribute '{key}': {e}"))?);
    }
    Ok(attributes)
}

/// A value of a JSON document. Names this version does not know make an empty value, as the specification asks.
pub(super) fn value_from_json(value: &Value) -> Result<Value, String> {
    let Some(map) = value.as_object() else {
        return if value.is_null() { Ok(Value::Null) } else { Err("a value is no object".to_owned()) };
    };
    let either =
        |camel: &str, snake: &str| map.get(camel).or_else(|| map.get(snake)).filter(|v| !v.is_null());
    let list = |v: &Value| match v.get("values") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(values)) => Ok(values.clone()),
        Some(_) => Err("'values' is no list".to_owned()),
    };
    if let Some(text) = either("stringValue", "string_value").or_else(|| either("bytesValue", "bytes_value"))
    {
        return text.as_str().map(Value::from).ok_or_else(|| format!("{text} is no text"));
    }
    if let Some(yes) = either("boolValue", "bool_value") {
        return yes.as_bool().map(Value::from).ok_or_else(|| format!("{yes} is no truth value"));
    }
    if let Some(number) = either("intValue", "int_value") {
        let parsed = number.as_i64().or_else(|| number.as_str()?.trim().parse().ok());
        return parsed.map(Value::from).ok_or_else(|| format!("{number} is no whole number of 64 bits"));
    }
    if let Some(number) = either("doubleValue", "double_value") {
        return match number {
            Value::Number(_) => Ok(double(number.as_f64().unwrap_or(f64::NAN))),
            Value::String(text) if ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) => {
                Ok(Value::from(text.as_str()))
            }
            Value::String(text) if text.parse::<f64>().is_ok() => {
                Ok(double(text.parse().unwrap_or(f64::NAN)))
            }
            _ => Err(format!("{number} is no number")),
        };
    }
    if let Some(array) = either("arrayValue", "array_value") {
        return list(array)?.iter().map(value_from_json).collect();
    }
    if let Some(pairs) = either("kvlistValue", "kvlist_value") {
        return from_json(Some(&Value::Array(list(pairs)?))).map(Value::Object);
    }
    Ok(Value::Null)
}

/// The attribute as text, if it is there and not empty.
pub(super) fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}
