//! Invariants in a file: what `infer` writes, people review, and `check` reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::from_toml;

/// The mark of the format.
pub const FORMAT: &str = "demi-invariants/1";

/// A file of invariants, in TOML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvariantsFile {
    /// The format: `demi-invariants/1`.
    pub schema: String,
    /// The invariants.
    #[serde(default, rename = "invariant", skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<InvariantEntry>,
}

/// An invariant. One that a person writes needs `holds` only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvariantEntry {
    /// Its name for machines: template and a digest of class and predicate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Its name for people, and in fingerprints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The predicate.
    pub holds: String,
    /// A pattern of the names of the actors that it is about, as a shell has it: `*`, `?`, `[..]`. Without one it is about all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// What people think of it.
    #[serde(default)]
    pub status: Standing,
    /// How much speaks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<f64>,
    /// How often it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<u64>,
    /// How many executions it held of, those held out included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// Ids of others that imply it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed_by: Vec<String>,
}

/// What people think of an invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nobody has looked at it.
    #[default]
    Inferred,
    /// It is meant to hold.
    Confirmed,
    /// It is not to be checked.
    Muted,
}

/// An error of reading a file of invariants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvariantsError {
    /// It is no TOML of that shape.
    #[error("{0}")]
    Toml(String),
    /// It is of another format.
    #[error("the format is '{0}', not '{FORMAT}'")]
    Format(String),
}

impl InvariantsFile {
    /// A file of these invariants.
    #[must_use]
    pub fn new(invariants: Vec<InvariantEntry>) -> InvariantsFile {
        InvariantsFile { schema: FORMAT.to_owned(), invariants }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When the text is no TOML of that shape, or of another format.
    pub fn parse(text: &str) -> Result<InvariantsFile, InvariantsError> {
        let file: InvariantsFile = from_toml(text).map_err(InvariantsError::Toml)?;
        if file.schema != FORMAT {
            return Err(InvariantsError::Format(file.schema));
        }
        Ok(file)
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ones_own_is_enough_and_what_is_written_is_read() {
        let text = "schema = \"demi-invariants/1\"\n[[invariant]]\nholds = \"x > 1\"\n";
        let file = InvariantsFile::parse(text).unwrap();
        assert_eq!(file.invariants[0].status, Standing::Inferred);
        let entry = InvariantEntry {
            id: "owner-1".into(),
            name: Some("one".into()),
            holds: "role <> 'it''s' OR \"a b\" > 1".into(),
            class: Some("n-*".into()),
            status: Standing::Muted,
            bits: Some(12.5),
            episodes: Some(3),
            executions: Some(2),
            shadowed_by: vec!["x".into()],
        };
        let file = InvariantsFile::new(vec![entry]);
        assert_eq!(InvariantsFile::parse(&file.to_text()), Ok(file));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(InvariantsFile::parse("schema = \"x/1\""), Err(InvariantsError::Format(_))));
        let error =
            InvariantsFile::parse("schema = \"demi-invariants/1\"\n[[invariant]]\nhold = 1").unwrap_err();
        assert!(error.to_string().contains("did you mean 'holds'"), "{error}");
    }
}
