//! Where sequence numbers come from, and what gaps between them mean.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What a number that is not there means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// That an event is missing.
    #[default]
    Missing,
    /// Nothing: numbers are sparse by design, as those that come from a clock.
    Normal,
}

/// A sequence number: a template, or one with what gaps mean.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(untagged)]
pub enum Seq {
    /// A template.
    Template(String),
    /// With what gaps mean.
    Told(ToldSeq),
}

/// `seq = { value = "{id}", gaps = "normal" }`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToldSeq {
    /// A template.
    pub value: String,
    /// What a number that is not there means.
    #[serde(default)]
    pub gaps: Gaps,
}

impl Seq {
    /// The template.
    #[must_use]
    pub fn value(&self) -> &str {
        match self {
            Seq::Template(text) => text,
            Seq::Told(told) => &told.value,
        }
    }

    /// What gaps mean.
    #[must_use]
    pub fn gaps(&self) -> Gaps {
        match self {
            Seq::Template(_) => Gaps::default(),
            Seq::Told(told) => told.gaps,
        }
    }
}

impl<'de> Deserialize<'de> for Seq {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Seq;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a template in quotation marks, or { value = \"…\", gaps = \"normal\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Seq, E> {
        Ok(Seq::Template(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Seq, A::Error> {
        ToldSeq::deserialize(MapAccessDeserializer::new(map)).map(Seq::Told)
    }
}
