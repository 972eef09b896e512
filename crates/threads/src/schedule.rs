//! The file of a failing schedule, `demi-threads/1`: a line that says what it is, then one line for each time that another task goes on.
//!
//! A switch is told by the operations that the task itself has made, so a file still fits after changes elsewhere in the program.

use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind, Spot};

/// The name of the format.
pub const FORMAT: &str = "demi-threads/1";

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always [`FORMAT`].
    pub format: String,
    /// The name of the test.
    pub test: String,
    /// The version of the runtime.
    pub shuttle: String,
    /// What goes wrong.
    pub failure: Failure,
    /// How many preemptions the schedule has.
    pub preemptions: u32,
    /// Whether every schedule with fewer was tried: none fails in this way.
    pub least: bool,
    /// Another failure that was seen, with fewer preemptions than this one needs, and how many those are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<(Failure, u32)>,
    /// Executions that this took.
    pub executions: u64,
    /// Steps of the schedule.
    pub steps: u32,
    /// The tasks in the order in which they began, by name, each with which child of which child of the test it is.
    pub tasks: Vec<(String, String)>,
}

/// An operation of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// What, and on what.
    pub op: String,
    /// What it came to, of an operation that may come to several things: `timed out`, `it is held`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_to: Option<String>,
    /// Where.
    pub at: Spot,
}

impl Did {
    /// In the middle of what is too long to be told.
    #[cfg(feature = "runtime")]
    pub(crate) fn left_out(operations: usize, at: Spot) -> Self {
        Self { op: format!("... {operations} more ..."), came_to: None, at }
    }

    /// What it is and came to, for people.
    pub(crate) fn told(&self) -> String {
        match &self.came_to {
            Some(what) => format!("{}: {what}", self.op),
            None => self.op.clone(),
        }
    }

    /// How many operations it stands for.
    fn operations(&self) -> u64 {
        let left_out = self.op.strip_prefix("... ").and_then(|rest| rest.strip_suffix(" more ..."));
        left_out.and_then(|operations| operations.parse().ok()).unwrap_or(1)
    }
}

/// When a task is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// The task.
    pub task: String,
    /// Its own operations so far.
    pub ops: u32,
}

/// Another task goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Who is left, and when.
    pub after: After,
    /// Who goes on.
    pub to: String,
    /// Why: `preempt`, `block`, `yield`, `end`, or `unfair`: the other one yielded again while others waited, and goes on all the same.
    pub why: String,
    /// Whether the deterministic scheduler would have chosen another one. Only these lines are followed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// What the task that is left would have done next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Did>,
    /// What the other one does first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Did>,
    /// The locks that the task which is left holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// What the task did since it went on last; what is too long has `...` in its middle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did: Vec<Did>,
}

/// The last line: what ran up to the failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// The task that ran last.
    pub last: String,
    /// What it did.
    pub did: Vec<Did>,
    /// The same schedule as shuttle writes it, for its own `replay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuttle: Option<String>,
}

/// A schedule as shuttle writes it: a version, the bits of a task's number, how many turns there are, a seed, and the turns, each after a bit that
/// says that it is no random number.
#[cfg(feature = "runtime")]
pub(crate) fn as_shuttle_has_it(turns: &[u16]) -> String {
    let bits = (16 - turns.iter().copied().max().unwrap_or(0).leading_zeros()).max(1) as usize;
    let mut bytes = vec![0x91u8, bits as u8];
    let mut count = turns.len() as u64;
    while count >= 0x80 {
        bytes.push(count as u8 | 0x80);
        count >>= 7;
    }
    bytes.extend([count as u8, 0]);
    let mut packed = vec![0u8; (turns.len() * (bits + 1)).div_ceil(8)];
    for (turn, task) in turns.iter().enumerate() {
        for bit in (0..bits).filter(|bit| task >> bit & 1 == 1) {
            let at = turn * (bits + 1) + 1 + bit;
            packed[at / 8] |= 1 << (at % 8);
        }
    }
    bytes.extend(packed);
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its first line.
    pub header: Header,
    /// The switches.
    pub switches: Vec<Switch>,
    /// Its last line.
    pub last: Last,
}

/// What the lines of a schedule come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Switches that are preemptions, and those that count as one.
    pub preemptions: u32,
    /// Operations.
    pub steps: u64,
    /// A task of which one line says something else than those before.
    pub contradicts: Option<String>,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// It has no lines.
    #[error("the file is empty; a schedule begins with a line that has \"format\": \"{FORMAT}\"")]
    Empty,
    /// It is something else.
    #[error("the format is \"{0}\", not \"{FORMAT}\"")]
    Format(String),
    /// A line is broken.
    #[error("line {line}: {message}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A switch names a task that the first line does not have.
    #[error("line {line}: there is no task \"{task}\" in the first line")]
    Task {
        /// Counted from 1.
        line: usize,
        /// The name.
        task: String,
    },
    /// The end is missing.
    #[error("the last line, with \"last\", is missing")]
    Cut,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Switch(Box<Switch>),
    Last(Last),
}

