//! What can go wrong while the log is set up. Nothing can go wrong for those who log.

use std::io;
use std::path::PathBuf;

/// Why a log cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file cannot be opened.
    #[error("cannot open {path} for appending: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file that counts incarnations cannot be used.
    #[error("cannot use {path}, which counts the incarnations of this process: {source}")]
    Incarnations {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file that counts incarnations holds something else.
    #[error("{path} should hold a number, not '{text}'")]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// The thread that writes cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
