//! Files that Polars reads by itself: what a question reads of them is compared with their digests before.
//!
//! The end of a file, which says where everything else stands, is compared when the file becomes a table. The question is put together
//! and optimised before anything is read, and says then which columns it needs of which file: the stretches that hold these are compared,
//! each once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use demi_common::sealed::{STRETCH, SealedFile, VerifiedFile};
use demi_lineage::LineageError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::Length;
use polars::prelude::{LazyFrame, ScanArgsParquet};
use polars_plan::dsl::ScanSources;
use polars_plan::plans::{ArenaLpIter, IR};

use crate::{io, refused};

/// The files behind the tables of one question.
#[derive(Default)]
pub(crate) struct Reads {
    /// By path.
    files: RefCell<BTreeMap<String, Sealed>>,
}

/// A file, and what of it was compared.
struct Sealed {
    file: SealedFile,
    opened: VerifiedFile,
    metadata: Arc<ParquetMetaData>,
    /// First bytes of stretches that are as they were written.
    compared: BTreeSet<u64>,
}

impl Reads {
    /// A table that Polars reads.
    pub(crate) fn scan(&self, file: &SealedFile, args: ScanArgsParquet) -> Result<LazyFrame, LineageError> {
        let path = file.path();
        let Some(text) = path.to_str() else {
            return Err(LineageError::Question(format!("the path {} is no UTF-8", path.display())));
        };
        let mut files = self.files.borrow_mut();
        if !files.contains_key(text) {
            let opened = file.open().map_err(|error| io(path, error))?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&opened);
            let metadata = Arc::new(metadata.map_err(|error| io(path, std::io::Error::other(error)))?);
            let sealed = Sealed { file: file.clone(), opened, metadata, compared: BTreeSet::new() };
            files.insert(text.to_owned(), sealed);
        }
        // The name is a file and no pattern.
        LazyFrame::scan_parquet(text.into(), ScanArgsParquet { glob: false, ..args }).map_err(refused)
    }

    /// Compares what a question will read with the digests.
    pub(crate) fn verify(&self, question: &LazyFrame) -> Result<(), LineageError> {
        let plan = question.clone().to_alp_optimized().map_err(refused)?;
        let mut files = self.files.borrow_mut();
        for (_, node) in plan.lp_arena.iter(plan.lp_top) {
            // Whatever else counts rows, reads the end of a file alone.
            let IR::Scan { sources, unified_scan_args, .. } = node else { continue };
            let ScanSources::Paths(paths) = sources else { continue };
            let columns = unified_scan_args.projection.as_deref();
            let wanted = |name: &str| columns.is_none_or(|all| all.iter().any(|column| column == name));
            for path in paths.iter() {
                // What is not there is a file of the user's own.
                if let Some(sealed) = files.get_mut(path.as_str()) {
                    sealed.verify(&wanted)?;
                }
            }
        }
        Ok(())
    }
}

impl Sealed {
    /// Compares the columns with these names.
    fn verify(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<(), LineageError> {
        if self.file.digest().is_none() {
            return Ok(());
        }
        let metadata = self.metadata.clone();
        for range in metadata.row_groups().iter().flat_map(|group| chunks(group, wanted)) {
            self.compare(&range).map_err(|error| io(self.file.path(), error))?;
        }
        Ok(())
    }

    fn compare(&mut self, range: &Range<u64>) -> std::io::Result<()> {
        let (length, stretch) = (self.opened.len(), STRETCH as u64);
        for first in (range.start / stretch * stretch..range.end.min(length)).step_by(STRETCH) {
            if self.compared.insert(first) {
                self.opened.read(first, stretch.min(length - first) as usize)?;
            }
        }
        Ok(())
    }
}

/// Where the columns with these names stand in a file.
fn chunks(group: &RowGroupMetaData, wanted: &dyn Fn(&str) -> bool) -> Vec<Range<u64>> {
    let names =
        |column: &ColumnChunkMetaData| column.column_path().parts().first().is_some_and(|name| wanted(name));
    let range = |column: &ColumnChunkMetaData| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        // What is no place is refused by who reads it.
        let start = u64::try_from(start).unwrap_or_default();
        start..start.saturating_add(u64::try_from(column.compressed_size()).unwrap_or_default())
    };
    group.columns().iter().filter(|column| names(column)).map(range).collect()
}
