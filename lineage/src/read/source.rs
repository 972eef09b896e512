//! The store's Parquet files as record batches of one schema.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use demi_common::sealed::{Contained, SealedFile, VerifiedFile, contained};
use demi_schemas::tables;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::errors::ParquetError;
use parquet::file::properties::DEFAULT_DATA_PAGE_ROW_COUNT_LIMIT;
use parquet::file::reader::Length;

use super::ahead::{Ahead, ahead};
use crate::error::LineageError;

/// Rows in a batch: large enough that the work per batch vanishes, small enough for the cache.
pub(crate) const BATCH_ROWS: usize = 32 * 1024;

/// The columns of an event record as logged, in the order of the tables.
#[must_use]
pub fn record_schema() -> SchemaRef {
    let added = ["kept", "reason", "depth", "order"];
    let all = tables::execution_events();
    Arc::new(Schema::new(
        all.fields().iter().filter(|f| !added.contains(&f.name().as_str())).cloned().collect::<Vec<_>>(),
    ))
}

/// The named columns of the record schema.
pub(crate) fn columns_of(schema: &SchemaRef, names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(
        schema.fields().iter().filter(|f| names.contains(&f.name().as_str())).cloned().collect::<Vec<_>>(),
    ))
}

/// A file of an execution, with the digests beside it.
pub(crate) fn beside(path: &Path) -> Result<SealedFile, LineageError> {
    SealedFile::beside(path).map_err(LineageError::io(path))
}

/// Begins to read a file.
pub(crate) fn builder(
    file: VerifiedFile,
) -> Result<ParquetRecordBatchReaderBuilder<VerifiedFile>, ParquetError> {
    contained(|| ParquetRecordBatchReaderBuilder::try_new(file)).flatten()
}

/// Bytes that the beginning of a page takes at least: its kind, two lengths, the number of its values and how they are encoded.
const PAGE_BYTES: u64 = 10;

/// How many rows a file of records says that it has.
///
/// Every column has a page for so many rows at least, each with a beginning of its own, so more rows than have room are a number that
/// somebody made up.
pub(crate) fn rows_of(file: &SealedFile) -> Result<u32, LineageError> {
    let path = file.path();
    let opened = file.open().map_err(LineageError::io(path))?;
    let bytes = opened.len();
    let reader = builder(opened).map_err(LineageError::table(path))?;
    let rows = reader.metadata().file_metadata().num_rows();
    let columns = reader.parquet_schema().num_columns() as u64;
    let least = |rows: u32| u64::from(rows) / DEFAULT_DATA_PAGE_ROW_COUNT_LIMIT as u64 * columns * PAGE_BYTES;
    match u32::try_from(rows) {
        Ok(rows) if least(rows) <= bytes => Ok(rows),
        _ => Err(LineageError::table(path)(format!("it says that it has {rows} rows, in {bytes} bytes"))),
    }
}

/// Which of the fields of `wanted` are null in all rows of these files, as far as the files say so without their rows.
pub(crate) fn always_null(files: &[SealedFile], wanted: &SchemaRef) -> Result<Vec<bool>, LineageError> {
    let mut null: Vec<bool> = wanted.fields().iter().map(|field| field.is_nullable()).collect();
    for file in files {
        let path = file.path();
        let opened = file.open().map_err(LineageError::io(path))?;
        let builder = builder(opened).map_err(LineageError::table(path))?;
        for group in builder.metadata().row_groups() {
            for (null, field) in null.iter_mut().zip(wanted.fields()).filter(|(null, _)| **null) {
                let mut columns = group.columns().iter();
                let column = columns.find(|column| column.column_path().string() == *field.name());
                let nulls = column.and_then(|column| column.statistics()?.null_count_opt());
                *null = column.is_none() || nulls == Some(group.num_rows() as u64);
            }
        }
    }
    Ok(null)
}

/// The rows of a file that are read: all, or those of these ranges, which are in order.
pub(crate) type RowRanges = Option<Vec<Range<u32>>>;

