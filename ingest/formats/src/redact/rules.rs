//! One rule: what it is about, what it finds, and what it leaves instead.

use std::borrow::Cow;
use std::path::PathBuf;

use regex::Regex;
use serde::Deserialize;

use super::hash;

/// Fields that order events, or say what they are.
const FIXED: [&str; 12] = [
    "actor",
    "seq",
    "kind",
    "msg_id",
    "from",
    "to",
    "type",
    "incarnation",
    "system",
    "via",
    "external",
    "vector_clock",
];
/// Fields that whoever reads a log sets.
const PLACE: [&str; 2] = ["source", "offset"];

/// The table as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// The file of the key for hashes.
    pub key_file: Option<PathBuf>,
    #[serde(default)]
    pub rules: Vec<WrittenRule>,
}

/// A rule as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRule {
    system: Option<String>,
    #[serde(rename = "type")]
    type_: Option<String>,
    field: Option<String>,
    pattern: Option<String>,
    replace: Option<String>,
    #[serde(default)]
    hash: bool,
}

/// What a rule finds.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// What a path leads to.
    Field(Vec<String>),
    /// Every match in a text.
    Pattern(Regex),
}

/// What is left instead.
#[derive(Clone, Debug)]
enum Instead {
    /// Nothing of a field, `[redacted]` of a match.
    Nothing,
    /// A text.
    Text(String),
    /// A hash of what was there.
    Hash([u8; 32]),
}

/// A rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    system: Option<String>,
    type_: Option<String>,
    pub target: Target,
    instead: Instead,
}

impl Rule {
    /// The rule as it is written, and the key.
    pub fn new(written: WrittenRule, key: Option<&[u8; 32]>) -> Result<Rule, String> {
        let target = match (written.field, written.pattern) {
            (Some(field), None) => {
                let path: Vec<String> = field.split('.').map(str::to_owned).collect();
                if path.iter().any(String::is_empty) {
                    return Err(format!("field = '{field}' has an empty part"));
                }
                if FIXED.contains(&path[0].as_str()) {
                    return Err(format!("'{}' tells the order of events and cannot be redacted", path[0]));
                }
                if PLACE.contains(&path[0].as_str()) {
                    return Err(format!("'{}' tells where a record stands and cannot be redacted", path[0]));
                }
                Target::Field(path)
            }
            (None, Some(pattern)) => {
                let found = Regex::new(&pattern).map_err(|e| format!("pattern = '{pattern}': {e}"))?;
                if found.is_match("") {
                    return Err(format!("pattern = '{pattern}' matches where there is nothing"));
                }
                Target::Pattern(found)
            }
            _ => return Err("it needs either field or pattern".to_owned()),
        };
        let instead = match (written.hash, written.replace) {
            (true, Some(_)) => return Err("it has both hash and replace".to_owned()),
            (true, None) => Instead::Hash(
                *key.ok_or("hash = true needs key_file in [redact]: without a key, guesses can be tried")?,
            ),
            (false, Some(text)) => Instead::Text(text),
            (false, None) => Instead::Nothing,
        };
        Ok(Rule { system: written.system, type_: written.type_, target, instead })
    }

    /// Whether the rule is about records of a type.
    pub fn is_about(&self, system: &str, type_: Option<&str>) -> bool {
        self.is_about_system(system) && self.type_.as_deref().is_none_or(|wanted| type_ == Some(wanted))
    }

    /// Whether the rule is about a system, or an execution of one (`SYSTEM/NAME`).
    pub fn is_about_system(&self, system: &str) -> bool {
        self.system.as_deref().is_none_or(|wanted| {
            system == wanted || system.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
        })
    }

    /// What stands instead of the text of a field; nothing where the field goes.
    pub fn instead(&self, text: &str) -> Option<String> {
        match &self.instead {
            Instead::Nothing => None,
            Instead::Text(instead) => Some(instead.clone()),
            Instead::Hash(key) => Some(hash(key, text)),
        }
    }

    /// Replaces what the pattern finds.
    pub fn replace_in(&self, text: &mut String) {
        let mut cow = Cow::Borrowed(text.as_str());
        self.replace_in_cow(&mut cow);
        if let Cow::Owned(new) = cow {
            *text = new;
        }
    }

    /// The same of a text that may be borrowed.
    pub fn replace_in_cow(&self, text: &mut Cow<'_, str>) {
        let Target::Pattern(pattern) = &self.target else { return };
        let instead =
            |found: &regex::Captures<'_>| self.instead(&found[0]).unwrap_or_else(|| "[redacted]".to_owned());
        if let Cow::Owned(new) = pattern.replace_all(text, instead) {
            *text = Cow::Owned(new);
        }
    }
}
