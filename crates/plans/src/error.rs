//! What can go wrong on an engine, or with the tables that it reads.

use std::path::PathBuf;

use demi_lineage::{LineageError, ViolationError};
use demi_store::StoreError;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An engine cannot be started.
    #[error("the engine {engine} cannot be started with {}: {reason}", python.display())]
    NoEngine {
        /// Its name.
        engine: &'static str,
        /// The interpreter.
        python: PathBuf,
        /// What it said.
        reason: String,
    },
    /// An engine refused a statement, or ended.
    #[error("{engine} failed at the step '{step}': {reason}")]
    Engine {
        /// Its name.
        engine: &'static str,
        /// What was asked.
        step: &'static str,
        /// What it said.
        reason: String,
    },
    /// The tables of lineage are not there, or not whole.
    #[error("{reason}: run `demi-lineage lineage refresh --store {store}` first")]
    NotMade {
        /// What is missing.
        reason: String,
        /// The store.
        store: String,
    },
    /// Tables say what cannot be.
    #[error(
        "the tables of lineage contradict themselves: {0}; make them anew with `demi-lineage lineage refresh --rebuild`"
    )]
    Broken(String),
    /// The past is too large to be fetched.
    #[error(
        "the past holds {events} events, more than --max-events {limit}: raise the limit, or begin later"
    )]
    TooMany {
        /// How many there are.
        events: u64,
        /// How many were allowed.
        limit: u64,
    },
    /// An engine cannot answer this question.
    #[error("{what} needs {why}, which no engine has: {way}")]
    Refused {
        /// The question.
        what: &'static str,
        /// What is missing there.
        why: &'static str,
        /// What to do instead.
        way: &'static str,
    },
    /// The violation names what is not there.
    #[error(transparent)]
    Violation(#[from] ViolationError),
    /// The order of events cannot be read.
    #[error(transparent)]
    Lineage(#[from] LineageError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Rows cannot be made into columns or read from them.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A file of rows cannot be read or written.
    #[error("{}: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<parquet::errors::ParquetError>,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
}

impl PlanError {
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> PlanError + '_ {
        move |source| PlanError::Io { path: path.to_owned(), source }
    }

    pub(crate) fn table(path: &std::path::Path) -> impl Fn(parquet::errors::ParquetError) -> PlanError + '_ {
        move |source| PlanError::Table { path: path.to_owned(), source: Box::new(source) }
    }
}
