//! One file a command: its arguments, and how its result is shown.

pub mod build;
pub mod built;
pub mod check;
pub mod demo;
pub mod executions;
pub mod incomplete;
pub mod infer;
mod infer_text;
pub mod ingest;
#[cfg(feature = "daemon")]
pub mod ingest_daemon;
pub mod ingest_delete;
pub mod ingest_parse;
pub mod ingest_store;
#[cfg(not(feature = "daemon"))]
pub mod ingest_without_daemon;
pub mod manual;
pub mod query;
pub mod report;
pub mod sources;

pub use demi_lineage::Outcome;
pub use demi_lineage::files::{replace_file, write_files};

/// The error of a command that this build does not have, with the way to get it.
#[cfg(not(all(feature = "daemon", feature = "sql")))]
pub fn left_out(what: &str, feature: &str) -> Box<dyn std::error::Error> {
    format!(
        "this build has no {what}: `cargo install --path . --locked --features {feature}` makes one that has, and `--features full` one with \
         everything"
    )
    .into()
}
