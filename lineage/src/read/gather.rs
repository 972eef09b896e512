//! The rows of the store in each actor's order, in bounded memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use demi_common::sealed::SealedFile;

use super::ahead::ahead;
use super::intern::NONE;
use super::records::Loaded;
use super::source::{BATCH_ROWS, batches, record_schema};
use crate::error::LineageError;

/// Rows brought into order in memory at a time.
const CHUNK: usize = 256 * 1024;
/// Pieces of a usual batch that are not too small.
const PIECES: usize = 32;
/// How hard temporary files are compressed: the least that spares the disk, because rows are much alike.
const LEVEL: i32 = 1;
/// Most temporary files open at a time; beyond it chunks grow.
const FILES: usize = 256;

/// What takes the rows: the first event of a batch, and the batch.
pub(crate) type Sink<'a> = dyn FnMut(u32, &RecordBatch) -> Result<(), LineageError> + 'a;

/// Gives all rows to `sink` in the order of events.
///
/// Files that already are in order are streamed through. Others are first spread over temporary files in `scratch`, one a
/// range of events, and each range is sorted in memory.
pub(crate) fn in_order(
    files: &[SealedFile],
    loaded: &Loaded,
    scratch: &Path,
    sink: &mut Sink<'_>,
) -> Result<(), LineageError> {
    columns_in_order(files, loaded, scratch, &record_schema(), sink)
}

/// [`in_order`] with only the columns of `schema`.
pub(crate) fn columns_in_order(
    files: &[SealedFile],
    loaded: &Loaded,
    scratch: &Path,
    schema: &SchemaRef,
    sink: &mut Sink<'_>,
) -> Result<(), LineageError> {
    if let Some(order) = already_sorted(loaded) {
        let mut event = 0;
        let files: Vec<SealedFile> = order.into_iter().map(|file| files[file].clone()).collect();
        for batch in batches(&files, schema, BATCH_ROWS) {
            let (_, batch) = batch?;
            sink(event, &batch)?;
            event += batch.num_rows() as u32;
        }
        return Ok(());
    }
    let events = loaded.events.len();
    let chunk = CHUNK.max(events.div_ceil(FILES));
    let mut spread = Spread::new(scratch, schema, chunk, events);
    // A batch is cut into a piece for each range: with many ranges it is larger, so that pieces are not small.
    let batch_rows = BATCH_ROWS * spread.files.len().div_ceil(PIECES).clamp(1, 8);
    let mut row = 0;
    for batch in batches(files, schema, batch_rows) {
        let (_, batch) = batch?;
        spread.add(&batch, &loaded.event_of_row[row..row + batch.num_rows()])?;
        row += batch.num_rows();
    }
    spread.finish(sink)
}

/// The files in an order in which their rows are in order, if there is one.
fn already_sorted(loaded: &Loaded) -> Option<Vec<usize>> {
    let rows = &loaded.event_of_row;
    let range = |f: usize| {
        let end = loaded.file_rows.get(f + 1).map_or(rows.len(), |&r| r as usize);
        &rows[loaded.file_rows[f] as usize..end]
    };
    let mut files: Vec<usize> = (0..loaded.file_rows.len()).filter(|&f| !range(f).is_empty()).collect();
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

/// Rows spread over ranges of events.
struct Spread<'a> {
    scratch: &'a Path,
    schema: SchemaRef,
    chunk: usize,
    /// With one range there is no need of files.
    kept: Vec<RecordBatch>,
    files: Vec<Option<StreamWriter<Scratch>>>,
}

impl<'a> Spread<'a> {
    fn new(scratch: &'a Path, schema: &SchemaRef, chunk: usize, events: usize) -> Self {
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new("event", DataType::UInt32, false)));
        let files = (0..events.div_ceil(chunk)).map(|_| None).collect();
        Spread { scratch, schema: Arc::new(Schema::new(fields)), chunk, kept: Vec::new(), files }
    }

    fn path(&self, range: usize) -> PathBuf {
        self.scratch.join(format!("rows-{range}"))
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
                let begin =
                    || zstd::Encoder::new(BufWriter::with_capacity(1 << 16, File::create(&path)?), LEVEL);
                let file = begin().map_err(LineageError::io(&path))?;
                self.files[range] = Some(StreamWriter::try_new(file, &self.schema)?);
            }
            if let Some(file) = &mut self.files[range] {
                file.write(&piece)?;
            }
        }
        Ok(())
    }

    fn finish(mut self, sink: &mut Sink<'_>) -> Result<(), LineageError> {
        if self.files.len() == 1 {
            let pieces = std::mem::take(&mut self.kept);
            return self.sorted(&concat_batches(&self.schema, &pieces)?, 0, sink);
        }
        let files = std::mem::take(&mut self.files);
        let ranges = files.len();
        for (range, file) in files.into_iter().enumerate() {
            if let Some(file) = file {
                let scratch = file.into_inner()?;
                let path = self.path(range);
                let end = |scratch: Scratch| scratch.finish()?.flush();
                end(scratch).map_err(LineageError::io(&path))?;
            }
        }
        let paths: Vec<PathBuf> = (0..ranges).map(|range| self.path(range)).collect();
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
            let batch = take_record_batch(&all, &UInt32Array::from(rows.to_vec()))?;
            sink(first + (i * BATCH_ROWS) as u32, &batch)?;
        }
        Ok(())
    }
}
