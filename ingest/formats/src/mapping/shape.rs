//! The shape of a value that templates make.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// A template, a constant, or a table or list of them.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[serde(untagged)]
pub enum Shape {
    /// A template; one that is a single `{name}` keeps the type of the value.
    Template(String),
    /// An object; what has no value is left out.
    Table(BTreeMap<String, Shape>),
    /// A list.
    List(Vec<Shape>),
    /// A number or truth value that is the same in every event.
    Constant(Value),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

/// Reads a shape; what is none is named in an error of its own.
struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a template in quotation marks, a number, true or false, or a table or list of these")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Template(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Shape, E> {
        Ok(Shape::Constant(Value::from(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Shape, E> {
        Ok(Shape::Constant(Value::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Shape, E> {
        Ok(Shape::Constant(Value::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Shape, E> {
        let number = Number::from_f64(value)
            .ok_or_else(|| E::custom(format!("{value} cannot be a value of a record")))?;
        Ok(Shape::Constant(Value::Number(number)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Shape::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Shape, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = table.next_entry::<String, Shape>()? {
            // This is how the TOML reader hands out a date.
            if name == "$__toml_private_datetime" {
                return Err(A::Error::custom("a date stands in quotation marks here, as text"));
            }
            members.insert(name, value);
        }
        Ok(Shape::Table(members))
    }
}
