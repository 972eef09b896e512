//! The name of an incident: a hash of what caused it, so that the same cause has the same name wherever it is seen.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The digits of Crockford's base 32: none can be taken for another.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Digits of an id.
const LENGTH: usize = 26;
/// Digits of its short form.
const SHORT: usize = 6;

/// The name of an incident: 128 bits, written as 26 digits of Crockford's base 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncidentId(u128);

impl IncidentId {
    /// The id of what these parts name together. Parts are kept apart: `["a", "bc"]` and `["ab", "c"]` are two things.
    #[must_use]
    pub fn of(parts: &[&str]) -> Self {
        IncidentId(u128::from_le_bytes(digest_of(parts)))
    }

    /// What people call it: `I-` and its first digits.
    #[must_use]
    pub fn short(self) -> String {
        format!("I-{}", &self.to_string()[..SHORT])
    }
}

/// 128 bits of the BLAKE3 of some parts, each with its length.
#[must_use]
pub fn digest_of<S: AsRef<[u8]>>(parts: &[S]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        let part = part.as_ref();
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    bytes
}

/// [`digest_of`] as 32 digits of base 16.
#[must_use]
pub fn hex_of<S: AsRef<[u8]>>(parts: &[S]) -> String {
    digest_of(parts).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for IncidentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (0..LENGTH).rev().map(|at| char::from(DIGITS[(self.0 >> (5 * at)) as usize & 31]));
        f.write_str(&digits.collect::<String>())
    }
}

impl fmt::Debug for IncidentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no id of an incident.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no id of an incident: it has {LENGTH} digits, such as 1F0C4X0VV7N0G3T7H3W2S5Q8ZK")]
pub struct NoId;

impl FromStr for IncidentId {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        if text.len() != LENGTH {
            return Err(NoId);
        }
        let mut number: u128 = 0;
        for byte in text.bytes() {
            let digit = DIGITS.iter().position(|digit| *digit == byte.to_ascii_uppercase()).ok_or(NoId)?;
            number = number.checked_mul(32).ok_or(NoId)? | digit as u128;
        }
        Ok(IncidentId(number))
    }
}

impl Serialize for IncidentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IncidentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for IncidentId {
    fn schema_name() -> Cow<'static, str> {
        "IncidentId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of an incident.",
            "minLength": LENGTH,
            "maxLength": LENGTH,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_is_read_as_it_was_written(number in any::<u128>()) {
            let id = IncidentId(number);
            prop_assert_eq!(id.to_string().parse::<IncidentId>(), Ok(id));
            prop_assert_eq!(id.to_string().to_lowercase().parse::<IncidentId>(), Ok(id));
        }

        #[test]
        fn other_texts_are_no_ids(text in "[0-9A-Za-z/.]{0,30}") {
            if let Ok(id) = text.parse::<IncidentId>() {
                prop_assert_eq!(id.to_string(), text.to_uppercase());
            }
        }
    }

    #[test]
    fn parts_are_kept_apart() {
        assert_ne!(IncidentId::of(&["a", "bc"]), IncidentId::of(&["ab", "c"]));
        assert_ne!(IncidentId::of(&["a"]), IncidentId::of(&["a", ""]));
        assert_eq!(IncidentId::of(&["a"]).short().len(), 8);
    }
}
