//! Rows in any order, brought into the order of events in bounded memory: they are spread over temporary files, one a range of events,
//! and each range is sorted in memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;

use super::ahead::ahead;
use super::intern::NONE;
use super::source::BATCH_ROWS;
use crate::error::LineageError;

/// How hard temporary files are compressed: the least that spares the disk, because rows are much alike.
const LEVEL: i32 = 1;
/// Logarithm of the distance at which repetition is looked for in temporary files, in bytes.
const WINDOW: u32 = 17;

/// The first event of a batch, and the batch.
pub(crate) type NumberedBatch = Result<(u32, RecordBatch), LineageError>;

/// The rows of a temporary file, which is removed.
fn taken(path: &Path, schema: &SchemaRef) -> Result<RecordBatch, LineageError> {
    let file = File::open(path).map_err(LineageError::io(path))?;
    let file = zstd::Decoder::new(file).map_err(LineageError::io(path))?;
    let pieces = StreamReader::try_new(file, None)?.collect::<Result<Vec<_>, _>>()?;
    std::fs::remove_file(path).map_err(LineageError::io(path))?;
    Ok(concat_batches(schema, &pieces)?)
}

/// A compressed temporary file with the rows of a range.
type RangeFile = zstd::Encoder<'static, BufWriter<File>>;

fn scratch_file(path: &Path) -> std::io::Result<RangeFile> {
    let mut file = zstd::Encoder::new(BufWriter::with_capacity(1 << 16, File::create(path)?), LEVEL)?;
    // Many files are written at a time.
    file.window_log(WINDOW)?;
    Ok(file)
}

/// The fields of a schema that are not null throughout.
pub(super) fn with_values(schema: &SchemaRef, null: &[bool]) -> SchemaRef {
    let fields = schema.fields().iter().zip(null).filter(|(_, null)| !**null);
    Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()))
}

/// Rows spread over ranges of events.
pub(crate) struct RangePartition {
    /// What the paths of temporary files begin with.
    names: PathBuf,
    /// What is given: all columns, those without a value too.
    whole: SchemaRef,
    /// What is spread: columns with values, and the events.
    schema: SchemaRef,
    chunk: usize,
    /// With one range there is no need of files.
    kept: Vec<RecordBatch>,
    files: Vec<Option<StreamWriter<RangeFile>>>,
}

/// The items, or one that is the error.
fn all_or_error(items: Result<Vec<(u32, RecordBatch)>, LineageError>) -> impl Iterator<Item = NumberedBatch> {
    let (items, error) = match items {
        Ok(items) => (items, None),
        Err(error) => (Vec::new(), Some(Err(error))),
    };
    items.into_iter().map(Ok).chain(error)
}

impl RangePartition {
    /// Nothing yet.
    pub(super) fn new(names: &Path, schema: &SchemaRef, null: &[bool], chunk: usize, events: usize) -> Self {
        let mut fields = with_values(schema, null).fields().to_vec();
        fields.push(Arc::new(Field::new("event", DataType::UInt32, false)));
        let files = (0..events.div_ceil(chunk)).map(|_| None).collect();
        let (names, whole) = (names.to_owned(), schema.clone());
        RangePartition { names, whole, schema: Arc::new(Schema::new(fields)), chunk, kept: Vec::new(), files }
    }

    fn path(&self, range: usize) -> PathBuf {
        let mut path = self.names.clone().into_os_string();
        path.push(range.to_string());
        path.into()
    }

    /// Adds rows, and says which events they are; those of none are left out.
    pub(super) fn add(&mut self, batch: &RecordBatch, events: &[u32]) -> Result<(), LineageError> {
        let mut rows: Vec<u32> = (0..events.len() as u32).filter(|&r| events[r as usize] != NONE).collect();
        rows.sort_unstable_by_key(|&r| events[r as usize]);
        let numbers: ArrayRef = Arc::new(UInt32Array::from(events.to_vec()));
        let mut columns = batch.columns().to_vec();
        columns.push(numbers);
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        let range_of = |row: &u32| events[*row as usize] as usize / self.chunk;
        for part in rows.chunk_by(|a, b| range_of(a) == range_of(b)) {
            let range = range_of(&part[0]);
            let piece = take_record_batch(&batch, &UInt32Array::from(part.to_vec()))?;
            if self.files.len() == 1 {
                self.kept.push(piece);
                continue;
            }
            if self.files[range].is_none() {
                let path = self.path(range);
                let file = scratch_file(&path).map_err(LineageError::io(&path))?;
                self.files[range] = Some(StreamWriter::try_new(file, &self.schema)?);
            }
            if let Some(file) = &mut self.files[range] {
                file.write(&piece)?;
            }
        }
        Ok(())
    }

