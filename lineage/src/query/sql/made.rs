//! Tables that an execution does not hold, made when they are first asked for.

use std::path::{Path, PathBuf};

use demi_common::sealed::sums_of;
use polars::prelude::LazyFrame;
use tempfile::TempDir;

use super::{Query, tables};
use crate::error::LineageError;
use crate::execution::{MESSAGES, TABLES, Tables, writer};

/// Where SELECTs find tables.
pub(super) struct Source {
    pub(super) tables: Tables,
    /// The table of messages, where it is not kept.
    temporary: std::cell::OnceCell<(TempDir, PathBuf)>,
}

impl Source {
    /// The tables of an execution.
    pub(super) fn open(query: &Query) -> Result<Source, LineageError> {
        Ok(Source { tables: Tables::open(&query.folder)?, temporary: std::cell::OnceCell::new() })
    }

    /// The table of messages.
    pub(super) fn messages(&self, query: &Query) -> Result<LazyFrame, LineageError> {
        if self.tables.references().is_none() {
            return tables::messages(query, &self.tables, &query.folder.join(MESSAGES));
        }
        let folder = query.folder.join(TABLES);
        let kept = folder.join(MESSAGES);
        if kept.is_file() {
            return tables::messages(query, &self.tables, &kept);
        }
        if let Some((_, made)) = self.temporary.get() {
            return tables::messages(query, &self.tables, made);
        }
        // An execution that cannot be written is asked all the same.
        let _ = std::fs::create_dir(&folder);
        let place = tempfile::Builder::new().prefix(".demi-").tempdir_in(&folder);
        let place = place.or_else(|_| tempfile::tempdir()).map_err(LineageError::io(&folder))?;
        let made = place.path().join(MESSAGES);
        self.write(&made)?;
        // The digests first: a table is never there without them. Who comes second has made the same.
        let moved =
            std::fs::rename(sums_of(&made), sums_of(&kept)).and_then(|()| std::fs::rename(&made, &kept));
        match moved {
            Ok(()) => tables::messages(query, &self.tables, &kept),
            Err(_) => {
                let (_, made) = self.temporary.get_or_init(|| (place, made));
                tables::messages(query, &self.tables, made)
            }
        }
    }

    fn write(&self, path: &Path) -> Result<(), LineageError> {
        let table = writer::message_table(path)?;
        let schema = table.schema();
        let mut rows = self.tables.messages_stored()?;
        let written = rows.try_for_each(|batch| table.add(batch?.with_schema(schema.clone())?));
        table.finish()?;
        written
    }
}
