//! Rows of `events.parquet` and `messages.parquet`, made from rows of the store and what was found out about them.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take;

use crate::error::LineageError;
use crate::matching::{Matching, Reason, Status};
use crate::order::{Order, Provenance};
use crate::read::{Events, NONE, is_send};

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
    let why = provenance.why[range.clone()].iter().map(|w| w.as_str());
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(BooleanArray::from(provenance.kept[range.clone()].to_vec())));
    columns.push(Arc::new(StringArray::from_iter_values(why)));
    columns.push(long(&order.depth[range.clone()]));
    columns.push(long(&order.rank[range]));
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

/// Rows of `messages.parquet`: one a send or timer set, one a receive that has none, and one a further edge.
pub(crate) fn messages(
    schema: &SchemaRef,
    batch: &RecordBatch,
    first: u32,
    events: &Events,
    matching: &Matching,
) -> Result<RecordBatch, LineageError> {
    // A row is an end of a message, or the later end of a further edge with its earlier one.
    let mut here: Vec<(u32, Option<(u32, Reason)>)> = Vec::new();
    for e in first..first + batch.num_rows() as u32 {
        let i = e as usize;
        let unmatched = events.kind[i].is_delivery()
            && matching.mate[i] == NONE
            && !matches!(matching.status[i], Status::Local | Status::Matched);
        if is_send(events.kind[i]) || unmatched {
            here.push((e, None));
        }
        here.extend(matching.extra_into(e).map(|edge| (e, Some(edge))));
    }
    let rows = UInt32Array::from_iter_values(here.iter().map(|(e, _)| e - first));
    let end = |sending: bool| -> Vec<u32> {
        let of = |(e, edge): &(u32, Option<(u32, Reason)>)| match edge {
            Some((cause, _)) => {
                if sending {
                    *cause
                } else {
                    *e
                }
            }
            None if is_send(events.kind[*e as usize]) == sending => *e,
            None => matching.mate[*e as usize],
        };
        here.iter().map(of).collect()
    };
    let (sends, receives) = (end(true), end(false));
    let mut columns = Vec::with_capacity(schema.fields().len());
    for name in ["msg_id", "from", "to", "type"] {
        let column = batch.column_by_name(name).ok_or(LineageError::WriterGone)?;
        columns.push(take(column, &rows, None)?);
    }
    for side in [&sends, &receives] {
        let known = |e: &u32| (*e != NONE).then_some(*e as usize);
        let actors = side.iter().map(|e| known(e).map(|e| events.actor_name(events.actor[e])));
        let incarnations = side.iter().map(|e| known(e).map(|e| events.places.get(e as u32).0 as i32));
        let seqs = side.iter().map(|e| known(e).map(|e| events.places.get(e as u32).1 as i64));
        columns.push(Arc::new(actors.collect::<StringArray>()));
        columns.push(Arc::new(incarnations.collect::<Int32Array>()));
        columns.push(Arc::new(seqs.collect::<Int64Array>()));
    }
    let words = here.iter().map(|(e, edge)| match edge {
        Some(_) => Status::Matched.as_str(),
        None => matching.status[*e as usize].as_str(),
    });
    columns.push(Arc::new(StringArray::from_iter_values(words)));
    let reasons = here.iter().map(|(e, edge)| edge.map_or(matching.reason[*e as usize], |(_, r)| r).as_str());
    columns.push(Arc::new(StringArray::from_iter_values(reasons)));
    let certain: Vec<bool> =
        here.iter().map(|(e, edge)| edge.is_some() || matching.certain[*e as usize]).collect();
    columns.push(Arc::new(BooleanArray::from(certain)));
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}
