//! The shape of a value that templates make.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// A template, or a table or list of them.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Shape {
    /// A template; one that is a single `{name}` keeps the type of the value.
    Template(String),
    /// An object; what has no value is left out.
    Table(BTreeMap<String, Shape>),
    /// A list.
    List(Vec<Shape>),
}
