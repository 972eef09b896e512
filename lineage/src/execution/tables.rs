//! The tables of an execution through one interface: a copy, or rows of the store that it refers to; and behind them those of what was
//! added.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch, UInt32Array};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use demi_common::sealed::SealedFile;
use demi_schemas::tables;

use super::messages::{self, RECORDED};
use super::names::{BASE_FOLDER, EVENTS, EVENTS_ADDED, MESSAGES, MESSAGES_ADDED, TABLES};
use super::references::{LIST, ROWS, References};
use super::writer::message_table;
use crate::error::LineageError;
use crate::index::{INDEX_FOLDER, Index};
use crate::read::gather::gather;
use crate::read::{
    BATCH_ROWS, NONE, Placement, RowRanges, Source, beside, chosen_batches, columns, columns_of,
    record_schema, runs,
};

/// Of how many events one must be looked for, so that going through all their places is the faster way.
const DENSE: u32 = 16;

/// A part of the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the execution was built with.
    Built,
    /// What was added.
    Added,
}

/// Batches of rows.
pub(crate) type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch, LineageError>> + 'a>;
/// Batches of rows, with the place of each row in its part.
pub(crate) type PlacedBatches<'a> =
    Box<dyn Iterator<Item = Result<(Vec<u32>, RecordBatch), LineageError>> + 'a>;

/// Whether a folder holds an execution: records, or what refers to them.
#[must_use]
pub fn is_execution(folder: &Path) -> bool {
    folder.join(EVENTS).is_file() || folder.join(ROWS).join(LIST).is_file()
}

/// Events one after the other, with records of them if columns of these were asked for.
type EventBatches<'a> = Box<dyn Iterator<Item = Result<(Vec<u32>, Option<RecordBatch>), LineageError>> + 'a>;

/// The tables of an execution.
pub struct Tables {
    exec: PathBuf,
    /// What it refers to; nothing where it holds a copy.
    references: Option<References>,
    grown: bool,
}

impl Tables {
    /// Opens the tables of the execution in `exec`.
    ///
    /// # Errors
    /// When what it refers to cannot be read.
    pub fn open(exec: &Path) -> Result<Tables, LineageError> {
        let rows = exec.join(ROWS);
        let references = if rows.join(LIST).exists() { Some(References::open(&rows)?) } else { None };
        Ok(Tables { exec: exec.to_owned(), references, grown: exec.join(EVENTS_ADDED).is_file() })
    }

    /// What the part that was built refers to; nothing where it is a copy.
    #[must_use]
    pub fn references(&self) -> Option<&References> {
        self.references.as_ref()
    }