/// Reads files one after the other, ahead of who takes the batches; each comes with the number of its file.
pub(crate) fn batches(
    files: &[SealedFile],
    wanted: &SchemaRef,
    rows: usize,
) -> Ahead<Result<(usize, RecordBatch), LineageError>> {
    chosen_batches(files.iter().cloned().map(|file| (file, None)).collect(), wanted, rows)
}

/// [`batches`] of chosen rows of each file.
pub(crate) fn chosen_batches(
    files: Vec<(SealedFile, RowRanges)>,
    wanted: &SchemaRef,
    rows: usize,
) -> Ahead<Result<(usize, RecordBatch), LineageError>> {
    let wanted = wanted.clone();
    let some =
        |(_, (_, chosen)): &(usize, (SealedFile, RowRanges))| chosen.as_ref().is_none_or(|c| !c.is_empty());
    let batches_of = move |(number, (file, chosen)): (usize, (SealedFile, RowRanges))| {
        let (source, failed) = match Source::open_rows(&file, &wanted, rows, chosen) {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(Err(error))),
        };
        let batches = source.into_iter().flatten().map(move |batch| Ok((number, batch?)));
        failed.into_iter().chain(batches)
    };
    ahead(files.into_iter().enumerate().filter(some).flat_map(batches_of))
}

/// Reads one file, column by column as `wanted` says: other columns are not read, other text types are cast, and
/// columns that the file lacks are null where that is allowed.
pub(crate) struct Source {
    path: PathBuf,
    wanted: SchemaRef,
    reader: Contained<ParquetRecordBatchReader>,
}

impl Source {
    /// Opens a file.
    pub(crate) fn open(file: &SealedFile, wanted: &SchemaRef) -> Result<Source, LineageError> {
        Source::open_rows(file, wanted, BATCH_ROWS, None)
    }

    /// Opens a table of an execution.
    pub(crate) fn of_execution(path: &Path, wanted: &SchemaRef) -> Result<Source, LineageError> {
        Source::open(&beside(path)?, wanted)
    }

    /// Opens a file whose chosen rows are read in batches of so many. Pages without such rows are not read.
    pub(crate) fn open_rows(
        file: &SealedFile,
        wanted: &SchemaRef,
        rows: usize,
        chosen: RowRanges,
    ) -> Result<Source, LineageError> {
        let path = file.path();
        let file = file.open().map_err(LineageError::io(path))?;
        let builder = builder(file).map_err(LineageError::table(path))?;
        let names = wanted.fields().iter().map(|f| f.name().as_str());
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let total = builder.metadata().file_metadata().num_rows() as usize;
        let mut builder = builder.with_projection(mask).with_batch_size(rows);
        if let Some(chosen) = chosen {
            if chosen.last().is_some_and(|last| last.end as usize > total) {
                return Err(LineageError::table(path)(format!("rows are asked for beyond its {total}")));
            }
            let ranges = chosen.into_iter().map(|r| r.start as usize..r.end as usize);
            builder = builder.with_row_selection(RowSelection::from_consecutive_ranges(ranges, total));
        }
        let reader = contained(|| builder.build()).flatten().map_err(LineageError::table(path))?;
        Ok(Source { path: path.to_owned(), wanted: wanted.clone(), reader: reader.into() })
    }

    fn conform(&self, batch: &RecordBatch) -> Result<RecordBatch, LineageError> {
        let mut columns = Vec::with_capacity(self.wanted.fields().len());
        for field in self.wanted.fields() {
            let column = match batch.column_by_name(field.name()) {
                Some(c) if c.data_type() == field.data_type() => c.clone(),
                Some(c) => arrow_cast::cast(c, field.data_type()).map_err(LineageError::table(&self.path))?,
                None if field.is_nullable() => new_null_array(field.data_type(), batch.num_rows()),
                None => return Err(LineageError::table(&self.path)(format!("no column '{}'", field.name()))),
            };
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(LineageError::table(&self.path)(format!("column '{}' has nulls", field.name())));
            }
            columns.push(column);
        }
        RecordBatch::try_new(self.wanted.clone(), columns).map_err(LineageError::table(&self.path))
    }
}

impl Iterator for Source {
    type Item = Result<RecordBatch, LineageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?.map_err(LineageError::table(&self.path));
        Some(batch.and_then(|b| self.conform(&b)))
    }
}
