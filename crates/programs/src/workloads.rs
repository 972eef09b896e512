//! What clients do to a program, and the property that their history must have.
//!
//! The workloads are Maelstrom's: requests, answers and error codes are those of its protocol.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use crate::book::{Book, Event, Operation, Outcome};
use crate::register::{Action, Interval, is_linearizable};

/// Names of the workloads.
pub const WORKLOADS: [&str; 3] = ["echo", "unique-ids", "lin-kv"];

/// What clients do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// An answer equals its request.
    Echo,
    /// No identifier is given twice.
    UniqueIds,
    /// Registers by key, which are linearizable.
    LinKv {
        /// How many keys there are.
        keys: u64,
    },
}

impl Workload {
    /// The workload of a name.
    #[must_use]
    pub fn named(name: &str, keys: u64) -> Option<Workload> {
        match name {
            "echo" => Some(Workload::Echo),
            "unique-ids" => Some(Workload::UniqueIds),
            "lin-kv" => Some(Workload::LinKv { keys: keys.max(1) }),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Workload::Echo => "echo",
            Workload::UniqueIds => "unique-ids",
            Workload::LinKv { .. } => "lin-kv",
        }
    }

    /// The operation of a number; `choice` is a uniformly random number.
    #[must_use]
    pub fn operation(&self, id: u64, choice: u64) -> Operation {
        let (f, value) = match self {
            Workload::Echo => ("echo", Value::from(format!("please echo {id}"))),
            Workload::UniqueIds => ("generate", Value::Null),
            Workload::LinKv { keys } => {
                let key = choice / 16 % keys;
                // A value is written once, so that a read says which write it saw; what is swapped was written not long ago.
                match choice % 8 {
                    0..=3 => ("read", json!([key, null])),
                    4..=6 => ("write", json!([key, id])),
                    _ => ("cas", json!([key, [id.saturating_sub(1 + choice / 256 % 4), id]])),
                }
            }
        };
        Operation { id, f: f.to_owned(), value }
    }

    /// The body of a request.
    ///
    /// # Errors
    /// When the workload has no such operation.
    pub fn request(&self, operation: &Operation) -> Result<Value, String> {
        let none = || {
            format!(
                "the workload '{}' has no operation '{}' of {}",
                self.name(),
                operation.f,
                operation.value
            )
        };
        let id = operation.id;
        Ok(match (self, operation.f.as_str()) {
            (Workload::Echo, "echo") => json!({ "type": "echo", "msg_id": id, "echo": operation.value }),
            (Workload::UniqueIds, "generate") => json!({ "type": "generate", "msg_id": id }),
            (Workload::LinKv { .. }, f) => {
                let (key, value) = pair(&operation.value).ok_or_else(none)?;
                match f {
                    "read" => json!({ "type": "read", "msg_id": id, "key": key }),
                    "write" => json!({ "type": "write", "msg_id": id, "key": key, "value": value }),
                    "cas" => {
                        let (from, to) = pair(value).ok_or_else(none)?;
                        json!({ "type": "cas", "msg_id": id, "key": key, "from": from, "to": to })
                    }
                    _ => return Err(none()),
                }
            }
            _ => return Err(none()),
        })
    }

    /// What an answer means.
    ///
    /// # Errors
    /// When the protocol knows no such answer to that operation.
    pub fn outcome(&self, operation: &Operation, body: &Value) -> Result<Outcome, String> {
        let type_ = body.get("type").and_then(Value::as_str).unwrap_or_default();
        if type_ == "error" {
            let code = body.get("code").and_then(Value::as_u64);
            let text = body.get("text").and_then(Value::as_str).unwrap_or_default();
            let told = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
            let told = format!("{told} {text}").trim().to_owned();
            // An empty register is read as an error.
            if let (Workload::LinKv { .. }, "read", Some(20)) = (self, operation.f.as_str(), code) {
                let key = pair(&operation.value).map_or(&Value::Null, |(key, _)| key);
                return Ok(Outcome::Done(json!([key, null])));
            }
            return Ok(if code.is_some_and(is_definite) {
                Outcome::Refused(told)
            } else {
                Outcome::Unknown(told)
            });
        }
        let expected = format!("{}_ok", operation.f);
        if type_ != expected {
            return Err(format!("an answer of type '{type_}' to '{}'", operation.f));
        }
        let field = |name: &str| {
            body.get(name).cloned().ok_or_else(|| format!("an answer '{expected}' without '{name}'"))
        };
        Ok(Outcome::Done(match (self, operation.f.as_str()) {
            (Workload::Echo, _) => field("echo")?,
            (Workload::UniqueIds, _) => field("id")?,
            (Workload::LinKv { .. }, "read") => {
                let key = pair(&operation.value).map_or(&Value::Null, |(key, _)| key);
                json!([key, field("value")?])
            }
            (Workload::LinKv { .. }, _) => operation.value.clone(),
        }))
    }

