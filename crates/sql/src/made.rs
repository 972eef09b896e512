//! Tables that an execution does not hold, made when they are first asked for.

use std::path::PathBuf;

use demi_common::sealed::sums_of;
use demi_lineage::LineageError;
use demi_lineage::execution::Tables;
use demi_lineage::query::Query;
use polars::prelude::LazyFrame;
use tempfile::TempDir;

use crate::reads::Reads;
use crate::{io, tables};

/// Where SELECTs find tables.
pub(crate) struct Source {
    pub(crate) tables: Tables,
    /// What of files is compared with digests.
    pub(crate) reads: Reads,
    /// The table of messages, where it is not kept.
    temporary: std::cell::OnceCell<(TempDir, PathBuf)>,
}

impl Source {
    /// The tables of an execution.
    pub(crate) fn open(query: &Query) -> Result<Source, LineageError> {
        let tables = Tables::open(query.folder())?;
        Ok(Source { tables, reads: Reads::default(), temporary: std::cell::OnceCell::new() })
    }

    /// The table of messages.
    pub(crate) fn messages(&self) -> Result<LazyFrame, LineageError> {
        let files = self.tables.message_files();
        let frame = |built| tables::messages(&self.reads, built, files.added.as_deref());
        let kept = &files.built;
        if self.tables.references().is_none() || kept.is_file() {
            return frame(kept);
        }
        if let Some((_, made)) = self.temporary.get() {
            return frame(made);
        }
        let folder = kept.parent().unwrap_or(kept);
        // An execution that cannot be written is asked all the same.
        let _ = std::fs::create_dir(folder);
        let place = tempfile::Builder::new().prefix(".demi-").tempdir_in(folder);
        let place = place.or_else(|_| tempfile::tempdir()).map_err(|error| io(folder, error))?;
        let made = place.path().join(kept.file_name().unwrap_or_default());
        self.tables.write_messages(&made)?;
        // The digests first: a table is never there without them. Who comes second has made the same.
        let moved =
            std::fs::rename(sums_of(&made), sums_of(kept)).and_then(|()| std::fs::rename(&made, kept));
        match moved {
            Ok(()) => frame(kept),
            Err(_) => frame(&self.temporary.get_or_init(|| (place, made)).1),
        }
    }
}
