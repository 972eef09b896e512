//! Logs of operations on threads, as `demi_log::operation!` writes them: an execution that happened elsewhere, to be followed here.

use std::path::Path;

use serde_json::Value;

use crate::op::Kind;

/// What an operation of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Logged {
    Lock,
    Unlock,
    Wait,
    Notify,
    Read,
    Write,
    Spawn,
    Join,
}

impl Logged {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "lock" => Logged::Lock,
            "unlock" => Logged::Unlock,
            "wait" => Logged::Wait,
            "notify" => Logged::Notify,
            "read" => Logged::Read,
            "write" => Logged::Write,
            "spawn" => Logged::Spawn,
            "join" => Logged::Join,
            _ => return None,
        })
    }

    /// Whether an operation of a test can be this one.
    pub(crate) fn fits(self, kind: Kind) -> bool {
        match self {
            Logged::Lock => matches!(
                kind,
                Kind::Lock
                    | Kind::TryLock
                    | Kind::Read
                    | Kind::ReadRecursive
                    | Kind::TryRead
                    | Kind::UpgradableRead
                    | Kind::TryUpgradableRead
                    | Kind::Upgrade
                    | Kind::TryUpgrade
                    | Kind::Write
                    | Kind::TryWrite
            ),
            Logged::Unlock => {
                matches!(kind, Kind::Unlock | Kind::Unread | Kind::Unwrite | Kind::EndUpgradable)
            }
            Logged::Wait => matches!(kind, Kind::Wait | Kind::Park | Kind::ParkOrTimeOut | Kind::Arrive),
            Logged::Notify => {
                matches!(kind, Kind::NotifyOne | Kind::NotifyAll | Kind::Unpark | Kind::WakeTask)
            }
            Logged::Read => matches!(
                kind,
                Kind::Load
                    | Kind::Update
                    | Kind::Read
                    | Kind::ReadRecursive
                    | Kind::TryRead
                    | Kind::UpgradableRead
                    | Kind::TryUpgradableRead
                    | Kind::OnceGet
                    | Kind::OnceWait
                    | Kind::Recv
                    | Kind::TryRecv
                    | Kind::RecvOrTimeOut
            ),
            Logged::Write => matches!(
                kind,
                Kind::Store
                    | Kind::Update
                    | Kind::Write
                    | Kind::TryWrite
                    | Kind::OnceBegin
                    | Kind::Send
                    | Kind::TrySend
            ),
            Logged::Spawn => kind == Kind::Spawn,
            Logged::Join => kind == Kind::Join,
        }
    }
}

/// An operation of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its line in the file, counted from 1.
    pub(crate) line: usize,
    pub(crate) task: String,
    pub(crate) kind: Logged,
    /// The word of the log for it.
    word: String,
    /// The lock, the value or the other task.
    pub(crate) on: Option<String>,
}

impl Entry {
    /// The line, for people.
    pub(crate) fn told(&self) -> String {
        let on = self.on.as_ref().map_or_else(String::new, |on| format!(" {on}"));
        format!("line {}: {} does {}{on}", self.line, self.task, self.word)
    }
}

/// The operations of a log, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub(crate) entries: Vec<Entry>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// A line is no record.
    #[error("line {line}: {message}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// It has no operations.
    #[error(
        "none of its {0} records is an operation on threads: a lock, unlock, wait, notify, read, write, spawn or join, as demi_log::operation! writes it"
    )]
    Nothing(usize),
}

impl Log {
    /// Reads event records, one JSON object a line. Records of other kinds are passed over.
    ///
    /// The order is that of the numbers which `demi_log::operation!` gives; without them that of the times, and without these that of the lines.
    ///
    /// # Errors
    /// When a line is no record, or no record is an operation.
    pub fn read(text: &str) -> Result<Self, LogError> {
        let mut records = 0;
        let mut found: Vec<(Option<u64>, Option<u64>, Entry)> = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let broken = |message: String| LogError::Line { line: at + 1, message };
            let record: Value = serde_json::from_str(line).map_err(|error| broken(error.to_string()))?;
            let field = |name: &str| record.get(name).and_then(Value::as_str);
            let Some(kind) = field("kind") else {
                return Err(broken("an event record has a \"kind\"".to_owned()));
            };
            records += 1;
            let word = if kind == "local" { field("type").unwrap_or_default() } else { kind };
            let Some(kind) = Logged::of(word) else { continue };
            let task = field("actor").ok_or_else(|| broken("an event record has an \"actor\"".to_owned()))?;
            let on = field("on").or_else(|| field("to")).or_else(|| field("payload"));
            let number = |name: &str| record.get(name).and_then(Value::as_u64);
            let entry = Entry {
                line: at + 1,
                task: task.to_owned(),
                kind,
                word: word.to_owned(),
                on: on.map(ToOwned::to_owned),
            };
            found.push((number("operation"), number("time"), entry));
        }
        if found.is_empty() {
            return Err(LogError::Nothing(records));
        }
        if found.iter().all(|(number, _, _)| number.is_some()) {
            found.sort_by_key(|(number, _, _)| *number);
        } else if found.iter().all(|(_, time, _)| time.is_some()) {
            found.sort_by_key(|(_, time, _)| *time);
        }
        Ok(Self { entries: found.into_iter().map(|(_, _, entry)| entry).collect() })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no such log.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, LogError> {
        Self::read(&std::fs::read_to_string(path)?)
    }

    /// How many operations it has.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.entries.len()
    }

    /// The task that another one spawned: whose child, and which.
    pub(crate) fn child(&self, name: &str) -> Option<(&str, u32)> {
        let spawns = |entry: &&Entry| entry.kind == Logged::Spawn;
        let of = self.entries.iter().filter(spawns).find(|entry| entry.on.as_deref() == Some(name))?;
        let before = self
            .entries
            .iter()
            .filter(spawns)
            .filter(|entry| entry.task == of.task)
            .take_while(|entry| entry.on.as_deref() != Some(name));
        Some((&of.task, before.count() as u32 + 1))
    }

    /// Whether it has operations like this one, on what is called so.
    pub(crate) fn tells(&self, kind: Kind, name: Option<&str>) -> bool {
        self.entries.iter().any(|entry| {
            entry.kind.fits(kind) && name.is_none_or(|name| entry.on.as_deref().is_none_or(|on| on == name))
        })
    }
}

/// How far a log was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    pub(crate) operations: usize,
    pub(crate) all: usize,
    pub(crate) parted: Option<String>,
}

impl Followed {
    /// The operations that the test made in the order of the log.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Where the test parts from the log: the operation of the log with its line, and what the test does instead with its place in the source.
    #[must_use]
    pub fn parted(&self) -> Option<&str> {
        self.parted.as_deref()
    }
}

impl std::fmt::Display for Followed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the log's {} operations were followed", self.operations, self.all)?;
        match &self.parted {
            Some(parted) => write!(f, "; then the test parts from it: {parted}"),
            None => Ok(()),
        }
    }
}