    /// The parts that there are.
    #[must_use]
    pub fn parts(&self) -> &'static [Part] {
        if self.grown { &[Part::Built, Part::Added] } else { &[Part::Built] }
    }

    /// The file of a part that is a table; a part that refers to rows has none.
    #[must_use]
    pub fn path(&self, part: Part) -> PathBuf {
        self.exec.join(match part {
            Part::Built => EVENTS,
            Part::Added => EVENTS_ADDED,
        })
    }

    fn referred(&self, part: Part) -> Option<&References> {
        self.references.as_ref().filter(|_| part == Part::Built)
    }

    /// The named columns of a part's events, in their order. Rows that are referred to and stand in another order are sorted in bounded
    /// memory, with temporary files.
    pub(crate) fn part(&self, part: Part, names: &[&str]) -> Result<Batches<'_>, LineageError> {
        let wanted = columns_of(&tables::execution_events(), names);
        let Some(references) = self.referred(part) else {
            return Ok(Box::new(Source::of_execution(&self.path(part), &wanted)?));
        };
        let recorded = columns_of(&record_schema(), names);
        Ok(Box::new(self.in_order(references, &recorded)?.map(move |rows| {
            let (events, records) = rows?;
            references.complete(&wanted, &events, records.as_ref())
        })))
    }

    /// All events that are referred to in their order, with these columns of their records if there are any.
    fn in_order<'a>(
        &'a self,
        references: &'a References,
        recorded: &SchemaRef,
    ) -> Result<EventBatches<'a>, LineageError> {
        if recorded.fields().is_empty() {
            let firsts = (0..references.places.events).step_by(BATCH_ROWS);
            let batch =
                |first: u32| (first..references.places.events.min(first + BATCH_ROWS as u32)).collect();
            return Ok(Box::new(firsts.map(move |first| Ok((batch(first), None)))));
        }
        let scratch = tempfile::tempdir().map_err(LineageError::io(&std::env::temp_dir()))?;
        let placement = references.places.placement()?;
        let gathered = gather(&references.files, &placement, &scratch.path().join("rows-"), recorded)?;
        drop(placement);
        Ok(Box::new(gathered.into_batches().map(move |rows| {
            // The temporary files live as long as what reads them.
            let _ = &scratch;
            let (first, batch) = rows?;
            Ok(((first..first + batch.num_rows() as u32).collect(), Some(batch)))
        })))
    }

    /// The named columns of the events at these places of a part, which are in order, or of all; each with its place, and in the order
    /// in which they are stored, which costs the least.
    pub(crate) fn stored<'a>(
        &'a self,
        part: Part,
        names: &[&str],
        places: Option<&[Range<u32>]>,
    ) -> Result<PlacedBatches<'a>, LineageError> {
        let wanted = columns_of(&tables::execution_events(), names);
        let Some(references) = self.referred(part) else {
            let file = beside(&self.path(part))?;
            let whole = std::slice::from_ref(&(0..u32::MAX));
            let mut all = places.unwrap_or(whole).to_vec().into_iter().flatten();
            let source = Source::open_rows(&file, &wanted, BATCH_ROWS, places.map(<[_]>::to_vec))?;
            return Ok(Box::new(source.map(move |batch| {
                let batch = batch?;
                Ok((all.by_ref().take(batch.num_rows()).collect(), batch))
            })));
        };
        let all = 0..references.places.events;
        let places = places.unwrap_or(std::slice::from_ref(&all));
        let recorded = columns_of(&record_schema(), names);
        if recorded.fields().is_empty() {
            let runs: Vec<Range<u32>> = places.to_vec();
            let batches = runs
                .into_iter()
                .flat_map(|run| run.clone().step_by(BATCH_ROWS).map(move |first| (first, run.end)));
            return Ok(Box::new(batches.map(move |(first, end)| {
                let events: Vec<u32> = (first..end.min(first + BATCH_ROWS as u32)).collect();
                let batch = references.complete(&wanted, &events, None)?;
                Ok((events, batch))
            })));
        }
        let RowReads { files, events } = chosen(references, places)?;
        let mut events = events.into_iter();
        Ok(Box::new(chosen_batches(files, &recorded, BATCH_ROWS).map(move |batch| {
            let (_, batch) = batch?;
            let events: Vec<u32> = events.by_ref().take(batch.num_rows()).collect();
            let batch = references.complete(&wanted, &events, Some(&batch))?;
            Ok((events, batch))
        })))
    }

    /// The named columns of the events at these places of a part, in the order of the places, which are in order themselves. Only pages
    /// that hold such an event are read. For a few events: the rows stand in memory.
    ///
    /// # Errors
    /// When there is no such place or column, or a file cannot be read or is damaged.
    pub fn rows(
        &self,
        part: Part,
        names: &[&str],
        places: &[Range<u32>],
    ) -> Result<RecordBatch, LineageError> {
        let wanted = columns_of(&tables::execution_events(), names);
        let (mut at, mut batches) = (Vec::new(), Vec::new());
        for read in self.stored(part, names, Some(places))? {
            let (here, batch) = read?;
            at.extend(here);
            batches.push(batch);
        }
        let rows = concat_batches(&wanted, &batches)?;
        let mut order: Vec<u32> = (0..at.len() as u32).collect();
        order.sort_unstable_by_key(|&row| at[row as usize]);
        Ok(take_record_batch(&rows, &UInt32Array::from(order))?)
    }

    /// The named columns of all messages.
    ///
    /// A send without a receiver among what was built stands once more among what was added, with what became of it, and is left out
    /// before.
    pub(crate) fn messages(&self, names: &[&str]) -> Result<Batches<'_>, LineageError> {
        let all = tables::execution_messages();
        let wanted = columns_of(&all, names);
        if !self.grown {
            return self.messages_built(&wanted);
        }
        let read = columns_of(&all, &[names, &["send_actor", "receive_actor"]].concat());
        let added = Source::of_execution(&self.exec.join(MESSAGES_ADDED), &read)?;
        let built = self.messages_built(&read)?.map(|batch| without_open(&batch?));
        Ok(Box::new(built.chain(added).map(move |batch| project(&batch?, &wanted))))
    }

    fn messages_built(&self, wanted: &SchemaRef) -> Result<Batches<'_>, LineageError> {
        let Some(references) = &self.references else {
            return Ok(Box::new(Source::of_execution(&self.exec.join(MESSAGES), wanted)?));
        };
        let told: Vec<&str> = wanted.fields().iter().map(|f| f.name().as_str()).collect();
        let told: Vec<&str> = told.into_iter().filter(|name| RECORDED.contains(name)).collect();
        let (index, wanted) = (self.built_index()?, wanted.clone());
        Ok(Box::new(self.in_order(references, &columns_of(&record_schema(), &told))?.map(move |rows| {
            let (events, records) = rows?;
            messages::rows(&wanted, &events, records.as_ref(), &index)
        })))
    }

    /// The files with the messages: those of what was built, if they are kept, and those of what was added.
    #[must_use]
    pub fn message_files(&self) -> MessageFiles {
        let kept = if self.references.is_some() { TABLES } else { "" };
        let added = self.grown.then(|| self.exec.join(MESSAGES_ADDED));
        MessageFiles { built: self.exec.join(kept).join(MESSAGES), added }
    }

    /// Writes the table of the messages of what was built and is referred to, in the order in which the rows are stored that tell of them.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn write_messages(&self, path: &Path) -> Result<(), LineageError> {
        let table = message_table(path)?;
        let schema = table.schema();
        let written =
            self.messages_stored()?.try_for_each(|batch| table.add(batch?.with_schema(schema.clone())?));
        table.finish()?;
        written
    }

    fn messages_stored(&self) -> Result<Batches<'_>, LineageError> {
        let (index, wanted) = (self.built_index()?, tables::execution_messages());
        let rows = self.stored(Part::Built, &RECORDED, None)?;
        Ok(Box::new(rows.map(move |rows| {
            let (events, records) = rows?;
            messages::rows(&wanted, &events, Some(&records), &index)
        })))
    }

    /// The order index of what was built.
    fn built_index(&self) -> Result<Index, LineageError> {
        let folder = if self.grown { self.exec.join(BASE_FOLDER) } else { self.exec.clone() };
        Index::open(&folder.join(INDEX_FOLDER))
    }
}

