//! Deleting events on purpose: those of an actor, or those before a day.
//!
//! # The order of commits
//!
//! 1. What is deleted is noted in the table `deleted`, so that it neither counts as missing nor comes back.
//! 2. The quarantine without the records of deleted actors.
//! 3. The events without what is deleted.
//! 4. The completeness as it is then.
//!
//! After a crash in between, the same command does the rest: what is noted already is noted once more, which changes
//! nothing. Files that are no part of the tables any more are removed at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;
use chrono::NaiveDate;
use demi_schemas::EventRecord;
use demi_schemas::event::is_clock_seq;
use serde::Serialize;

use crate::columns::QuarantineColumns;
use crate::completeness::{self, completeness, status};
use crate::deleted::{self, Deleted};
use crate::delta::{Gone, vacuum};
use crate::noted_stamps;
use crate::quarantine;
use crate::scan::{row_count, whole};
use crate::{IntervalSet, Store, StoreError};
use demi_formats::time::utc_date;

/// What is to be deleted of a system: what all of its fields say. Where none says anything, nothing is.
#[derive(Clone, Debug, Default)]
pub struct Doomed {
    /// Only events of these actors; of all where there are none.
    pub actors: BTreeSet<String>,
    /// Only events before this day (UTC). Events without a time are of no day and stay.
    pub before: Option<NaiveDate>,
}

/// What [`delete`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deletion {
    /// The system.
    pub system: String,
    /// Events that are gone.
    pub events: u64,
    /// Events that stay.
    pub kept: u64,
    /// Quarantined lines that are gone: conflicting records of the actors.
    pub quarantined: u64,
    /// Quarantined lines that stay. They may say anything of anybody.
    pub quarantined_kept: u64,
}

impl Doomed {
    /// Whether nothing is to be deleted: where no field says what is to go, nothing goes.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.actors.is_empty() && self.before.is_none()
    }

    /// Whether something of an actor may have to go.
    #[must_use]
    pub fn is_about(&self, actor: &str) -> bool {
        !self.is_nothing() && (self.actors.is_empty() || self.actors.contains(actor))
    }

    /// Whether an event has to go.
    #[must_use]
    pub fn takes(&self, record: &EventRecord) -> bool {
        let is_before = |day: NaiveDate| {
            let date = record.time.as_ref().and_then(utc_date);
            date.is_some_and(|date| date < day.to_epoch_days())
        };
        self.is_about(&record.actor) && self.before.is_none_or(is_before)
    }
}

/// Deletes events of a system for good. Files of what is gone are removed from the disk. `waiting` are records that have to go and are
/// not in the store yet: they are not to come in.
///
/// # Errors
/// When the store cannot be read or written, or something else is writing into the system.
pub fn delete(
    store: &mut Store,
    system: &str,
    doomed: &Doomed,
    waiting: &Waiting,
) -> Result<Deletion, StoreError> {
    let _lock = store.lock(system)?;
    delete_locked(store, system, doomed, waiting)
}

/// As [`delete`], for who holds the [lock](Store::lock) of the system.
///
/// # Errors
/// When the store cannot be read or written.
pub fn delete_locked(
    store: &mut Store,
    system: &str,
    doomed: &Doomed,
    waiting: &Waiting,
) -> Result<Deletion, StoreError> {
    store.refresh()?;
    // Without a word on what is to go, nothing goes.
    let nothing = doomed.is_nothing();
    let mut events = store.events_writer()?;
    let mut done = Deletion { system: system.to_owned(), ..Deletion::default() };
    let mut numbers = waiting.0.clone();
    let mut gone = Vec::new();
    for file in events.data_files(system)? {
        let whole_day = !nothing && doomed.before.is_none_or(|day| file.date.is_some_and(|date| date < day));
        if !whole_day {
            done.kept += row_count(&file.file)? as u64;
            continue;
        }
        let (mut kept, before) = (Vec::new(), done.events);
        whole(&file.file, |batch| {
            let stays = stays(batch, doomed, &mut numbers)?;
            let staying = stays.true_count() as u64;
            done.events += batch.num_rows() as u64 - staying;
            done.kept += staying;
            if staying > 0 {
                kept.push(filter_record_batch(batch, &stays)?);
            }
            Ok(())
        })?;
        if done.events > before {
            for batch in kept {
                events.write_part(&batch, &file.partition)?;
            }
            gone.push(file.remove);
        }
    }
    note(store, system, numbers)?;
    clear_quarantine(store, system, doomed, &mut done)?;
    if !gone.is_empty() {
        events.commit(&[], Gone::Files(gone))?;
    }
    store.refresh()?;
    if doomed.before.is_none() && !nothing {
        noted_stamps::forget(store, system, &doomed.actors)?;
    }
    recount(store, system)?;
    for mut table in [store.events_writer()?, store.quarantine_writer()?] {
        vacuum(&mut table, Duration::ZERO)?;
    }
    store.refresh()?;
    Ok(done)
}

