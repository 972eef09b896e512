//! The tables of an execution that holds a copy of all records.

use arrow_array::{Array, RecordBatch};

use super::analysis::Lineage;
use super::steps::Steps;
use crate::error::LineageError;
use crate::execution::{EVENTS, Folder, MESSAGES, messages, rows, writer};
use crate::order::Provenance;
use crate::read::gather::Gathering;
use crate::read::{Events, columns};

/// Writes the tables, gives all records to `steps`, and says which events tell a state.
pub(super) fn write(
    gathered: Gathering,
    events: &Events,
    lineage: &Lineage,
    provenance: &Provenance,
    mut steps: Option<&mut Steps<'_>>,
    folder: &Folder,
) -> Result<Vec<u32>, LineageError> {
    let event_table = writer::event_table(&folder.path(EVENTS))?;
    let message_table = writer::message_table(&folder.path(MESSAGES))?;
    let mut states = Vec::new();
    let mut rows = |first: u32, batch: &RecordBatch| {
        let state = columns::text(batch, "state")?;
        states.extend((0..batch.num_rows()).filter(|&r| state.is_valid(r)).map(|r| first + r as u32));
        let here: Vec<u32> = (first..first + batch.num_rows() as u32).collect();
        if let Some(steps) = &mut steps {
            steps.add(batch, &here)?;
        }
        let schema = event_table.schema();
        event_table.add(rows::events(&schema, batch, first, provenance, lineage.order())?)?;
        let ends = (events, lineage.matching());
        message_table.add(messages::rows(&message_table.schema(), &here, Some(batch), &ends)?)
    };
    let gathered = gathered.give(&mut rows);
    // An error of a writer is the cause of an error here.
    event_table.finish()?;
    message_table.finish()?;
    gathered?;
    if let Some(steps) = steps {
        steps.close()?;
    }
    Ok(states)
}