    /// All rows were added: nothing but what was kept stays in memory.
    pub(super) fn end(&mut self) -> Result<(), LineageError> {
        for range in 0..self.files.len() {
            if let Some(file) = self.files[range].take() {
                let scratch = file.into_inner()?;
                let path = self.path(range);
                let end = |scratch: RangeFile| scratch.finish()?.flush();
                end(scratch).map_err(LineageError::io(&path))?;
            }
        }
        Ok(())
    }

    /// All rows in the order of events; each range of events is sorted in memory.
    pub(super) fn into_batches(mut self) -> Box<dyn Iterator<Item = NumberedBatch>> {
        if self.files.len() == 1 {
            let pieces = std::mem::take(&mut self.kept);
            let sorted = concat_batches(&self.schema, &pieces).map_err(Into::into);
            return Box::new(all_or_error(sorted.and_then(|rows| self.sorted(&rows, 0))));
        }
        let paths: Vec<PathBuf> = (0..self.files.len()).map(|range| self.path(range)).collect();
        let schema = self.schema.clone();
        let ranges = ahead(paths.into_iter().map(move |path| taken(&path, &schema)));
        Box::new(ranges.enumerate().flat_map(move |(range, rows)| {
            all_or_error(rows.and_then(|rows| self.sorted(&rows, (range * self.chunk) as u32)))
        }))
    }

    fn sorted(&self, all: &RecordBatch, first: u32) -> Result<Vec<(u32, RecordBatch)>, LineageError> {
        let numbers = all.column(all.num_columns() - 1);
        let numbers: &UInt32Array = arrow_array::cast::AsArray::as_primitive(numbers);
        let mut place = vec![0_u32; all.num_rows()];
        numbers.values().iter().enumerate().for_each(|(row, &e)| place[(e - first) as usize] = row as u32);
        let all = all.project(&(0..all.num_columns() - 1).collect::<Vec<_>>())?;
        let batches = place.chunks(BATCH_ROWS).enumerate().map(|(i, rows)| {
            let some = take_record_batch(&all, &UInt32Array::from(rows.to_vec()))?;
            Ok((first + (i * BATCH_ROWS) as u32, self.completed(&some)?))
        });
        batches.collect()
    }

    /// The rows with all columns.
    fn completed(&self, some: &RecordBatch) -> Result<RecordBatch, LineageError> {
        let column = |field: &Arc<Field>| match some.column_by_name(field.name()) {
            Some(column) => column.clone(),
            None => new_null_array(field.data_type(), some.num_rows()),
        };
        let columns = self.whole.fields().iter().map(column).collect();
        Ok(RecordBatch::try_new(self.whole.clone(), columns)?)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn rows_come_in_the_order_of_events_from_any_number_of_ranges() {
        let fields = ["text", "none"].map(|name| Field::new(name, DataType::Utf8, true));
        let numbers = Field::new("number", DataType::Int64, false);
        let whole: SchemaRef = Arc::new(Schema::new(fields.into_iter().chain([numbers]).collect::<Vec<_>>()));
        let null = [false, true, false];
        let events = 230_usize;
        for chunk in [1, 9, 64, 229, 230, 1000] {
            let dir = tempfile::tempdir().unwrap();
            let mut partition = RangePartition::new(&dir.path().join("rows-"), &whole, &null, chunk, events);
            let order: Vec<u32> = (0..events).map(|i| ((i * 143 + 11) % events) as u32).collect();
            // Rows that are no event come between.
            let rows: Vec<u32> = order.chunks(3).flat_map(|some| [some, &[NONE]].concat()).collect();
            for some in rows.chunks(50) {
                let text: StringArray =
                    some.iter().map(|e| (e % 4 != 0).then(|| format!("text {e}"))).collect();
                let number: Int64Array = some.iter().map(|e| Some(i64::from(*e))).collect();
                let columns: Vec<ArrayRef> = vec![Arc::new(text), Arc::new(number)];
                let batch = RecordBatch::try_new(with_values(&whole, &null), columns).unwrap();
                partition.add(&batch, some).unwrap();
            }
            partition.end().unwrap();
            let mut next = 0;
            for batch in partition.into_batches() {
                let (first, batch) = batch.unwrap();
                assert_eq!((first, batch.schema()), (next, whole.clone()));
                let (text, none) = (batch.column(0).as_string::<i32>(), batch.column(1));
                let number = batch.column(2).as_primitive::<arrow_array::types::Int64Type>();
                for row in 0..batch.num_rows() {
                    let expected = (next % 4 != 0).then(|| format!("text {next}"));
                    assert_eq!(super::super::columns::at(text, row).map(str::to_owned), expected);
                    assert_eq!((number.value(row), none.is_null(row)), (i64::from(next), true));
                    next += 1;
                }
            }
            assert_eq!(next as usize, events, "{chunk} events in a range");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "temporary files are removed");
        }
    }
}
