//! Tables that stand beside events and quarantine, and are made when they are first needed.

use std::path::PathBuf;

use deltalake_core::DeltaTable;
use demi_common::sealed::SealedFile;
use demi_schemas::tables;

use super::open::{Place, is_table};
use super::{Store, TableWriter};
use crate::StoreError;

pub(super) const COMPLETENESS: &str = "completeness";
/// What earlier versions called it; a store that has it keeps it.
pub(super) const COMPLETENESS_BEFORE: &str = "ledger";
pub(super) const DELETED: &str = "deleted";

impl Store {
    /// The table of completeness, which a daemon keeps, and its folder; `None` if it is not there.
    pub fn completeness(&self) -> Result<Option<(PathBuf, DeltaTable)>, StoreError> {
        let name = self.completeness_name();
        let folder = self.dir.join(name);
        Ok(if is_table(&folder) { Some((folder, self.open_completeness(name, false)?)) } else { None })
    }

    /// A writer for the table of completeness; it is made if it is not there.
    pub fn completeness_writer(&self) -> Result<TableWriter, StoreError> {
        let name = self.completeness_name();
        self.writer(name, &self.open_completeness(name, true)?)
    }

    /// The files of what was deleted of a system; none where nothing was.
    pub fn deleted_files(&self, system: &str) -> Result<Vec<SealedFile>, StoreError> {
        match is_table(&self.dir.join(DELETED)) {
            true => self.files_of(&self.open_deleted(false)?, DELETED, system),
            false => Ok(Vec::new()),
        }
    }

    /// A writer for what was deleted; the table is made if it is not there.
    pub fn deleted_writer(&self) -> Result<TableWriter, StoreError> {
        self.writer(DELETED, &self.open_deleted(true)?)
    }

    pub(super) fn open_deleted(&self, create: bool) -> Result<DeltaTable, StoreError> {
        let place = Place { store: &self.dir, table: DELETED, files: &self.files };
        place.open(&self.runtime, create, tables::store_deleted(), &["system"], "actor,incarnation")
    }

    fn completeness_name(&self) -> &'static str {
        if is_table(&self.dir.join(COMPLETENESS_BEFORE)) { COMPLETENESS_BEFORE } else { COMPLETENESS }
    }

    pub(super) fn open_completeness(&self, name: &str, create: bool) -> Result<DeltaTable, StoreError> {
        let place = Place { store: &self.dir, table: name, files: &self.files };
        place.open(&self.runtime, create, tables::store_completeness(), &[], "incarnation")
    }
}
