//! Reading a few columns of the store's files, a batch at a time.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use crate::IngestError;

const ROWS: usize = 16 * 1024;

/// Calls `each` with every batch of `columns` of the files, in order. Columns come in the order and with the types
/// asked for, whatever the files use.
pub(crate) fn scan(
    files: &[PathBuf],
    columns: &[(&str, DataType)],
    mut each: impl FnMut(&RecordBatch) -> Result<(), IngestError>,
) -> Result<(), IngestError> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    for path in files {
        let failed = |source| IngestError::DataFile { path: path.clone(), source: Box::new(source) };
        let reader = open(path, &names).map_err(failed)?;
        for batch in reader {
            let batch = batch.map_err(|e| failed(ParquetError::from(e)))?;
            each(&arrange(&batch, columns)?)?;
        }
    }
    Ok(())
}

/// Calls `each` with every batch of a file, with all of its columns.
pub(crate) fn whole(
    path: &Path,
    mut each: impl FnMut(&RecordBatch) -> Result<(), IngestError>,
) -> Result<(), IngestError> {
    let failed = |source| IngestError::DataFile { path: path.to_owned(), source: Box::new(source) };
    let file = File::open(path).map_err(|e| failed(ParquetError::from(e)))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    for batch in builder.with_batch_size(ROWS).build().map_err(failed)? {
        each(&batch.map_err(|e| failed(ParquetError::from(e)))?)?;
    }
    Ok(())
}

/// Rows of a file, from its metadata.
pub(crate) fn row_count(path: &Path) -> Result<usize, IngestError> {
    let failed = |source| IngestError::DataFile { path: path.to_owned(), source: Box::new(source) };
    let file = File::open(path).map_err(|e| failed(ParquetError::from(e)))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    Ok(usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0))
}

fn open(
    path: &Path,
    names: &[&str],
) -> Result<parquet::arrow::arrow_reader::ParquetRecordBatchReader, ParquetError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().copied());
    builder.with_projection(mask).with_batch_size(ROWS).build()
}

fn arrange(batch: &RecordBatch, columns: &[(&str, DataType)]) -> Result<RecordBatch, IngestError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    for (name, wanted) in columns {
        let index = batch.schema().index_of(name)?;
        let mut array = batch.column(index).clone();
        if array.data_type() != wanted {
            array = arrow_cast::cast(&array, wanted)?;
        }
        fields.push(arrow_schema::Field::new(*name, wanted.clone(), array.is_nullable()));
        arrays.push(array);
    }
    let schema = std::sync::Arc::new(arrow_schema::Schema::new(fields));
    Ok(RecordBatch::try_new(schema, arrays)?)
}
