//! Which model a scenario means: one of the program by its name, or one that runs in a process of its own.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Seconds that an answer of a child may take where the scenario does not say.
pub const ANSWER_SECONDS: u32 = 10;

/// A model, as a scenario names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelRef {
    /// The name of a model of the program.
    Name(String),
    /// A model in any language that speaks the model protocol.
    Child(ChildModel),
}

/// A model in a process of its own: exactly one of `command` and `socket`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildModel {
    /// The program and its arguments, run in the present folder; it speaks over standard input and output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The path of a Unix socket on which the model listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// The command is a program as it is, a Maelstrom node, of which so many run, `n0` and so on; or the names of those that do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<ProgramNodes>,
    /// Largest number of children or connections side by side; the number of cores where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<u32>,
    /// How many seconds an answer may take; 10 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

/// The nodes of a program as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number of nodes, or a list of their names")]
pub enum ProgramNodes {
    /// So many: `n0`, `n1`, ...
    Count(u32),
    /// By their names.
    Named(Vec<String>),
}

impl ProgramNodes {
    /// Their names: one node at least.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            ProgramNodes::Named(names) if !names.is_empty() => names.clone(),
            ProgramNodes::Named(_) => ProgramNodes::Count(1).names(),
            ProgramNodes::Count(count) => (0..(*count).max(1)).map(|n| format!("n{n}")).collect(),
        }
    }
}

impl ModelRef {
    /// The name; of a child it is `command` or `socket`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            ModelRef::Name(name) => name,
            ModelRef::Child(child) if child.socket.is_some() => "socket",
            ModelRef::Child(_) => "command",
        }
    }

    /// Seconds that a child is waited for, if it is one.
    #[must_use]
    pub fn patience(&self) -> Option<u32> {
        self.child().map(|child| child.timeout_seconds.unwrap_or(ANSWER_SECONDS).max(1))
    }

    /// The model in a process of its own, if it is one.
    #[must_use]
    pub fn child(&self) -> Option<&ChildModel> {
        match self {
            ModelRef::Name(_) => None,
            ModelRef::Child(child) => Some(child),
        }
    }
}

impl From<&str> for ModelRef {
    fn from(name: &str) -> Self {
        ModelRef::Name(name.to_owned())
    }
}

impl From<String> for ModelRef {
    fn from(name: String) -> Self {
        ModelRef::Name(name)
    }
}

impl PartialEq<str> for ModelRef {
    fn eq(&self, name: &str) -> bool {
        matches!(self, ModelRef::Name(own) if own == name)
    }
}

impl PartialEq<&str> for ModelRef {
    fn eq(&self, name: &&str) -> bool {
        *self == **name
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelRef::Name(name) => f.write_str(name),
            ModelRef::Child(ChildModel { socket: Some(path), .. }) => f.write_str(path),
            ModelRef::Child(child) => f.write_str(&child.command.join(" ")),
        }
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ModelRef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a model, or a table with 'command' or 'socket'")
            }

            fn visit_str<E>(self, name: &str) -> Result<ModelRef, E> {
                Ok(name.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelRef, A::Error> {
                let child = ChildModel::deserialize(MapAccessDeserializer::new(map))?;
                if child.command.is_empty() == child.socket.is_none() {
                    return Err(serde::de::Error::custom("a model has either 'command' or 'socket'"));
                }
                Ok(ModelRef::Child(child))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
