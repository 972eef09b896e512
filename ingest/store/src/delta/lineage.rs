//! The tables of lineage beside the events: who sent to whom at which position, kept so that engines of relational plans can ask for pasts.
//!
//! They are made of one version of the events, and each commit to them says which: as the number that the application `demi-events/SYSTEM`
//! has there.

use std::fs::File;
use std::path::PathBuf;

use arrow_schema::SchemaRef;
use deltalake_core::DeltaTable;
use demi_common::sealed::SealedFile;
use demi_schemas::tables;

use super::open::{Place, is_table};
use super::{EVENTS, Store, TableWriter, table_error};
use crate::StoreError;

/// A table of lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineageTable {
    /// Actors by number.
    Actors,
    /// Positions of logs and the names of the events there.
    Runs,
    /// Edges between logs.
    Messages,
    /// By receiver and block of positions: what it had heard of whom.
    Checkpoints,
}

impl LineageTable {
    /// All of them, in the order in which they are committed: who sees the last one sees all.
    pub const ALL: [LineageTable; 4] =
        [LineageTable::Messages, LineageTable::Checkpoints, LineageTable::Runs, LineageTable::Actors];

    /// The name of its folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LineageTable::Actors => "lineage_actors",
            LineageTable::Runs => "lineage_runs",
            LineageTable::Messages => "lineage_messages",
            LineageTable::Checkpoints => "lineage_checkpoints",
        }
    }

    /// Its columns.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        match self {
            LineageTable::Actors => tables::store_lineage_actors(),
            LineageTable::Runs => tables::store_lineage_runs(),
            LineageTable::Messages => tables::store_lineage_messages(),
            LineageTable::Checkpoints => tables::store_lineage_checkpoints(),
        }
    }

    fn partitions(self) -> &'static [&'static str] {
        if self == LineageTable::Actors { &["system"] } else { &["system", "bucket"] }
    }

    fn statistics(self) -> &'static str {
        match self {
            LineageTable::Actors => "number",
            LineageTable::Runs => "number,ord",
            LineageTable::Messages => "key,rp,ra,sa",
            LineageTable::Checkpoints => "key,ra,sa",
        }
    }
}

/// The name under which a commit keeps the version of the events that it was made from.
fn application(system: &str) -> String {
    format!("demi-events/{system}")
}

/// What a commit to a table of lineage says besides: the version of the events that it was made from.
#[must_use]
pub fn made_from(system: &str, version: u64) -> (String, u64) {
    (application(system), version)
}

impl Store {
    /// A writer of a table of lineage; it is made if it is not there.
    ///
    /// # Errors
    /// When it can neither be opened nor made.
    pub fn lineage_writer(&self, table: LineageTable) -> Result<TableWriter, StoreError> {
        self.writer(table.name(), &self.open_lineage(table, true)?)
    }

    /// The files of a table of lineage that are of a system; none where the table is not there.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn lineage_files(&self, table: LineageTable, system: &str) -> Result<Vec<SealedFile>, StoreError> {
        match is_table(&self.dir.join(table.name())) {
            true => self.files_of(&self.open_lineage(table, false)?, table.name(), system),
            false => Ok(Vec::new()),
        }
    }

    /// The systems of a table of lineage, sorted.
    ///
    /// # Errors
    /// As [`Store::lineage_files`].
    pub fn lineage_systems(&self, table: LineageTable) -> Result<Vec<String>, StoreError> {
        match is_table(&self.dir.join(table.name())) {
            true => self.systems_of(&self.open_lineage(table, false)?, table.name()),
            false => Ok(Vec::new()),
        }
    }

    /// The version of the events that a table of lineage was made from for a system; `None` where it was not made.
    ///
    /// # Errors
    /// As [`Store::lineage_files`].
    pub fn lineage_version(&self, table: LineageTable, system: &str) -> Result<Option<u64>, StoreError> {
        if !is_table(&self.dir.join(table.name())) {
            return Ok(None);
        }
        let opened = self.open_lineage(table, false)?;
        let read = self.runtime.block_on(super::table::progress(&opened, &application(system)));
        read.map_err(|e| table_error(&self.dir.display().to_string(), "read the table's progress", e))
    }

    /// The files of a system's events as they were at a version of the table, which may have been removed since.
    ///
    /// # Errors
    /// When the log of that version is gone.
    pub fn event_files_at(&self, system: &str, version: u64) -> Result<Vec<SealedFile>, StoreError> {
        if version == self.version() {
            return self.known_event_files(system);
        }
        let place = Place { store: &self.dir, table: EVENTS, files: &self.files };
        let then = place.at_version(&self.runtime, version)?;
        self.files_of(&then, EVENTS, system)
    }

    /// Keeps other processes from making tables of lineage as long as the file given back is open.
    ///
    /// # Errors
    /// When another process makes them.
    pub fn lock_lineage(&self) -> Result<File, StoreError> {
        self.lock_file(self.dir.join("locks").join("lineage.lock"), "the tables of lineage")
    }

    fn open_lineage(&self, table: LineageTable, create: bool) -> Result<DeltaTable, StoreError> {
        let place = Place { store: &self.dir, table: table.name(), files: &self.files };
        place.open(&self.runtime, create, table.schema(), table.partitions(), table.statistics())
    }

    /// The folder of a table of lineage.
    #[must_use]
    pub fn lineage_dir(&self, table: LineageTable) -> PathBuf {
        self.dir.join(table.name())
    }
}
