//! What clients asked and what they were answered: the history on which a workload's property is judged.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its number, which is that of its request.
    pub id: u64,
    /// What is done: `read`, `write`, ...
    pub f: String,
    /// With what.
    pub value: Value,
    /// Which node is asked, where it is not the one that its client always asks.
    pub to: Option<String>,
}

impl Operation {
    /// As logs and schedules write it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = json!({ "f": self.f, "id": self.id, "value": self.value });
        if let (Some(to), Some(fields)) = (&self.to, value.as_object_mut()) {
            fields.insert("to".into(), Value::from(to.as_str()));
        }
        value
    }

    /// From what logs and schedules write.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Operation> {
        let (f, id) = (value.get("f")?.as_str()?.to_owned(), value.get("id")?.as_u64()?);
        let to = value.get("to").and_then(Value::as_str).map(str::to_owned);
        Some(Operation { id, f, value: value.get("value").cloned().unwrap_or_default(), to })
    }
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was done, and this is what came back.
    Done(Value),
    /// It was not done, and never will be.
    Refused(String),
    /// Nobody knows whether it was done.
    Unknown(String),
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A process begins an operation.
    Invoked(u16, Arc<Operation>),
    /// The operation of a process ends.
    Ended(u16, Outcome),
}

/// A history, which grows.
#[derive(Clone, Debug, Default)]
pub struct Book {
    events: Vec<Event>,
    /// By process, the operation that it waits for.
    open: Vec<Option<Arc<Operation>>>,
    /// What an answer did not keep to.
    broken: Option<String>,
    digest: u128,
}

impl PartialEq for Book {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Book {}

impl Hash for Book {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Book {
    /// Its lines, in the order in which things happened.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What an answer did not keep to, if there was one.
    #[must_use]
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// A number for all of it: equal histories have the same.
    #[must_use]
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// What came back of the operations of a process that were done, of those of a name.
    pub(crate) fn done<'b>(&'b self, process: u16, f: &'b str) -> impl Iterator<Item = &'b Value> {
        let mut last: Option<&Operation> = None;
        self.events.iter().filter_map(move |event| match event {
            Event::Invoked(one, operation) => {
                last = if *one == process { Some(operation) } else { last };
                None
            }
            Event::Ended(one, Outcome::Done(value)) if *one == process => {
                last.filter(|operation| operation.f == f).map(|_| value)
            }
            Event::Ended(..) => None,
        })
    }

    /// The operation that a process waits for.
    #[must_use]
    pub fn open(&self, process: u16) -> Option<&Arc<Operation>> {
        self.open.get(usize::from(process))?.as_ref()
    }

    /// Whether the last operation of a process was refused.
    pub(crate) fn is_refused(&self, process: u16) -> bool {
        let last = self.events.iter().rev().find(|event| match event {
            Event::Ended(one, _) | Event::Invoked(one, _) => *one == process,
        });
        matches!(last, Some(Event::Ended(_, Outcome::Refused(_))))
    }

    /// Whether a process has asked with this number, now or before.
    pub(crate) fn has_asked(&self, process: u16, id: u64) -> bool {
        self.events.iter().any(|event| match event {
            Event::Invoked(one, operation) => *one == process && operation.id == id,
            Event::Ended(..) => false,
        })
    }

    /// Whether an operation that is no read was just done, and nobody waits for an answer; or as many were done as go into `often`.
    #[must_use]
    pub(crate) fn is_quiet(&self, read: &str, often: usize) -> bool {
        let mut open: Vec<Option<&str>> = vec![None; self.open.len()];
        let (mut done, mut last) = (0_usize, false);
        for event in &self.events {
            last = false;
            match event {
                Event::Invoked(process, operation) => open[usize::from(*process)] = Some(&operation.f),
                Event::Ended(process, outcome) => {
                    let f = open[usize::from(*process)].take();
                    if matches!(outcome, Outcome::Done(_)) && f.is_some_and(|f| f != read) {
                        done += 1;
                        last = true;
                    }
                }
            }
        }
        last && (open.iter().all(Option::is_none) || done.is_multiple_of(often))
    }

    /// A process begins an operation.
    pub fn invoke(&mut self, process: u16, operation: Operation) {
        let operation = Arc::new(operation);
        if self.open.len() <= usize::from(process) {
            self.open.resize(usize::from(process) + 1, None);
        }
        self.open[usize::from(process)] = Some(Arc::clone(&operation));
        self.push(Event::Invoked(process, operation));
    }

    /// The operation of a process ends.
    pub fn end(&mut self, process: u16, outcome: Outcome) {
        if let Some(open) = self.open.get_mut(usize::from(process)) {
            *open = None;
        }
        self.push(Event::Ended(process, outcome));
    }

    /// An answer is none that the protocol knows.
    pub fn breaks(&mut self, what: String) {
        self.digest = xxh3_128(format!("{:032x}{what}", self.digest).as_bytes());
        self.broken.get_or_insert(what);
    }

    fn push(&mut self, event: Event) {
        let mut text = format!("{:032x}", self.digest);
        match &event {
            Event::Invoked(process, operation) => {
                text.push_str(&format!("{process}?{}", operation.to_value()))
            }
            Event::Ended(process, Outcome::Done(value)) => text.push_str(&format!("{process}={value}")),
            Event::Ended(process, Outcome::Refused(why)) => text.push_str(&format!("{process}!{why}")),
            Event::Ended(process, Outcome::Unknown(why)) => text.push_str(&format!("{process}~{why}")),
        }
        self.digest = xxh3_128(text.as_bytes());
        self.events.push(event);
    }

    /// The lines as people and other tools read them.
    #[must_use]
    pub fn to_lines(&self) -> Vec<Value> {
        let mut open: Vec<Option<Arc<Operation>>> = vec![None; self.open.len()];
        let mut lines = Vec::new();
        for event in &self.events {
            lines.push(match event {
                Event::Invoked(process, operation) => {
                    open[usize::from(*process)] = Some(Arc::clone(operation));
                    json!({ "process": process, "type": "invoke", "f": operation.f, "value": operation.value })
                }
                Event::Ended(process, outcome) => {
                    let of = open[usize::from(*process)].take();
                    let f = of.as_ref().map_or("", |operation| operation.f.as_str());
                    let asked = of.as_ref().map_or(Value::Null, |operation| operation.value.clone());
                    match outcome {
                        Outcome::Done(value) => json!({ "process": process, "type": "ok", "f": f, "value": value }),
                        Outcome::Refused(why) => json!({ "process": process, "type": "fail", "f": f, "value": asked, "error": why }),
                        Outcome::Unknown(why) => json!({ "process": process, "type": "info", "f": f, "value": asked, "error": why }),
                    }
                }
            });
        }
        lines
    }
}
