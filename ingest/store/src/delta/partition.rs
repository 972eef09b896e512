//! Rows of a data file as rows of the table.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{ArrowError, SchemaRef};

/// A batch of a data file with all columns of the table: partition values are in the file's path, and columns that
/// are younger than the file are null.
pub(super) fn with_partition(
    batch: &RecordBatch,
    schema: &SchemaRef,
    partition: &[(String, Option<String>)],
) -> Result<RecordBatch, ArrowError> {
    let rows = batch.num_rows();
    let columns = schema.fields().iter().map(|field| {
        if let Some(column) = batch.column_by_name(field.name()) {
            return arrow_cast::cast(column, field.data_type());
        }
        match partition.iter().find(|(name, _)| name == field.name()) {
            Some((_, Some(value))) => {
                let text: ArrayRef =
                    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)));
                arrow_cast::cast(&text, field.data_type())
            }
            _ => Ok(new_null_array(field.data_type(), rows)),
        }
    });
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}
