//! What can go wrong while a report is made.

use std::path::{Path, PathBuf};

/// An error of making or serving a page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder is neither an execution nor a result.
    #[error("{} is neither an execution nor a result of minimize (schedule.jsonl and summary.json)", .0.display())]
    Neither(PathBuf),
    /// Of a served folder: it is a result, which fits into a page.
    #[error("{} is a result of minimize: it fits into a page, use --html", .0.display())]
    NotServed(PathBuf),
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The execution cannot be read.
    #[error(transparent)]
    Lineage(#[from] demi_lineage::LineageError),
    /// A slice cannot be taken.
    #[error(transparent)]
    Export(#[from] demi_lineage::export::ExportError),
    /// An invariant cannot be checked.
    #[error("the invariant '{holds}': {reason}")]
    Invariant {
        /// What it says.
        holds: String,
        /// Why.
        reason: String,
    },
    /// Invariants are given for what tells no states of its own.
    #[error("invariants are checked in recorded states: give an execution written by build")]
    NoStates,
    /// A search of a served page cannot be understood.
    #[error("search: {0}")]
    Pattern(String),
    /// The schedule makes no sense to the model.
    #[error("replay on the model: {0}")]
    Replay(String),
    /// More events than a page shows smoothly.
    #[error(
        "{events} events are too many for one page (at most {most}): use --serve, --last N, --around EVENT, or --kept for the causal past of the violation"
    )]
    TooMany {
        /// How many there are.
        events: u64,
        /// How many fit.
        most: u64,
    },
    /// The page could not be put together.
    #[error("page: {0}")]
    Json(#[from] serde_json::Error),
}

impl ReportError {
    /// A maker of [`ReportError::Io`] for `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ReportError + '_ {
        move |source| ReportError::Io { path: path.to_owned(), source }
    }

    /// A maker of [`ReportError::File`] for `path`.
    pub(crate) fn file<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> ReportError + '_ {
        move |e| ReportError::File { path: path.to_owned(), reason: e.to_string() }
    }
}
