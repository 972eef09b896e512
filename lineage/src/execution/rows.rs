//! Rows of `events.parquet`, made from rows of the store and what was found out about them.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;

use crate::error::LineageError;
use crate::order::{Order, Provenance};

/// Rows of `events.parquet`: the record as logged, and kept, reason, depth, order.
pub(crate) fn events(
    schema: &SchemaRef,
    batch: &RecordBatch,
    first: u32,
    provenance: &Provenance,
    order: &Order,
) -> Result<RecordBatch, LineageError> {
    let range = first as usize..first as usize + batch.num_rows();
    let long = |values: &[u32]| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(values.iter().map(|&v| i64::from(v))))
    };
    let why = provenance.why()[range.clone()].iter().map(|w| w.as_str());
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(BooleanArray::from(provenance.kept()[range.clone()].to_vec())));
    columns.push(Arc::new(StringArray::from_iter_values(why)));
    columns.push(long(&order.depth[range.clone()]));
    columns.push(long(&order.rank[range]));
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}
