//! Typed views of the columns of a batch of event records.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};

use crate::error::LineageError;

fn missing(name: &str) -> LineageError {
    arrow_schema::ArrowError::SchemaError(format!("no column '{name}' of the right type")).into()
}

/// The text column of that name.
pub(crate) fn text<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray, LineageError> {
    batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>()).ok_or_else(|| missing(name))
}

/// The 64-bit column of that name.
pub(crate) fn long<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Int64Array, LineageError> {
    batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<Int64Type>()).ok_or_else(|| missing(name))
}

/// The 32-bit column of that name.
pub(crate) fn int<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Int32Array, LineageError> {
    batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<Int32Type>()).ok_or_else(|| missing(name))
}

/// The yes-or-no column of that name.
pub(crate) fn flag<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a BooleanArray, LineageError> {
    batch.column_by_name(name).and_then(|c| c.as_boolean_opt()).ok_or_else(|| missing(name))
}

/// The text at `row`, if there is one.
pub(crate) fn at(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}
