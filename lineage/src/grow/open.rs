//! The records of a base's messages and timers that are on their way: what a delta's receives can be joined with.

use std::path::Path;

use arrow_array::RecordBatch;

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

    /// Whether an event is an open send.
    pub(crate) fn is(event: u32, events: &Events, matching: &Matching) -> bool {
        is_send(events.kind[event as usize]) && matching.mate(event) == NONE
    }

    /// Adds the records of open sends.
    pub(crate) fn add(&self, batch: &RecordBatch) -> Result<(), LineageError> {
        self.0.add(RecordBatch::try_new(self.0.schema(), batch.columns().to_vec())?)
    }

    /// Ends the table.
    pub(crate) fn finish(self) -> Result<(), LineageError> {
        self.0.finish()
    }
}
