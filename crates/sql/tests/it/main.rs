//! What is asked of an execution in SQL and in words, against each other and against plain loops. They are one program, so that Polars is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

mod check;
mod doubt;
mod ground;
mod grow;
mod messages;
mod pairs;
mod query_sql;
mod reads;
mod references;

use demi_lineage::LineageError;
use demi_lineage::query::Query;
use demi_sql::Around;
use polars::prelude::DataFrame;

/// Answers a SELECT over an execution alone.
fn select(query: &Query, sql: &str) -> Result<DataFrame, LineageError> {
    Ok(demi_sql::select(query, sql, &Around::default())?.frame)
}
