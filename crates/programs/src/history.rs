//! Histories: what processes asked and what became of it. They come from a run, or from files of this program and of Jepsen.

use demi_common::text::beyond_64_bits;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::book::{Book, Event, Outcome};
use crate::edn;

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It was done, and this is what came back.
    Done(Value),
    /// It was not done, and never will be.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// An operation, from its invocation to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Whose it is.
    pub process: i64,
    /// What is done.
    pub f: String,
    /// With what.
    pub value: Value,
    /// Its place in the history when it begins.
    pub begin: usize,
    /// Its place when it ends.
    pub end: Option<usize>,
    /// What became of it.
    pub fate: Fate,
    /// Whether it reads what is there in the end, after everything has come to rest.
    pub is_final: bool,
}

impl Done {
    /// In words.
    #[must_use]
    pub fn told(&self) -> String {
        let value = match &self.fate {
            Fate::Done(value) => value,
            _ => &self.value,
        };
        let text = value.to_string();
        let short: String = text.chars().take(200).collect();
        format!(
            "process {}'s {} {}{}",
            self.process,
            self.f,
            short,
            if short.len() < text.len() { "…" } else { "" }
        )
    }
}

/// A history cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct HistoryError {
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Operations by their begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    operations: Vec<Done>,
}

impl History {
    /// The operations of a run.
    #[must_use]
    pub fn of(book: &Book) -> History {
        let mut history = History::default();
        let mut open: FxHashMap<u16, usize> = FxHashMap::default();
        for (at, event) in book.events().iter().enumerate() {
            match event {
                Event::Invoked(process, operation) => {
                    open.insert(*process, history.operations.len());
                    history.operations.push(Done {
                        process: i64::from(*process),
                        f: operation.f.clone(),
                        value: operation.value.clone(),
                        begin: at,
                        end: None,
                        fate: Fate::Unknown("no answer".into()),
                        is_final: false,
                    });
                }
                Event::Ended(process, outcome) => {
                    let Some(one) = open.remove(process).and_then(|place| history.operations.get_mut(place))
                    else {
                        continue;
                    };
                    one.fate = match outcome {
                        Outcome::Done(value) => Fate::Done(value.clone()),
                        Outcome::Refused(why) => Fate::Refused(why.clone()),
                        Outcome::Unknown(why) => Fate::Unknown(why.clone()),
                    };
                    one.end = (!matches!(one.fate, Fate::Unknown(_))).then_some(at);
                }
            }
        }
        history
    }

    /// Its operations, by their begin.
    #[must_use]
    pub fn operations(&self) -> &[Done] {
        &self.operations
    }

    /// A read of what is there in the end.
    pub fn push_final(&mut self, process: i64, f: &str, asked: Value, read: Value) {
        let at =
            self.operations.iter().map(|one| one.end.unwrap_or(one.begin)).max().map_or(0, |last| last + 1);
        self.operations.push(Done {
            process,
            f: f.to_owned(),
            value: asked,
            begin: at,
            end: Some(at + 1),
            fate: Fate::Done(read),
            is_final: true,
        });
    }

    /// Reads a history: lines of JSON, or Jepsen's `history.edn`.
    ///
    /// # Errors
    /// When it is neither, or an operation ends that did not begin.
    pub fn parse(text: &str) -> Result<History, HistoryError> {
        let is_json = text.trim_start().starts_with("{\"");
        let events = if is_json { json_lines(text)? } else { edn::parse(text)? };
        let mut all = Vec::new();
        for (line, event) in events {
            match event {
                Value::Array(many) => all.extend(many.into_iter().map(|event| (line, event))),
                one => all.push((line, one)),
            }
        }
        let mut history = History::default();
        let mut open: FxHashMap<i64, usize> = FxHashMap::default();
        for (at, (line, event)) in all.into_iter().enumerate() {
            history.take(at, &event, &mut open).map_err(|what| HistoryError { line, what })?;
        }
        Ok(history)
    }

    fn take(&mut self, at: usize, event: &Value, open: &mut FxHashMap<i64, usize>) -> Result<(), String> {
        let field = |name: &str| event.get(name).ok_or_else(|| format!("an event without '{name}'"));
        // Jepsen's nemesis is no client.
        let Some(process) = field("process")?.as_i64() else { return Ok(()) };
        let text = |name: &str| {
            field(name)?.as_str().map(str::to_owned).ok_or_else(|| format!("'{name}' is no text"))
        };
        let (kind, f) = (text("type")?, text("f")?);
        let value = event.get("value").cloned().unwrap_or_default();
        if kind == "invoke" {
            if open.contains_key(&process) {
                return Err(format!("process {process} begins an operation before its last one ended"));
            }
            open.insert(process, self.operations.len());
            let is_final =
                event.get("final?").or_else(|| event.get("final")).and_then(Value::as_bool) == Some(true);
            let fate = Fate::Unknown("no answer".into());
            self.operations.push(Done { process, f, value, begin: at, end: None, fate, is_final });
            return Ok(());
        }
        let place =
            open.remove(&process).ok_or_else(|| format!("process {process} ends what it did not begin"))?;
        let one = &mut self.operations[place];
        if one.f != f {
            return Err(format!("process {process} ends '{f}' and began '{}'", one.f));
        }
        let error = || event.get("error").map_or_else(String::new, |error| error.to_string());
        one.fate = match kind.as_str() {
            "ok" => Fate::Done(value),
            "fail" => Fate::Refused(error()),
            "info" => Fate::Unknown(error()),
            other => return Err(format!("'{other}' is no type of an event: invoke, ok, fail, info")),
        };
        one.end = (kind != "info").then_some(at);
        one.is_final |=
            event.get("final?").or_else(|| event.get("final")).and_then(Value::as_bool) == Some(true);
        Ok(())
    }
}

fn json_lines(text: &str) -> Result<Vec<(usize, Value)>, HistoryError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| match serde_json::from_str(line) {
            Ok(value) => match beyond_64_bits(line.as_bytes()) {
                Some(number) => {
                    let what = format!("the whole number {number} is beyond 64 bits");
                    Err(HistoryError { line: at + 1, what })
                }
                None => Ok((at + 1, value)),
            },
            Err(error) => Err(HistoryError { line: at + 1, what: error.to_string() }),
        })
        .collect()
}