/// The files with the table of messages.
#[derive(Clone, Debug)]
pub struct MessageFiles {
    /// What the execution was built with. Where it refers to rows the table is made when it is first needed, and may be absent.
    pub built: PathBuf,
    /// What was added, if anything was.
    pub added: Option<PathBuf>,
}

/// Rows that are read of files, and the events of these rows.
struct RowReads {
    files: Vec<(SealedFile, RowRanges)>,
    events: Vec<u32>,
}

/// How to read the rows of these events.
fn chosen(references: &References, events: &[Range<u32>]) -> Result<RowReads, LineageError> {
    let places = &references.places;
    let count: u32 = events.iter().map(|range| range.len() as u32).sum();
    if count > places.events / DENSE {
        let placement = places.placement_of(events.iter().cloned())?;
        let runs = |file| placement.of_file(file).contains(&NONE).then(|| placement.runs_of(file, |_| true));
        let files = references.files.iter().cloned().zip((0..).map(runs)).collect();
        let Placement { mut event_of_row, .. } = placement;
        event_of_row.retain(|&event| event != NONE);
        return Ok(RowReads { files, events: event_of_row });
    }
    let rows = events.iter().cloned().flatten().map(|event| Ok((places.row_of(event)?, event)));
    let mut rows = rows.collect::<Result<Vec<(u32, u32)>, LineageError>>()?;
    rows.sort_unstable();
    let mut files = Vec::new();
    let mut rest = rows.as_slice();
    for (number, file) in references.files.iter().enumerate() {
        let first = places.file_rows[number];
        let end = places.file_rows.get(number + 1).copied().unwrap_or(places.rows());
        let (here, after) = rest.split_at(rest.partition_point(|(row, _)| *row < end));
        files.push((file.clone(), Some(runs(here.iter().map(|(row, _)| row - first)))));
        rest = after;
    }
    Ok(RowReads { files, events: rows.into_iter().map(|(_, event)| event).collect() })
}

fn without_open(batch: &RecordBatch) -> Result<RecordBatch, LineageError> {
    let (send, receive) = (columns::text(batch, "send_actor")?, columns::text(batch, "receive_actor")?);
    let keep: BooleanArray =
        (0..batch.num_rows()).map(|row| Some(receive.is_valid(row) || send.is_null(row))).collect();
    Ok(filter_record_batch(batch, &keep)?)
}

fn project(batch: &RecordBatch, wanted: &SchemaRef) -> Result<RecordBatch, LineageError> {
    let indices: Result<Vec<usize>, _> =
        wanted.fields().iter().map(|f| batch.schema().index_of(f.name())).collect();
    let batch = batch.project(&indices?)?;
    Ok(RecordBatch::try_new(Arc::new(Schema::clone(wanted)), batch.columns().to_vec())?)
}
