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
pub mod manual;
pub mod query;
pub mod report;

pub use demi_lineage::Outcome;
pub use demi_lineage::files::{replace_file, write_files};
