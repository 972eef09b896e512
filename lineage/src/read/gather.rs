//! The rows of the store in each actor's order, in bounded memory.

use std::borrow::Cow;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use demi_common::sealed::SealedFile;

use super::intern::NONE;
use super::partition::{NumberedBatch, RangePartition, with_values};
use super::placement::Placement;
use super::source::{BATCH_ROWS, RowRanges, always_null, chosen_batches, record_schema};
use crate::error::LineageError;

/// Rows brought into order in memory at a time.
const CHUNK: usize = 256 * 1024;
/// Pieces of a usual batch that are not too small.
const PIECES: usize = 32;
/// Most temporary files open at a time; beyond it chunks grow.
const FILES: usize = 256;

/// A receiver of rows: the first event of a batch, and the batch.
pub(crate) type Sink<'a> = dyn FnMut(u32, &RecordBatch) -> Result<(), LineageError> + 'a;

/// Rows on their way into the order of events.
pub(crate) enum Gathering {
    /// These files have them in order, one after the other.
    Sorted(Vec<(SealedFile, RowRanges)>, SchemaRef),
    /// They were spread over ranges of events.
    Partition(RangePartition),
}

/// Gives all rows to `sink` in the order of events.
pub(crate) fn in_order(
    files: &[SealedFile],
    placement: &Placement,
    scratch: &Path,
    sink: &mut Sink<'_>,
) -> Result<(), LineageError> {
    begin(files, placement, scratch)?.give(sink)
}

/// [`in_order`] with only the columns of `schema`.
pub(crate) fn columns_in_order(
    files: &[SealedFile],
    placement: &Placement,
    scratch: &Path,
    schema: &SchemaRef,
    sink: &mut Sink<'_>,
) -> Result<(), LineageError> {
    gather(files, placement, &scratch.join("columns-"), schema)?.give(sink)
}

/// Gives the rows of chosen events to `sink`, in their order. It is told which of the chosen events the first of a batch is.
pub(crate) fn chosen_in_order(
    files: &[SealedFile],
    placement: &Placement,
    chosen: impl Fn(u32) -> bool,
    scratch: &Path,
    sink: &mut Sink<'_>,
) -> Result<(), LineageError> {
    let some = placement.of_chosen(chosen);
    if some.events == 0 {
        return Ok(());
    }
    gather(files, &some, &scratch.join("chosen-"), &record_schema())?.give(sink)
}

/// Begins to bring all rows into the order of events, which is all that can be done before anything else is known of them.
///
/// Files that already are in order are left as they are. Others are spread over temporary files in `scratch`, one a range of events.
pub(crate) fn begin(
    files: &[SealedFile],
    placement: &Placement,
    scratch: &Path,
) -> Result<Gathering, LineageError> {
    gather(files, placement, &scratch.join("rows-"), &record_schema())
}

/// `names` is what the paths of temporary files begin with.
pub(crate) fn gather(
    files: &[SealedFile],
    placement: &Placement,
    names: &Path,
    schema: &SchemaRef,
) -> Result<Gathering, LineageError> {
    if let Some(order) = placement.sorted_files() {
        let of = |file: usize| {
            let chosen = placement.of_file(file).contains(&NONE).then(|| placement.runs_of(file, |_| true));
            (files[file].clone(), chosen)
        };
        return Ok(Gathering::Sorted(order.into_iter().map(of).collect(), schema.clone()));
    }
    let chunk = CHUNK.max(placement.events.div_ceil(FILES));
    let mut null = always_null(files, schema)?;
    // Rows need a column, if only to be counted.
    if null.iter().all(|null| *null) {
        null.iter_mut().take(1).for_each(|null| *null = false);
    }
    let mut partition = RangePartition::new(names, schema, &null, chunk, placement.events);
    let schema = &with_values(schema, &null);
    // A batch is cut into a piece for each range: with many ranges it is larger, so that pieces are not small.
    let batch_rows = BATCH_ROWS * placement.events.div_ceil(chunk).div_ceil(PIECES).clamp(1, 8);
    let (chosen, events): (Vec<RowRanges>, Vec<Cow<'_, [u32]>>) =
        (0..files.len()).map(|file| placement.reading(file, |_| true)).unzip();
    let sources = files.iter().cloned().zip(chosen).collect();
    let (mut open, mut row) = (None, 0);
    for batch in chosen_batches(sources, schema, batch_rows) {
        let (file, batch) = batch?;
        if open != Some(file) {
            (open, row) = (Some(file), 0);
        }
        let changed =
            || LineageError::table(files[file].path())("it has other rows than when it was first read");
        let here = events[file].get(row..row + batch.num_rows()).ok_or_else(changed)?;
        partition.add(&batch, here)?;
        row += batch.num_rows();
    }
    partition.end()?;
    Ok(Gathering::Partition(partition))
}

impl Gathering {
    /// Gives all rows to `sink` in the order of events.
    pub(crate) fn give(self, sink: &mut Sink<'_>) -> Result<(), LineageError> {
        for batch in self.into_batches() {
            let (first, batch) = batch?;
            sink(first, &batch)?;
        }
        Ok(())
    }

    /// All rows in the order of events.
    pub(crate) fn into_batches(self) -> Box<dyn Iterator<Item = NumberedBatch>> {
        let (files, schema) = match self {
            Gathering::Sorted(files, schema) => (files, schema),
            Gathering::Partition(partition) => return partition.into_batches(),
        };
        let mut event = 0;
        Box::new(chosen_batches(files, &schema, BATCH_ROWS).map(move |batch| {
            let (_, batch) = batch?;
            let first = event;
            event += batch.num_rows() as u32;
            Ok((first, batch))
        }))
    }
}
