//! Redaction: what a log says of people and secrets is removed or hashed before anything is written.
//!
//! Rules are in the table `[redact]` of a TOML file, the daemon's configuration or another. They change contents: type,
//! payload, fingerprint, `fields`, `state`, timers and unknown fields. What orders events (actor, sequence number, message id,
//! addresses) stays. Equal contents stay equal, so that messages are still matched by content where they have no ids.

mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use demi_schemas::EventRecord;
use demi_schemas::event::TimerInfo;
use serde_json::{Map, Value};

use self::rules::{Rule, Target, Written};
use crate::secret_file::{self, Holds};

/// Bytes of a key at least.
const LEAST_KEY: usize = 16;
/// Says what the key is derived for (BLAKE3, section 2.3: key derivation).
const CONTEXT: &str = "demi-lineage 2026 redaction of event records";
/// Hexadecimal digits of a hash: 128 bits.
const DIGITS: usize = 32;

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// A file cannot be read, or is not only its owner's to write.
    #[error("{}: {reason}", .path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is no TOML, or has no such rules.
    #[error("{0}")]
    Table(String),
    /// A rule makes no sense.
    #[error("[redact] rule {number}: {reason}")]
    Rule {
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// The key is too short to hide anything.
    #[error("{path}: a key has at least {LEAST_KEY} bytes, this one has {bytes}")]
    Key {
        /// Its file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
}

/// The rules, ready to be applied.
#[derive(Clone, Debug)]
pub struct Redaction {
    rules: Vec<Rule>,
}

impl Redaction {
    /// Reads the table `[redact]` of a file; other tables are not looked at.
    ///
    /// # Errors
    /// When there is none, every user of the machine may write the file, or its rules cannot be used.
    pub fn read(path: &Path) -> Result<Self, RedactError> {
        // Who writes the rules decides what is hidden.
        let bytes = secret_file::read(path, Holds::Public)
            .map_err(|reason| RedactError::Untrusted { path: path.to_owned(), reason })?;
        let named = |reason: String| RedactError::Table(format!("{}: {reason}", path.display()));
        let text = String::from_utf8(bytes).map_err(|_| named("this is no text".to_owned()))?;
        let mut root: toml::Table =
            text.parse().map_err(|e: toml::de::Error| named(e.to_string().trim_end().to_owned()))?;
        let table = root.remove("redact").ok_or_else(|| named("there is no table [redact]".to_owned()))?;
        Redaction::new(table)
    }

    /// The rules of the table.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn new(table: toml::Value) -> Result<Self, RedactError> {
        let written: Written = table
            .try_into()
            .map_err(|e| RedactError::Table(format!("[redact]: {e}").trim_end().to_owned()))?;
        let key = written.key_file.as_deref().map(key).transpose()?;
        let rules = written.rules.into_iter().enumerate();
        let rules = rules.map(|(at, rule)| {
            Rule::new(rule, key.as_ref()).map_err(|reason| RedactError::Rule { number: at + 1, reason })
        });
        let rules = rules.collect::<Result<Vec<_>, _>>()?;
        if rules.is_empty() {
            return Err(RedactError::Table("[redact] has no rules: add [[redact.rules]]".to_owned()));
        }
        Ok(Redaction { rules })
    }

    /// Redacts a record of a system.
    pub fn record(&self, system: &str, record: &mut EventRecord) {
        for rule in &self.rules {
            if !rule.is_about(system, record.type_.as_deref()) {
                continue;
            }
            match &rule.target {
                Target::Field(path) => field(rule, path, record),
                Target::Pattern(_) => {
                    let texts = [&mut record.type_, &mut record.payload, &mut record.fingerprint];
                    let texts = texts.into_iter().flatten();
                    texts.for_each(|text| rule.replace_in(text));
                    let values = [&mut record.fields, &mut record.state].into_iter().flatten();
                    values.chain(record.attrs.values_mut()).for_each(|value| patterns(rule, value));
                    if let Some(TimerInfo { name, message, attrs, .. }) = &mut record.timer {
                        [name, message].into_iter().flatten().for_each(|text| rule.replace_in(text));
                        attrs.values_mut().for_each(|value| patterns(rule, value));
                    }
                }
            }
        }
    }

    /// A text that quotes a line, with what patterns find replaced. It may be about any type of message.
    #[must_use]
    pub fn text<'a>(&self, system: &str, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for rule in self.rules.iter().filter(|rule| rule.is_about_system(system)) {
            rule.replace_in_cow(&mut text);
        }
        text
    }

    /// The bytes of a line that is no record, as far as they may be kept: with what patterns find replaced, and none of them
    /// where a rule names a field, for in such a line nobody knows where the fields are.
    #[must_use]
    pub fn raw(&self, system: &str, raw: &[u8]) -> Vec<u8> {
        let mut of_system = self.rules.iter().filter(|rule| rule.is_about_system(system));
        if of_system.any(|rule| matches!(rule.target, Target::Field(_))) {
            return Vec::new();
        }
        self.text(system, &String::from_utf8_lossy(raw)).into_owned().into_bytes()
    }
}

