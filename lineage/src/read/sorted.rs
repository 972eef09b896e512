//! Reading files whose rows are in order in one pass: each row is the next event.

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use demi_schemas::event::is_clock_seq;
use parquet::file::metadata::ParquetMetaData;

use super::columns;
use super::events::Events;
use super::intern::NONE;
use super::placement::Placement;
use super::records::{ColumnFiller, KEYS, Loaded, NEEDED, in_file};
use super::source::{BATCH_ROWS, Source, builder, chosen_batches, columns_of, record_schema, rows_of};
use crate::error::LineageError;

/// A name of an event: actor, incarnation and sequence number.
type SortKey = (String, i32, i64);

/// A file that says of itself that its rows are in order.
struct Sorted {
    /// Its place among the files.
    number: usize,
    first: SortKey,
}

/// The files in the order of their first rows, and the number of rows of each in the order given.
type OrderedFiles = (Vec<Sorted>, Vec<u32>);

/// Reads files that say of themselves that their rows are in order; nothing where one does not, or where the rows of all are not in
/// order, one file after the other.
pub(super) fn read(files: &[SealedFile]) -> Result<Option<Loaded>, LineageError> {
    let Some((sorted, file_rows)) = look(files)? else { return Ok(None) };
    let total = file_rows.iter().map(|rows| u64::from(*rows)).sum::<u64>();
    if total >= u64::from(NONE) {
        return Err(LineageError::TooMany(total));
    }
    let first_rows = file_rows.iter().scan(0, |next, rows| {
        let first = *next;
        *next += rows;
        Some(first)
    });
    let mut once = SortedReader {
        loaded: Loaded {
            events: Events::default(),
            placement: Placement::new(vec![NONE; total as usize], first_rows.collect(), 0),
            clocked: false,
            has_spans: false,
            spans: Vec::new(),
            warnings: Vec::new(),
        },
        last: None,
    };
    once.loaded.events.reserve(total as usize);
    let wanted = columns_of(&record_schema(), &[&KEYS[..], &NEEDED].concat());
    let sources = sorted.iter().map(|file| (files[file.number].clone(), None)).collect();
    let (mut open, mut row) = (None, 0);
    for batch in chosen_batches(sources, &wanted, BATCH_ROWS) {
        let (place, batch) = batch?;
        let number = sorted[place].number;
        if open != Some(number) {
            (open, row) = (Some(number), once.loaded.placement.file_rows()[number]);
        }
        if !once.add(&batch, row).map_err(in_file(files[number].path()))? {
            return Ok(None);
        }
        row += batch.num_rows() as u32;
    }
    Ok(Some(once.finish()))
}

/// The files in the order of their first rows, and the number of rows of each in the order given.
fn look(files: &[SealedFile]) -> Result<Option<OrderedFiles>, LineageError> {
    let keys = columns_of(&record_schema(), &KEYS);
    let (mut sorted, mut file_rows) = (Vec::with_capacity(files.len()), Vec::with_capacity(files.len()));
    for (number, file) in files.iter().enumerate() {
        let opened = file.open().map_err(LineageError::io(file.path()))?;
        let builder = builder(opened).map_err(LineageError::table(file.path()))?;
        if !says_so(builder.metadata()) {
            return Ok(None);
        }
        let rows = rows_of(file)?;
        file_rows.push(rows);
        if rows == 0 {
            continue;
        }
        let first = Source::open_rows(file, &keys, 1, None)?.next();
        let Some(first) = first.transpose()? else { return Ok(None) };
        let actor = columns::text(&first, "actor")?.value(0).to_owned();
        let (incarnation, seq) = (columns::int(&first, "incarnation")?, columns::long(&first, "seq")?);
        sorted.push(Sorted { number, first: (actor, incarnation.value(0), seq.value(0)) });
    }
    sorted.sort_by(|a, b| a.first.cmp(&b.first));
    Ok(if sorted.is_empty() { None } else { Some((sorted, file_rows)) })
}

/// Whether a file says that its rows are in the order of the events' names.
fn says_so(file: &ParquetMetaData) -> bool {
    file.row_groups().iter().all(|group| {
        let by = group.sorting_columns().map(Vec::as_slice).unwrap_or_default();
        by.len() >= KEYS.len()
            && by.iter().zip(KEYS).all(|(by, key)| {
                let column = usize::try_from(by.column_idx).ok().and_then(|i| group.columns().get(i));
                !by.descending && column.is_some_and(|column| column.column_path().string() == key)
            })
    })
}

/// Events as far as they were read.
struct SortedReader {
    loaded: Loaded,
    last: Option<(u32, u64)>,
}

impl SortedReader {
    /// Takes the next rows, the first of which is `row`; false where they are not in order, or have no order but that of a clock.
    fn add(&mut self, batch: &RecordBatch, row: u32) -> Result<bool, LineageError> {
        let actor = columns::text(batch, "actor")?;
        let (incarnation, seq) = (columns::int(batch, "incarnation")?, columns::long(batch, "seq")?);
        let Loaded { events, placement, .. } = &mut self.loaded;
        for i in 0..batch.num_rows() {
            let (Ok(inc), Ok(number)) = (u32::try_from(incarnation.value(i)), u64::try_from(seq.value(i)))
            else {
                return Ok(false);
            };
            let name = actor.value(i);
            let known = events.actors.last().map(|&actor| events.names.text(actor));
            let begins = known != Some(name);
            let in_order = match (known, self.last) {
                (Some(known), _) if begins => known < name,
                (Some(_), Some(last)) => last < (inc, number),
                _ => true,
            };
            let Some(event) = placement.event_of_row.get_mut(row as usize + i).filter(|_| in_order) else {
                return Ok(false);
            };
            if is_clock_seq(number) {
                return Ok(false);
            }
            *event = events.actor.len() as u32;
            if begins {
                events.first.push(*event);
                let name = events.names.intern(name);
                events.actors.push(name);
            }
            events.places.push(*event, (inc, number), begins);
            events.actor.push(events.actors.len() as u32 - 1);
            self.last = Some((inc, number));
        }
        placement.events = events.actor.len();
        ColumnFiller::next(&mut self.loaded, row as usize).add(batch)?;
        Ok(true)
    }

    fn finish(mut self) -> Loaded {
        let events = &mut self.loaded.events;
        events.first.push(events.actor.len() as u32);
        events.actor_of_name = vec![NONE; events.names.len()];
        for (number, &name) in events.actors.iter().enumerate() {
            events.actor_of_name[name as usize] = number as u32;
        }
        events.find_environment();
        self.loaded
    }
}
