//! The rows of small files in the order of actor, incarnation and sequence number.
//!
//! Of every row only its name is held; the rows themselves are read a stretch of the order at a time. Files that are in order, as merged
//! ones are, are read once, since a stretch of the whole is one of theirs. Others are read once for each stretch, so that there are bounds.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use deltalake_core::DeltaTableError;
use demi_common::sealed::{Contained, SealedFile};
use parquet::arrow::arrow_reader::RowSelection;
use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::scan::{builder, scan};

/// Most rows of which the names are held: at 24 bytes each, 96 MiB.
const MOST_ROWS: usize = 4 << 20;
/// Rows of a stretch, which are held.
const STRETCH: usize = 128 * 1024;
/// Most rows of files that are not in order: with four stretches, reading these four times costs less than writing them.
const MOST_UNORDERED: usize = 4 * STRETCH;

/// The name of a row: its actor's place among the names in order, its incarnation and its sequence number; and the row, files one after
/// the other.
type Name = (u32, i32, i64, u32);

/// The rows of files, in order.
pub(super) struct Order<'a> {
    files: &'a [SealedFile],
    /// First row of each file.
    first: Vec<u32>,
    names: Vec<Name>,
}

impl<'a> Order<'a> {
    /// Reads the names of all rows; nothing where there are too many, or too many in files that are not in order.
    pub(super) fn of(files: &'a [SealedFile]) -> Result<Option<Order<'a>>, StoreError> {
        let (mut first, mut names): (Vec<u32>, Vec<Name>) = (Vec::new(), Vec::new());
        let mut actors: FxHashMap<String, u32> = FxHashMap::default();
        let columns = [("actor", DataType::Utf8), ("incarnation", DataType::Int32), ("seq", DataType::Int64)];
        for file in files {
            first.push(names.len() as u32);
            scan(std::slice::from_ref(file), &columns, |batch| {
                if names.len() > MOST_ROWS {
                    return Ok(());
                }
                let actor = batch.column(0).as_string::<i32>();
                let incarnation = batch.column(1).as_primitive::<Int32Type>().values();
                let seq = batch.column(2).as_primitive::<Int64Type>().values();
                for (row, (&incarnation, &seq)) in incarnation.iter().zip(seq).enumerate() {
                    let name = actor.value(row);
                    let actor = match actors.get(name) {
                        Some(&actor) => actor,
                        None => {
                            let next = actors.len() as u32;
                            *actors.entry(name.to_owned()).or_insert(next)
                        }
                    };
                    names.push((actor, incarnation, seq, names.len() as u32));
                }
                Ok(())
            })?;
            if names.len() > MOST_ROWS {
                return Ok(None);
            }
        }
        let mut by_name: Vec<(String, u32)> = actors.into_iter().collect();
        by_name.sort_unstable();
        let mut place = vec![0_u32; by_name.len()];
        by_name.iter().zip(0..).for_each(|((_, actor), at)| place[*actor as usize] = at);
        names.iter_mut().for_each(|name| name.0 = place[name.0 as usize]);
        let ends = first.iter().skip(1).copied().chain([names.len() as u32]);
        let logs = first.iter().zip(ends).map(|(&first, end)| &names[first as usize..end as usize]);
        if logs.filter(|rows| !rows.is_sorted()).map(<[Name]>::len).sum::<usize>() > MOST_UNORDERED {
            return Ok(None);
        }
        names.sort_unstable();
        Ok(Some(Order { files, first, names }))
    }

    /// The rows in order, a stretch at a time; `whole` gives a batch of a file the columns of `schema`.
    pub(super) fn stretches(
        &self,
        schema: &SchemaRef,
        whole: impl Fn(&RecordBatch) -> Result<RecordBatch, ArrowError>,
    ) -> impl Iterator<Item = Result<RecordBatch, DeltaTableError>> {
        self.names.chunks(STRETCH).map(move |names| {
            let mut rows: Vec<u32> = names.iter().map(|name| name.3).collect();
            rows.sort_unstable();
            let read = self.read(&rows, schema, &whole)?;
            let place = |name: &Name| rows.partition_point(|row| *row < name.3) as u32;
            let wanted = UInt32Array::from_iter_values(names.iter().map(place));
            take_record_batch(&read, &wanted).map_err(arrow)
        })
    }

    /// These rows, which are in the order of the files.
    fn read(
        &self,
        rows: &[u32],
        schema: &SchemaRef,
        whole: &impl Fn(&RecordBatch) -> Result<RecordBatch, ArrowError>,
    ) -> Result<RecordBatch, DeltaTableError> {
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut rest = rows;
        for (file, &first) in self.files.iter().zip(&self.first) {
            let opened = builder(file).map_err(|source| DeltaTableError::Parquet { source })?;
            let total = opened.metadata().file_metadata().num_rows() as usize;
            let (here, after) = rest.split_at(rest.partition_point(|row| ((row - first) as usize) < total));
            rest = after;
            if here.is_empty() {
                continue;
            }
            let ranges = here.chunk_by(|a, b| a + 1 == *b).map(|run| {
                let begin = (run[0] - first) as usize;
                begin..begin + run.len()
            });
            let reader = opened
                .with_row_selection(RowSelection::from_consecutive_ranges(ranges, total))
                .with_batch_size(STRETCH)
                .build()
                .map_err(|source| DeltaTableError::Parquet { source })?;
            for batch in Contained::from(reader) {
                batches.push(batch.and_then(|batch| whole(&batch)).map_err(arrow)?);
            }
        }
        concat_batches(schema, &batches).map_err(arrow)
    }
}

fn arrow(source: ArrowError) -> DeltaTableError {
    DeltaTableError::Arrow { source }
}
