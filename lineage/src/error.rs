//! What can go wrong while an execution is built or read.

use std::path::{Path, PathBuf};

use demi_schemas::schedule::ScheduleError;

/// Why no execution was built, or none could be read.
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
    /// More events than positions can be counted in 32 bits.
    #[error("{0} events are more than one build holds (at most {max})", max = u32::MAX - 1)]
    TooMany(u64),
    /// The violation cannot be made out.
    #[error(transparent)]
    Violation(#[from] crate::violation::ViolationError),
    /// The output folder holds something that was not written by a build.
    #[error("{} is not empty and holds no execution; it is left as it is", .0.display())]
    Foreign(PathBuf),
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
