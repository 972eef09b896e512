//! One file a command: its arguments, and how its result is shown.

pub mod build;
pub mod ingest;

/// What a command gives back: an exit status, or an error to explain (exit status 2).
pub type Outcome = Result<std::process::ExitCode, Box<dyn std::error::Error>>;
