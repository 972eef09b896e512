//! The rows of the store in each actor's order, in bounded memory.

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
use demi_common::sealed::SealedFile;

use super::ahead::ahead;
use super::intern::NONE;
use super::records::Placement;
use super::source::{BATCH_ROWS, always_null, batches, record_schema};
use crate::error::LineageError;

/// Rows brought into order in memory at a time.
const CHUNK: usize = 256 * 1024;
/// Pieces of a usual batch that are not too small.
const PIECES: usize = 32;
/// How hard temporary files are compressed: the least that spares the disk, because rows are much alike.
const LEVEL: i32 = 1;
/// Logarithm of the distance at which repetition is looked for in temporary files, in bytes.
const WINDOW: u32 = 17;
/// Most temporary files open at a time; beyond it chunks grow.
const FILES: usize = 256;

/// What takes the rows: the first event of a batch, and the batch.
pub(crate) type Sink<'a> = dyn FnMut(u32, &RecordBatch) -> Result<(), LineageError> + 'a;

/// Rows on their way into the order of events.
pub(crate) enum Gathering {
    /// These files have them in order, one after the other.
    Sorted(Vec<SealedFile>, SchemaRef),
    /// They were spread over ranges of events.
    Spread(Spread),
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
fn gather(
    files: &[SealedFile],
    placement: &Placement,
    names: &Path,
    schema: &SchemaRef,
) -> Result<Gathering, LineageError> {
    if let Some(order) = already_sorted(placement) {
        let files = order.into_iter().map(|file| files[file].clone()).collect();
        return Ok(Gathering::Sorted(files, schema.clone()));
    }
    let chunk = CHUNK.max(placement.events.div_ceil(FILES));
    let null = always_null(files, schema)?;
    let mut spread = Spread::new(names, schema, &null, chunk, placement.events);
    let schema = &with_values(schema, &null);
    // A batch is cut into a piece for each range: with many ranges it is larger, so that pieces are not small.
    let batch_rows = BATCH_ROWS * spread.files.len().div_ceil(PIECES).clamp(1, 8);
    let mut row = 0;
    for batch in batches(files, schema, batch_rows) {
        let (_, batch) = batch?;
        spread.add(&batch, &placement.event_of_row[row..row + batch.num_rows()])?;
        row += batch.num_rows();
    }
    spread.end()?;
    Ok(Gathering::Spread(spread))
}

impl Gathering {
    /// Gives all rows to `sink` in the order of events; each range of events is sorted in memory.
    pub(crate) fn give(self, sink: &mut Sink<'_>) -> Result<(), LineageError> {
        let (files, schema) = match self {
            Gathering::Sorted(files, schema) => (files, schema),
            Gathering::Spread(spread) => return spread.give(sink),
        };
        let mut event = 0;
        for batch in batches(&files, &schema, BATCH_ROWS) {
            let (_, batch) = batch?;
            sink(event, &batch)?;
            event += batch.num_rows() as u32;
        }
        Ok(())
    }
}

/// The files in an order in which their rows are in order, if there is one.
fn already_sorted(placement: &Placement) -> Option<Vec<usize>> {
    let rows = &placement.event_of_row;
    let range = |f: usize| {
        let end = placement.file_rows.get(f + 1).map_or(rows.len(), |&r| r as usize);
        &rows[placement.file_rows[f] as usize..end]
    };
    let mut files: Vec<usize> = (0..placement.file_rows.len()).filter(|&f| !range(f).is_empty()).collect();
    files.sort_by_key(|&f| range(f)[0]);
    let mut next = 0;
    for &file in &files {
        for &event in range(file) {
            if event != next {
                return None;
            }
            next += 1;
        }
    }
    Some(files)
}

/// The rows of a temporary file, which is removed.
fn taken(path: &Path, schema: &SchemaRef) -> Result<RecordBatch, LineageError> {
    let file = File::open(path).map_err(LineageError::io(path))?;
    let file = zstd::Decoder::new(file).map_err(LineageError::io(path))?;
    let pieces = StreamReader::try_new(file, None)?.collect::<Result<Vec<_>, _>>()?;
    std::fs::remove_file(path).map_err(LineageError::io(path))?;
    Ok(concat_batches(schema, &pieces)?)
}

type Scratch = zstd::Encoder<'static, BufWriter<File>>;

fn scratch_file(path: &Path) -> std::io::Result<Scratch> {
    let mut file = zstd::Encoder::new(BufWriter::with_capacity(1 << 16, File::create(path)?), LEVEL)?;
    // Many files are written at a time.
    file.window_log(WINDOW)?;
    Ok(file)
}

/// The fields of a schema that are not null throughout.
fn with_values(schema: &SchemaRef, null: &[bool]) -> SchemaRef {
    let fields = schema.fields().iter().zip(null).filter(|(_, null)| !**null);
    Arc::new(Schema::new(fields.map(|(field, _)| field.clone()).collect::<Vec<_>>()))
}

/// Rows spread over ranges of events.
pub(crate) struct Spread {
    names: PathBuf,
    /// What is given: all columns, those without a value too.
    whole: SchemaRef,
    /// What is spread: columns with values, and the events.
    schema: SchemaRef,
    chunk: usize,
    /// With one range there is no need of files.
    kept: Vec<RecordBatch>,
    files: Vec<Option<StreamWriter<Scratch>>>,
}

impl Spread {
    fn new(names: &Path, schema: &SchemaRef, null: &[bool], chunk: usize, events: usize) -> Self {
        let mut fields = with_values(schema, null).fields().to_vec();
        fields.push(Arc::new(Field::new("event", DataType::UInt32, false)));
        let files = (0..events.div_ceil(chunk)).map(|_| None).collect();
        let (names, whole) = (names.to_owned(), schema.clone());
        Spread { names, whole, schema: Arc::new(Schema::new(fields)), chunk, kept: Vec::new(), files }
    }