impl Schedule {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is no schedule.
    pub fn read(text: &str) -> Result<Self, ScheduleError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, first) = lines.next().ok_or(ScheduleError::Empty)?;
        let broken = |line: usize, error: &dyn fmt::Display| ScheduleError::Line {
            line: line + 1,
            message: error.to_string(),
        };
        let value: serde_json::Value = serde_json::from_str(first).map_err(|error| broken(0, &error))?;
        match value.get("format").and_then(serde_json::Value::as_str) {
            Some(FORMAT) => {}
            other => return Err(ScheduleError::Format(other.unwrap_or("none").to_owned())),
        }
        let header: Header = serde_json::from_value(value).map_err(|error| broken(0, &error))?;
        let (mut switches, mut last) = (Vec::new(), None);
        for (at, line) in lines {
            if last.is_some() {
                return Err(broken(at, &"nothing comes after the last line"));
            }
            match serde_json::from_str(line)
                .map_err(|_| broken(at, &"it is neither a switch nor the last line"))?
            {
                Line::Switch(switch) => {
                    for task in [&switch.after.task, &switch.to] {
                        if !header.tasks.iter().any(|(name, _)| name == task) {
                            return Err(ScheduleError::Task { line: at + 1, task: task.clone() });
                        }
                    }
                    switches.push(*switch);
                }
                Line::Last(found) => last = Some(found),
            }
        }
        Ok(Self { header, switches, last: last.ok_or(ScheduleError::Cut)? })
    }

    /// The file.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::new();
        let mut line = |value: Result<String, serde_json::Error>| {
            text.push_str(&value.unwrap_or_default());
            text.push('\n');
        };
        line(serde_json::to_string(&self.header));
        self.switches.iter().for_each(|switch| line(serde_json::to_string(switch)));
        line(serde_json::to_string(&self.last));
        text
    }

    /// The pieces in order: the task, what it did, and the switch at its end.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, &[Did], Option<&Switch>)> {
        let switches = self.switches.iter().map(|switch| (&*switch.after.task, &*switch.did, Some(switch)));
        switches.chain([(&*self.last.last, &*self.last.did, None)])
    }

    /// What its lines come to, counted from themselves.
    #[must_use]
    pub fn count(&self) -> Count {
        let mut count = Count { preemptions: 0, steps: 0, contradicts: None };
        let mut done: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        for (task, did, switch) in self.pieces() {
            let steps: u64 = did.iter().map(Did::operations).sum();
            count.steps += steps;
            let own = done.entry(task).or_default();
            *own += steps;
            let Some(switch) = switch else { continue };
            count.preemptions += u32::from(matches!(&*switch.why, "preempt" | "unfair"));
            if u64::from(switch.after.ops) != *own && count.contradicts.is_none() {
                count.contradicts = Some(task.to_owned());
            }
        }
        count
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        let header = &self.header;
        let of = |count: u32| match count {
            0 => "no preemption".to_owned(),
            1 => "1 preemption".to_owned(),
            n => format!("{n} preemptions"),
        };
        let least = match (&header.other, header.least) {
            (None, true) => "the fewest: every schedule with fewer was tried",
            (Some(_), true) => "the fewest for this failure: every schedule with fewer was tried",
            (_, false) => "not proven to be the fewest",
        };
        let mut text = format!(
            "{} ({least}), {} steps, {} tasks",
            of(header.preemptions),
            header.steps,
            header.tasks.len()
        );
        if let Some((other, count)) = &header.other {
            let _ = write!(text, "\nanother failure needs only {}: {other}", of(*count));
        }
        text
    }

    /// The text for people: the tasks side by side, and each preemption with both places.
    #[must_use]
    pub fn show(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.header.test, self.header.failure, self.summary());
        let mut used: Vec<&str> = Vec::new();
        for (task, _, _) in self.pieces() {
            if !used.contains(&task) {
                used.push(task);
            }
        }
        let short = |at: &Spot| {
            let file = at.0.rsplit(['/', '\\']).next().unwrap_or(&at.0);
            let mut parts = file.split(':');
            format!("{}:{}", parts.next().unwrap_or(""), parts.next().unwrap_or(""))
        };
        let cell = |did: &Did| format!("{} {}", did.told(), short(&did.at));
        let width = |task: &str| {
            let cells = self
                .pieces()
                .filter(|(t, _, _)| *t == task)
                .flat_map(|(_, did, _)| did)
                .map(|d| cell(d).len());
            cells.chain([task.len()]).max().unwrap_or(0).min(44) + 2
        };
        let widths: Vec<usize> = used.iter().map(|task| width(task)).collect();
        let row = |text: &mut String, column: usize, what: &str| {
            let before: usize = widths.iter().take(column).sum();
            let _ = writeln!(text, "{}{what}", " ".repeat(before));
        };
        text.push('\n');
        let heads: String =
            used.iter().zip(&widths).map(|(task, width)| format!("{task:width$}", width = *width)).collect();
        let _ = writeln!(text, "{}", heads.trim_end());
        let _ = writeln!(text, "{}", "-".repeat(widths.iter().sum()));
        for (task, did, switch) in self.pieces() {
            let column = used.iter().position(|name| *name == task).unwrap_or(0);
            for did in did {
                row(&mut text, column, &cell(did));
            }
            let Some(switch) = switch else { continue };
            if switch.why == "preempt" {
                let next = switch
                    .next
                    .as_ref()
                    .map_or(String::new(), |next| format!(" before {} at {}", next.told(), next.at));
                let then = switch
                    .then
                    .as_ref()
                    .map_or(String::new(), |then| format!(", which does {} at {}", then.told(), then.at));
                let holds = if switch.holds.is_empty() {
                    String::new()
                } else {
                    format!("; it holds {}", switch.holds.join(", "))
                };
                let _ = writeln!(text, ">>> preemption of {task}{next}, by {}{then}{holds}", switch.to);
            } else if switch.why == "unfair" {
                let _ = writeln!(
                    text,
                    ">>> {} goes on, though it yielded again while others wait: counts as a preemption",
                    switch.to
                );
            } else if switch.why == "block"
                && let Some(next) = &switch.next
            {
                row(&mut text, column, &format!("(waits: {})", cell(next)));
            }
        }
        if let FailureKind::Panic { task, .. } = self.header.failure.kind() {
            let column = used.iter().position(|name| name == task).unwrap_or(0);
            row(&mut text, column, "(panics)");
        }
        text
    }
}
