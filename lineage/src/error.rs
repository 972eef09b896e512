//! What can go wrong while an execution is built or read.

use std::path::{Path, PathBuf};

use demi_schemas::schedule::ScheduleError;

/// An error of building or reading an execution.
#[derive(Debug, thiserror::Error)]
pub enum LineageError {
    /// The store holds no event of the system.
    #[error("the store holds no events of system '{0}'")]
    Empty(String),
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not the Parquet file it should be.
    #[error("{}: {reason}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Columns could not be taken apart or put together.
    #[error("columns: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// More events than 32 bits can number.
    #[error("{0} events are too many for one build (at most {max})", max = u32::MAX - 1)]
    TooMany(u64),
    /// The violation cannot be made out.
    #[error(transparent)]
    Violation(#[from] ViolationError),
    /// The output folder may not be replaced.
    #[error(transparent)]
    Folder(#[from] demi_common::FolderError),
    /// A schedule file is not one.
    #[error("{}: {source}", .path.display())]
    Schedule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ScheduleError,
    },
    /// The order index is not what a build writes.
    #[error("{}: {reason}; build it again", .path.display())]
    Index {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A question that cannot be answered as it was asked.
    #[error("{0}")]
    Question(String),
    /// Vector clocks that contradict themselves or each other: no order follows from them.
    #[error(
        "the vector clocks contradict each other at {total} events; no order follows from them\n  {shown}"
    )]
    Clocks {
        /// How many events.
        total: u64,
        /// The first of them, a line each: file and line, the event, and what is wrong.
        shown: String,
    },
    /// A part of the program that works beside the main one ended early.
    #[error("the writer of tables ended early")]
    WriterGone,
}

impl LineageError {
    /// An [`LineageError::Io`] maker for `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> LineageError + '_ {
        move |source| LineageError::Io { path: path.to_owned(), source }
    }

    /// An [`LineageError::Table`] maker for `path`.
    pub(crate) fn table<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> LineageError + '_ {
        move |e| LineageError::Table { path: path.to_owned(), reason: e.to_string() }
    }
}

/// An error of finding the violation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViolationError {
    /// The text is no violation.
    #[error(
        "'{0}' names no violation: expected event:ACTOR/SEQ, record:ACTOR/SEQ, line:FILE:LINE, text:REGEX, actors:A,B or none (or nothing, for the recorded one)"
    )]
    Unknown(String),
    /// No log has a `violation` record.
    #[error(
        "the logs hold no violation record; name one with --violation event:ACTOR/SEQ or actors:A,B (actors: {0}), or build the order alone with --violation none"
    )]
    NoRecord(String),
    /// The event that is named is no violation record.
    #[error(
        "{0} is no violation record: name its actors with --violation actors:A,B, or the event with --violation event:{0}"
    )]
    NotARecord(String),
    /// Violation records are there, but name nobody.
    #[error(
        "the violation record {event} names no affected actor (fields.affected); name them with --violation actors:A,B (actors: {actors})"
    )]
    NamesNobody {
        /// The record.
        event: String,
        /// Who there is.
        actors: String,
    },
    /// The fields of a violation record are not what they should be.
    #[error("the fields of the violation record {event} cannot be read: {reason}")]
    BadFields {
        /// The record.
        event: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no such actor.
    #[error("no log of actor '{name}'{}; actors: {actors}", did_you_mean(.nearest.as_deref()))]
    NoActor {
        /// The name given.
        name: String,
        /// The nearest that there is.
        nearest: Option<String>,
        /// Who there is.
        actors: String,
    },
    /// The actor has no such event.
    #[error("no event '{name}': {has}")]
    NoEvent {
        /// The name given.
        name: String,
        /// What the actor has.
        has: String,
    },
    /// The text names no event at all.
    #[error(transparent)]
    EventName(#[from] demi_schemas::event_id::EventIdError),
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map(|n| format!("; did you mean '{n}'?")).unwrap_or_default()
}

impl From<demi_predicate::ParseError> for LineageError {
    fn from(error: demi_predicate::ParseError) -> LineageError {
        LineageError::Question(error.to_string())
    }
}
