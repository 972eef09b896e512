//! What a plan needs of an engine: small tables in, a statement, rows of numbers out; and large results as files.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::PlanError;
use crate::sql::{Dialect, Step};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// 64 bits.
    Long,
    /// 32 bits.
    Int,
    /// A text.
    Text,
    /// True or false.
    Flag,
}

/// A value of a table that is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A number.
    Long(i64),
    /// A text.
    Text(String),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Long(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

/// A small table that a statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Small {
    name: &'static str,
    columns: &'static [(&'static str, ColumnType)],
    rows: Vec<Vec<Cell>>,
}

impl Small {
    /// A table without rows.
    #[must_use]
    pub fn new(name: &'static str, columns: &'static [(&'static str, ColumnType)]) -> Small {
        Small { name, columns, rows: Vec::new() }
    }

    /// Adds a row, which has a value for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &'static [(&'static str, ColumnType)] {
        self.columns
    }

    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

/// A table that is a list of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Its name.
    pub name: &'static str,
    /// Its columns, those that stand in paths left out.
    pub columns: Vec<(String, ColumnType)>,
    /// Its Parquet files.
    pub files: Vec<PathBuf>,
}

/// What an engine counted of its own scans. Nothing where it does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Rows that scans of tables gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_read: Option<u64>,
    /// Bytes that were read of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_read: Option<u64>,
}

impl Counted {
    /// Adds what another statement read; what is unknown of one is unknown of both.
    pub fn add(&mut self, other: Counted) {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        self.rows_read = sum(self.rows_read, other.rows_read);
        self.bytes_read = sum(self.bytes_read, other.bytes_read);
    }

    /// Nothing was read yet.
    #[must_use]
    pub fn none() -> Counted {
        Counted { rows_read: Some(0), bytes_read: Some(0) }
    }
}

/// The answer to a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The rows; NULL is 0.
    pub rows: Vec<Vec<i64>>,
    /// What was read for them.
    pub counted: Counted,
}

/// A large answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The Parquet files that hold it.
    pub files: Vec<PathBuf>,
    /// What was read for it.
    pub counted: Counted,
}

/// An engine of relational plans. It holds no state of a plan but the tables that were put last.
pub trait Engine {
    /// Its name.
    fn name(&self) -> &'static str;

    /// How it wants its statements.
    fn dialect(&self) -> Dialect;

    /// Makes these files the tables of their names, in place of what had them.
    ///
    /// # Errors
    /// When the engine refuses.
    fn open(&mut self, tables: &[Files]) -> Result<(), PlanError>;

    /// Puts small tables, in place of those that had their names.
    ///
    /// # Errors
    /// When the engine refuses.
    fn put(&mut self, tables: &[Small]) -> Result<(), PlanError>;

    /// Runs a statement whose columns are numbers. `keys` are those of the blocks that it looks for.
    ///
    /// # Errors
    /// When the engine refuses.
    fn query(&mut self, step: Step, keys: &[i64]) -> Result<Rows, PlanError>;

    /// Runs a statement and writes its rows to `path`, or into a folder of that name.
    ///
    /// # Errors
    /// When the engine refuses.
    fn save(&mut self, step: Step, path: &Path) -> Result<Saved, PlanError>;
}
