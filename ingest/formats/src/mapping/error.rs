//! What can be wrong with a mapping.

use std::io;

use demi_common::hint::{nearest, nearest_in_message};

use super::shipped::shipped;

/// Why a mapping cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The file cannot be read.
    #[error("{path}: cannot be read")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is no mapping.
    #[error("{origin}:{line}:{column}: {reason}")]
    File {
        /// File or name of the mapping.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// No mapping of that name comes with the program.
    #[error("there is no mapping '{name}'{}; `demi-lineage ingest mappings` lists them", .nearest.map_or_else(String::new, |n| format!(" (did you mean '{n}'?)")))]
    UnknownName {
        /// As asked for.
        name: String,
        /// The most similar one, if one is similar.
        nearest: Option<&'static str>,
    },
    /// A value does not mean anything.
    #[error("{origin}: {place}: {reason}")]
    Value {
        /// File or name of the mapping.
        origin: String,
        /// Where in it.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

impl MappingError {
    /// What the TOML reader said, with its place and the nearest known key.
    pub(crate) fn file(origin: &str, text: &str, error: &toml::de::Error) -> MappingError {
        let at = error.span().map_or(0, |s| s.start.min(text.len()));
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        let mut reason = error.message().to_owned();
        if let Some(nearest) = nearest_in_message(&reason) {
            reason.push_str(&format!("; did you mean `{nearest}`?"));
        }
        MappingError::File { origin: origin.to_owned(), line, column, reason }
    }

    pub(crate) fn unknown_name(name: &str) -> MappingError {
        let names = shipped().iter().map(|s| s.name);
        MappingError::UnknownName { name: name.to_owned(), nearest: nearest(name, names) }
    }

    /// A bad value at a place of a mapping not named yet.
    pub(crate) fn value(place: impl Into<String>, reason: impl Into<String>) -> MappingError {
        MappingError::Value { origin: "mapping".into(), place: place.into(), reason: reason.into() }
    }

    /// Names the mapping.
    pub(crate) fn of(self, name: &str) -> MappingError {
        match self {
            MappingError::Value { place, reason, .. } => {
                MappingError::Value { origin: name.to_owned(), place, reason }
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mapping;

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest() {
        let text = "name = 'x'\ndescription = ''\n[input]\ncontainer = 'text'\npaterns = ['(?<a>.)']\n";
        let error = Mapping::parse(text, "m.toml").unwrap_err().to_string();
        assert!(error.starts_with("m.toml:5:1: unknown field `paterns`"), "{error}");
        assert!(error.ends_with("did you mean `patterns`?"), "{error}");
        let error = Mapping::parse(&text.replace("'text'", "'txt'"), "m").unwrap_err().to_string();
        assert!(error.contains("did you mean `text`?"), "{error}");
        let error = Mapping::named("shivz").unwrap_err().to_string();
        assert!(error.contains("did you mean 'shiviz'?"), "{error}");
    }
}
