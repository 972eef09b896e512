//! The tables of a delta.

use arrow_array::{Array, RecordBatch};
use arrow_select::take::take_record_batch;

use super::order::Ordered;
use crate::error::LineageError;
use crate::execution::{EVENTS_ADDED, Folder, MESSAGES_ADDED, messages, rows, writer};
use crate::order::Provenance;
use crate::read::{columns, gather};

/// Writes the tables, and gives the added events with a state, in their order.
pub(crate) fn write(ordered: &Ordered, folder: &Folder) -> Result<Vec<u32>, LineageError> {
    let event_table = writer::event_table(&folder.path(EVENTS_ADDED))?;
    let message_table = writer::message_table(&folder.path(MESSAGES_ADDED))?;
    let events = ordered.events();
    let provenance = Provenance::all(events);
    let mut states = Vec::new();
    let mut rows = |first: u32, batch: &RecordBatch| {
        let state = columns::text(batch, "state")?;
        let told = (0..batch.num_rows() as u32).filter(|&r| state.is_valid(r as usize)).map(|r| first + r);
        states.extend(told.filter(|&e| ordered.is_added(e)));
        let schema = event_table.schema();
        let all = rows::events(&schema, batch, first, &provenance, &ordered.order)?;
        event_table.add(take_record_batch(&all, &ordered.added_rows(first, batch.num_rows()))?)?;
        let schema = message_table.schema();
        let here: Vec<u32> = (first..first + batch.num_rows() as u32).collect();
        message_table.add(messages::rows(&schema, &here, Some(batch), &(events, ordered.matching()))?)
    };
    let gathered = gather::in_order(
        &ordered.delta().files,
        &ordered.delta().loaded.placement,
        &folder.scratch(),
        &mut rows,
    );
    event_table.finish()?;
    message_table.finish()?;
    gathered?;
    Ok(states)
}