    /// What of the property a history breaks: names without keys and values.
    #[must_use]
    pub fn check(&self, book: &Book) -> Vec<String> {
        if let Some(broken) = book.broken() {
            return vec![format!("{}/protocol: {broken}", self.name())];
        }
        let broken = match self {
            Workload::Echo => echoes_differ(book).then_some("an answer is not its request"),
            Workload::UniqueIds => comes_twice(book).then_some("an identifier was given twice"),
            Workload::LinKv { .. } => (!registers_hold(book)).then_some("not linearizable"),
        };
        broken.map(|what| format!("{}/{what}", self.name())).into_iter().collect()
    }
}

/// Whether an error says that the operation was not done: the table of Maelstrom's protocol. What it does not know is indefinite.
fn is_definite(code: u64) -> bool {
    matches!(code, 1 | 10 | 11 | 12 | 14 | 20 | 21 | 22 | 30)
}

fn pair(value: &Value) -> Option<(&Value, &Value)> {
    match value.as_array()?.as_slice() {
        [first, second] => Some((first, second)),
        _ => None,
    }
}

/// An operation: its place in the history, and where it ended and how.
type Whole<'a> = (usize, &'a Operation, Option<(usize, &'a Outcome)>);

/// Operations with what became of them, by their begin.
fn operations(book: &Book) -> Vec<Whole<'_>> {
    let mut all: Vec<Whole<'_>> = Vec::new();
    let mut open: FxHashMap<u16, usize> = FxHashMap::default();
    for (at, event) in book.events().iter().enumerate() {
        match event {
            Event::Invoked(process, operation) => {
                open.insert(*process, all.len());
                all.push((at, operation, None));
            }
            Event::Ended(process, outcome) => {
                if let Some(place) = open.remove(process) {
                    all[place].2 = Some((at, outcome));
                }
            }
        }
    }
    all
}

fn echoes_differ(book: &Book) -> bool {
    operations(book).iter().any(
        |(_, operation, end)| matches!(end, Some((_, Outcome::Done(value))) if *value != operation.value),
    )
}

fn comes_twice(book: &Book) -> bool {
    let mut seen = FxHashSet::default();
    operations(book).iter().any(|(_, _, end)| match end {
        Some((_, Outcome::Done(value))) => !seen.insert(value.to_string()),
        _ => false,
    })
}

/// Key by key, since linearizability is local (Herlihy and Wing, TOPLAS 1990).
fn registers_hold(book: &Book) -> bool {
    let mut by_key: FxHashMap<String, Vec<Interval>> = FxHashMap::default();
    for (begin, operation, end) in operations(book) {
        let Some((key, value)) = pair(&operation.value) else { continue };
        let (end, read) = match end {
            Some((at, Outcome::Done(value))) => (Some(at), pair(value).map(|(_, value)| value)),
            Some((_, Outcome::Refused(_))) => continue,
            Some((_, Outcome::Unknown(_))) | None => (None, None),
        };
        let action = match operation.f.as_str() {
            "read" => match read {
                Some(value) => Action::Read(value.clone()),
                // Nobody knows what it saw.
                None => continue,
            },
            "write" => Action::Write(value.clone()),
            "cas" => match pair(value) {
                Some((from, to)) => Action::Swap(from.clone(), to.clone()),
                None => continue,
            },
            _ => continue,
        };
        by_key.entry(key.to_string()).or_default().push(Interval { action, begin, end });
    }
    by_key.values().all(|operations| is_linearizable(operations))
}