    fn path(&self, range: usize) -> PathBuf {
        let mut path = self.names.clone().into_os_string();
        path.push(range.to_string());
        path.into()
    }

    fn add(&mut self, batch: &RecordBatch, events: &[u32]) -> Result<(), LineageError> {
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
    fn end(&mut self) -> Result<(), LineageError> {
        for range in 0..self.files.len() {
            if let Some(file) = self.files[range].take() {
                let scratch = file.into_inner()?;
                let path = self.path(range);
                let end = |scratch: Scratch| scratch.finish()?.flush();
                end(scratch).map_err(LineageError::io(&path))?;
            }
        }
        Ok(())
    }

    fn give(mut self, sink: &mut Sink<'_>) -> Result<(), LineageError> {
        if self.files.len() == 1 {
            let pieces = std::mem::take(&mut self.kept);
            return self.sorted(&concat_batches(&self.schema, &pieces)?, 0, sink);
        }
        let paths: Vec<PathBuf> = (0..self.files.len()).map(|range| self.path(range)).collect();
        let schema = self.schema.clone();
        for (range, rows) in ahead(paths.into_iter().map(move |path| taken(&path, &schema))).enumerate() {
            self.sorted(&rows?, (range * self.chunk) as u32, sink)?;
        }
        Ok(())
    }

    fn sorted(&self, all: &RecordBatch, first: u32, sink: &mut Sink<'_>) -> Result<(), LineageError> {
        let numbers = all.column(all.num_columns() - 1);
        let numbers: &UInt32Array = arrow_array::cast::AsArray::as_primitive(numbers);
        let mut place = vec![0_u32; all.num_rows()];
        numbers.values().iter().enumerate().for_each(|(row, &e)| place[(e - first) as usize] = row as u32);
        let all = all.project(&(0..all.num_columns() - 1).collect::<Vec<_>>())?;
        for (i, rows) in place.chunks(BATCH_ROWS).enumerate() {
            let some = take_record_batch(&all, &UInt32Array::from(rows.to_vec()))?;
            sink(first + (i * BATCH_ROWS) as u32, &self.completed(&some)?)?;
        }
        Ok(())
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