/// The key that hashes are made with.
fn key(path: &Path) -> Result<[u8; 32], RedactError> {
    let bytes = secret_file::read(path, Holds::Secret)
        .map_err(|reason| RedactError::Untrusted { path: path.to_owned(), reason })?;
    let bytes = bytes.trim_ascii_end();
    if bytes.len() < LEAST_KEY {
        return Err(RedactError::Key { path: path.to_owned(), bytes: bytes.len() });
    }
    Ok(blake3::derive_key(CONTEXT, bytes))
}

/// A hash that nobody without the key can compare with a guess.
fn hash(key: &[u8; 32], text: &str) -> String {
    let digits = blake3::keyed_hash(key, text.as_bytes()).to_hex();
    format!("h:{}", &digits[..DIGITS])
}

/// Applies a rule about a field.
fn field(rule: &Rule, path: &[String], record: &mut EventRecord) {
    let Some((first, rest)) = path.split_first() else { return };
    match (first.as_str(), rest) {
        ("payload", []) => {
            // What decides whether two messages are the same must not tell what the payload said.
            [&mut record.payload, &mut record.fingerprint].into_iter().flatten().for_each(|text| {
                *text = rule.instead(text).unwrap_or_default();
            });
        }
        ("payload", rest) => {
            for text in [&mut record.payload, &mut record.fingerprint].into_iter().flatten() {
                if let Ok(mut value) = serde_json::from_str::<Value>(text)
                    && at_path(rule, rest, &mut value)
                {
                    *text = value.to_string();
                }
            }
        }
        ("fingerprint", []) => {
            record.fingerprint = record.fingerprint.take().and_then(|text| rule.instead(&text));
        }
        ("fields", rest) => whole(rule, rest, &mut record.fields),
        ("state", rest) => whole(rule, rest, &mut record.state),
        ("time", rest) => whole(rule, rest, &mut record.time),
        ("timer", rest) => {
            let mut value = record.timer.take().and_then(|timer| serde_json::to_value(timer).ok());
            whole(rule, rest, &mut value);
            // A timer with a text where a number belongs is none: then nothing is kept of it.
            record.timer = value.and_then(|value| serde_json::from_value(value).ok());
        }
        (name, rest) => {
            let mut value = record.attrs.remove(name);
            whole(rule, rest, &mut value);
            record.attrs.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
}

/// Applies a rule to a value, or to what a path leads to in it.
fn whole(rule: &Rule, path: &[String], value: &mut Option<Value>) {
    match (value.as_mut(), path) {
        (None, _) => {}
        (Some(found), []) => *value = rule.instead(&plain(found)).map(Value::String),
        (Some(found), path) => {
            at_path(rule, path, found);
        }
    }
}

/// Applies a rule to all that a path leads to, through lists as well; says whether it led to anything.
fn at_path(rule: &Rule, path: &[String], value: &mut Value) -> bool {
    match (value, path) {
        (Value::Array(items), path) => {
            // All of them, whether or not one before had the field.
            let found = items.iter_mut().filter_map(|item| at_path(rule, path, item).then_some(())).count();
            found > 0
        }
        (Value::Object(map), [last]) => {
            let Some(found) = map.get_mut(last) else { return false };
            match rule.instead(&plain(found)) {
                Some(text) => *found = Value::String(text),
                None => {
                    map.remove(last);
                }
            }
            true
        }
        (Value::Object(map), [first, rest @ ..]) => {
            map.get_mut(first).is_some_and(|inner| at_path(rule, rest, inner))
        }
        _ => false,
    }
}

/// The text of a value, without quotes where it is one.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Applies a pattern to all texts of a value: keys, numbers and texts.
fn patterns(rule: &Rule, value: &mut Value) {
    match value {
        Value::String(text) => rule.replace_in(text),
        Value::Number(number) => {
            let mut text = number.to_string();
            rule.replace_in(&mut text);
            if text != number.to_string() {
                *value = Value::String(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| patterns(rule, item)),
        Value::Object(map) => {
            map.values_mut().for_each(|inner| patterns(rule, inner));
            let keys: BTreeMap<String, String> = map
                .keys()
                .filter_map(|key| {
                    let mut new = key.clone();
                    rule.replace_in(&mut new);
                    (new != *key).then(|| (key.clone(), new))
                })
                .collect();
            if !keys.is_empty() {
                let renamed = std::mem::take(map).into_iter();
                let renamed = renamed.map(|(key, inner)| (keys.get(&key).cloned().unwrap_or(key), inner));
                *map = renamed.collect::<Map<_, _>>();
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}
