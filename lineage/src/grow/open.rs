//! The records of a base's messages and timers that are on their way: what a delta's receives can be joined with.

use std::path::Path;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;

use crate::error::LineageError;
use crate::execution::TableWriter;
use crate::matching::Matching;
use crate::read::{Events, NONE, is_send, record_schema};

/// Name of the table, in the columns of a record.
pub(crate) const OPEN: &str = "open.parquet";

/// The table under way.
pub(crate) struct OpenEnds(TableWriter);

impl OpenEnds {
    /// Begins the table in a base's folder.
    pub(crate) fn begin(folder: &Path) -> Result<OpenEnds, LineageError> {
        Ok(OpenEnds(TableWriter::begin(&folder.join(OPEN), &record_schema(), &["msg_id", "seq", "payload"])?))
    }

    /// Adds the open sends of a batch of records, whose first is the event `first`.
    pub(crate) fn add(
        &self,
        batch: &RecordBatch,
        first: u32,
        events: &Events,
        matching: &Matching,
    ) -> Result<(), LineageError> {
        let open = |row: &u32| {
            let e = (first + row) as usize;
            is_send(events.kind[e]) && matching.mate[e] == NONE
        };
        let rows: UInt32Array = (0..batch.num_rows() as u32).filter(open).collect::<Vec<_>>().into();
        if rows.is_empty() {
            return Ok(());
        }
        let rows = take_record_batch(batch, &rows)?;
        self.0.add(RecordBatch::try_new(self.0.schema(), rows.columns().to_vec())?)
    }

    /// Ends the table.
    pub(crate) fn finish(self) -> Result<(), LineageError> {
        self.0.finish()
    }
}
