//! Reading a few columns of the store's files, a batch at a time.

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use demi_common::sealed::{Contained, SealedFile, VerifiedFile, contained};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;

use crate::StoreError;

const ROWS: usize = 16 * 1024;

/// Calls `each` with every batch of `columns` of the files, in order. Columns come in the order and with the types
/// asked for, whatever the files use.
pub fn scan(
    files: &[SealedFile],
    columns: &[(&str, DataType)],
    mut each: impl FnMut(&RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    for file in files {
        let failed = failure(file);
        let reader = open(file, &names).map_err(&failed)?;
        for batch in Contained::from(reader) {
            let batch = batch.map_err(|e| failed(e.into()))?;
            each(&arrange(&batch, columns)?)?;
        }
    }
    Ok(())
}

/// Calls `each` with every batch of a file, with all of its columns.
pub fn whole(
    file: &SealedFile,
    mut each: impl FnMut(&RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let failed = failure(file);
    let builder = builder(file).map_err(&failed)?;
    let reader = contained(|| builder.with_batch_size(ROWS).build()).flatten().map_err(&failed)?;
    for batch in Contained::from(reader) {
        each(&batch.map_err(|e| failed(e.into()))?)?;
    }
    Ok(())
}

/// Rows of a file, from its metadata.
pub fn row_count(file: &SealedFile) -> Result<usize, StoreError> {
    let builder = builder(file).map_err(failure(file))?;
    Ok(usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0))
}

fn failure(file: &SealedFile) -> impl Fn(ParquetError) -> StoreError {
    let path = file.path();
    move |source| StoreError::DataFile { path: path.to_owned(), source: Box::new(source) }
}

/// Opens a file of the store, whose content is compared with its digests as it is read.
pub fn builder(file: &SealedFile) -> Result<ParquetRecordBatchReaderBuilder<VerifiedFile>, ParquetError> {
    let file = file.open()?;
    contained(|| ParquetRecordBatchReaderBuilder::try_new(file)).flatten()
}

fn open(file: &SealedFile, names: &[&str]) -> Result<ParquetRecordBatchReader, ParquetError> {
    let builder = builder(file)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().copied());
    contained(|| builder.with_projection(mask).with_batch_size(ROWS).build()).flatten()
}

fn arrange(batch: &RecordBatch, columns: &[(&str, DataType)]) -> Result<RecordBatch, StoreError> {
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