/// Sequence numbers of records that have to go and are not in the store, by actor and incarnation.
#[derive(Clone, Debug, Default)]
pub struct Waiting(BTreeMap<(String, u32), Numbers>);

impl Waiting {
    /// Adds a record.
    pub fn add(&mut self, record: &EventRecord) {
        let key = (record.actor.clone(), record.incarnation);
        self.0.entry(key).or_default().add(record.seq);
    }
}

/// Sequence numbers of an incarnation.
#[derive(Clone, Debug, Default)]
struct Numbers {
    counted: IntervalSet,
    /// First and last of those taken from a clock.
    clocked: Option<(u64, u64)>,
}

impl Numbers {
    fn add(&mut self, seq: u64) {
        if is_clock_seq(seq) {
            let (first, last) = self.clocked.unwrap_or((seq, seq));
            self.clocked = Some((first.min(seq), last.max(seq)));
        } else {
            self.counted.insert(seq);
        }
    }
}

/// Which rows stay; the sequence numbers of the others are added to `numbers`.
fn stays(
    batch: &RecordBatch,
    doomed: &Doomed,
    numbers: &mut BTreeMap<(String, u32), Numbers>,
) -> Result<BooleanArray, ArrowError> {
    let column = |name: &str| {
        let index = batch.schema().index_of(name)?;
        Ok::<_, ArrowError>(batch.column(index).clone())
    };
    let (actors, incarnations, seqs) = (column("actor")?, column("incarnation")?, column("seq")?);
    let actors = arrow_cast::cast(&actors, &arrow_schema::DataType::Utf8)?;
    let actors = actors.as_string::<i32>();
    let (incarnations, seqs) = (incarnations.as_primitive::<Int32Type>(), seqs.as_primitive::<Int64Type>());
    let stays = (0..batch.num_rows()).map(|row| {
        let actor = actors.value(row);
        let stays = !(doomed.actors.is_empty() || doomed.actors.contains(actor));
        if !stays {
            let key = (actor.to_owned(), incarnations.value(row) as u32);
            numbers.entry(key).or_default().add(seqs.value(row) as u64);
        }
        stays
    });
    Ok(stays.collect::<Vec<bool>>().into())
}

/// Notes what is deleted.
fn note(store: &Store, system: &str, numbers: BTreeMap<(String, u32), Numbers>) -> Result<(), StoreError> {
    let mut runs = Vec::new();
    for ((actor, incarnation), numbers) in numbers {
        let all = numbers.counted.runs().chain(numbers.clocked);
        runs.extend(all.map(|(first_seq, last_seq)| Deleted {
            actor: actor.clone(),
            incarnation,
            first_seq,
            last_seq,
        }));
    }
    if runs.is_empty() {
        return Ok(());
    }
    let mut table = store.deleted_writer()?;
    table.write(deleted::batch(system, &runs)?)?;
    table.commit(&[], Gone::Nothing)
}

/// Takes the conflicting records of deleted actors out of the quarantine.
fn clear_quarantine(
    store: &Store,
    system: &str,
    doomed: &Doomed,
    done: &mut Deletion,
) -> Result<(), StoreError> {
    let mut table = store.quarantine_writer()?;
    let (files, gone) = (store.quarantine_files(system)?, table.files_of(system)?);
    let mut kept = QuarantineColumns::default();
    quarantine::each(&files, system, |row| {
        if is_doomed_line(row.raw, doomed) {
            done.quarantined += 1;
            return Ok(());
        }
        done.quarantined_kept += 1;
        kept.push(row);
        if kept.is_full() {
            table.write(kept.finish()?)?;
        }
        Ok(())
    })?;
    if done.quarantined == 0 {
        return Ok(());
    }
    if kept.rows() > 0 {
        table.write(kept.finish()?)?;
    }
    table.commit(&[], Gone::Files(gone))
}

/// Whether a quarantined line has to go: a record of an actor of which everything does.
pub fn is_doomed_line(raw: &[u8], doomed: &Doomed) -> bool {
    let of = |record: EventRecord| doomed.actors.contains(&record.actor);
    doomed.before.is_none() && EventRecord::parse(raw).is_ok_and(of)
}

/// Writes the completeness of a system as it is, where a daemon keeps one.
fn recount(store: &Store, system: &str) -> Result<(), StoreError> {
    if store.completeness()?.is_none() {
        return Ok(());
    }
    let before = completeness(store)?;
    let mut rows: Vec<_> = before.iter().filter(|row| row.system != system).cloned().collect();
    if !store.known_event_files(system)?.is_empty() {
        rows.extend(status(store, Some(system))?);
    }
    if rows == before {
        return Ok(());
    }
    let mut table = store.completeness_writer()?;
    table.write(completeness::batch(&rows)?)?;
    table.commit(&[], Gone::Everything)
}
