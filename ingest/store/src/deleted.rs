//! The table `deleted`: sequence numbers of events that were deleted on purpose.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType};
use demi_common::sealed::SealedFile;
use demi_schemas::tables::store_deleted;

use crate::StoreError;
use crate::scan::scan;

/// Consecutive sequence numbers of one incarnation, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deleted {
    pub actor: String,
    pub incarnation: u32,
    pub first_seq: u64,
    pub last_seq: u64,
}

/// What was deleted, by the table's files of a system.
pub(crate) fn deleted(files: &[SealedFile]) -> Result<Vec<Deleted>, StoreError> {
    let columns = [
        ("actor", DataType::Utf8),
        ("incarnation", DataType::Int32),
        ("first_seq", DataType::Int64),
        ("last_seq", DataType::Int64),
    ];
    let mut runs = Vec::new();
    scan(files, &columns, |batch| {
        let long = |i: usize, row: usize| batch.column(i).as_primitive::<Int64Type>().value(row) as u64;
        runs.extend((0..batch.num_rows()).map(|row| Deleted {
            actor: batch.column(0).as_string::<i32>().value(row).to_owned(),
            incarnation: batch.column(1).as_primitive::<Int32Type>().value(row) as u32,
            first_seq: long(2, row),
            last_seq: long(3, row),
        }));
        Ok(())
    })?;
    Ok(runs)
}

/// Runs of a system as a batch of the table.
pub(crate) fn batch(system: &str, runs: &[Deleted]) -> Result<RecordBatch, ArrowError> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(runs.iter().map(|_| system))),
        Arc::new(StringArray::from_iter_values(runs.iter().map(|run| &run.actor))),
        Arc::new(Int32Array::from_iter_values(runs.iter().map(|run| run.incarnation as i32))),
        Arc::new(Int64Array::from_iter_values(runs.iter().map(|run| run.first_seq as i64))),
        Arc::new(Int64Array::from_iter_values(runs.iter().map(|run| run.last_seq as i64))),
    ];
    RecordBatch::try_new(store_deleted(), columns)
}
