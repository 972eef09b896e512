//! One file a command: its arguments, and how its result is shown.

pub mod build;
#[cfg(feature = "store")]
pub mod built;
#[cfg(not(feature = "store"))]
pub mod built_without_store;
#[cfg(not(feature = "store"))]
pub use built_without_store as built;
pub mod check;
pub mod demo;
pub mod engine;
pub mod executions;
pub mod find;
pub mod incident;
#[cfg(not(feature = "store"))]
mod incident_watch_without_store;
pub mod incomplete;
pub mod infer;
mod infer_text;
pub mod ingest;
#[cfg(feature = "store")]
pub mod ingest_backup;
#[cfg(feature = "daemon")]
pub mod ingest_daemon;
#[cfg(feature = "store")]
pub mod ingest_delete;
#[cfg(feature = "store")]
pub mod ingest_load;
pub mod ingest_parse;
#[cfg(feature = "store")]
pub mod ingest_store;
#[cfg(not(feature = "daemon"))]
pub mod ingest_without_daemon;
#[cfg(not(feature = "store"))]
pub mod ingest_without_store;
#[cfg(feature = "plans")]
pub mod lineage;
#[cfg(not(feature = "plans"))]
pub mod lineage_without_plans;
#[cfg(not(feature = "plans"))]
pub use lineage_without_plans as lineage;
pub mod logs;
pub mod manual;
pub mod query;
pub mod report;
pub mod sources;
#[cfg(all(feature = "store", not(feature = "daemon")))]
mod spool_without_daemon;
pub mod threads;

pub use demi_commands::Outcome;
pub use demi_commands::files::{replace_file, write_files};

/// The error of a command that this build does not have, with the way to get it.
#[cfg(not(all(feature = "daemon", feature = "sql", feature = "plans")))]
pub fn left_out(what: &str, feature: &str) -> Box<dyn std::error::Error> {
    format!(
        "this build has no {what}: `cargo install --path . --locked --features {feature}` makes one that has, and `--features full` one with \
         everything"
    )
    .into()
}
