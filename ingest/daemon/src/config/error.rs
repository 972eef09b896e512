//! Why a configuration cannot be used.

use std::path::PathBuf;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not TOML.
    #[error("{0}")]
    Toml(String),
    /// The rules of redaction cannot be used.
    #[error(transparent)]
    Redact(#[from] demi_formats::RedactError),
    /// A value cannot be used.
    #[error("[{table}] {reason}")]
    Value {
        /// The table.
        table: String,
        /// What is wrong, naming the key.
        reason: String,
    },
}
