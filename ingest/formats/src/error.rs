//! Why a log cannot be found or read.

use std::io;

/// Why a source could not be found or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A path given is not there.
    #[error("{path}: no such file or folder")]
    NoSuchPath {
        /// As given.
        path: String,
    },
    /// A folder or pattern given holds nothing that looks like a log.
    #[error(
        "{path}: no log files here (looked for *.jsonl, *.ndjson, *.json, *.log and *-Log.txt, also .gz and .zst)"
    )]
    NoLogs {
        /// As given.
        path: String,
    },
    /// A glob pattern cannot be read.
    #[error("{pattern}: not a valid pattern")]
    Pattern {
        /// As given.
        pattern: String,
        /// What is wrong with it.
        source: glob::PatternError,
    },
    /// A file is packed in a way that is not read.
    #[error("{path}: this is {format}; only plain text, gzip and zstd are read: unpack it first")]
    Unsupported {
        /// As given.
        path: String,
        /// What the file is, by its first bytes.
        format: &'static str,
    },
    /// A source cannot be read any further.
    #[error("{path}: cannot be read")]
    Read {
        /// As given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}
