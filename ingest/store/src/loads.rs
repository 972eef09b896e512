//! Loading sources into the store.

use std::fs::File;

use arrow_array::RecordBatch;
use demi_schemas::summary::BackwardStamps;

use crate::admit::Known;
use crate::columns::Sink;
use crate::delta::{Gone, TableWriter};
use crate::lent::Lent;
use crate::load::{LoadOptions, LoadReport, Progress, load_into, native};
use crate::noted_stamps;
use crate::stamps::Stamps;
use crate::transaction::{Tables, Transaction};
use crate::{Store, StoreError};
use demi_formats::mapping::Mapper;
use demi_formats::read::source::Sources;

/// Loads `sources` into the store, in their order, and calls `progress` now and then.
///
/// Commits are atomic; a load that was killed can be run again and adds what is missing. Lines that are no
/// records go to quarantine and stop nothing. Of two records of one name the first stays; the other goes to
/// quarantine unless it says the same.
///
/// # Errors
/// When the system's name cannot be used, another process is loading into the system, a source cannot be read,
/// or the store cannot be read or written. What was committed before stays.
pub fn load(
    store: &mut Store,
    sources: Sources,
    options: &LoadOptions,
    progress: impl FnMut(&Progress),
) -> Result<LoadReport, StoreError> {
    load_mapped(store, sources, options, native()?, progress)
}

/// Loads `sources` through a mapping, as [`load`] does without one.
///
/// An execution that has a name, because its source holds several, is loaded into the system `SYSTEM/NAME`; the summary then has one
/// summary an execution. Lines that are no event go to quarantine with the reason; comments, headers and delimiters are
/// counted as skipped.
///
/// # Errors
/// As [`load`].
pub fn load_mapped(
    store: &mut Store,
    sources: Sources,
    options: &LoadOptions,
    mapper: Mapper,
    progress: impl FnMut(&Progress),
) -> Result<LoadReport, StoreError> {
    let report = load_into(store, sources, options, mapper, progress)?;
    store.refresh()?;
    Ok(report)
}

/// Rows on their way into the store's tables.
pub(crate) struct StoreTransaction {
    /// Held until the load ends.
    _lock: File,
    /// Rows are encoded while the next are looked at.
    events: Lent<TableWriter>,
    quarantine: TableWriter,
    number: Number,
}

/// Numbers of the commits that loads made to a system: two loads into one system cannot both commit on what they read,
/// for both would give their commit the same number.
struct Number {
    application: String,
    events: u64,
    quarantine: u64,
}

impl Number {
    fn read(system: &str, events: &TableWriter, quarantine: &TableWriter) -> Result<Self, StoreError> {
        let application = format!("demi-ingest/{system}");
        let of = |table: &TableWriter| Ok::<_, StoreError>(table.progress(&application)?.unwrap_or(0));
        let (events, quarantine) = (of(events)?, of(quarantine)?);
        Ok(Number { application, events, quarantine })
    }

    fn of(&self, number: u64) -> (String, u64) {
        (self.application.clone(), number)
    }
}

impl Tables for Store {
    type Transaction = StoreTransaction;

    fn begin(&mut self, system: &str) -> Result<(Known, StoreTransaction), StoreError> {
        let lock = self.lock(system)?;
        self.refresh()?;
        let (events, quarantine) = (self.events_writer()?, self.quarantine_writer()?);
        let number = Number::read(system, &events, &quarantine)?;
        let known = self.known(system, self.dir().to_owned())?;
        let events = Lent::new(events, "rows")?;
        Ok((known, StoreTransaction { _lock: lock, events, quarantine, number }))
    }

    fn end(
        &mut self,
        system: &str,
        transaction: StoreTransaction,
        stamps: Stamps,
    ) -> Result<Vec<BackwardStamps>, StoreError> {
        self.adopt(transaction.events.into_inner()?, transaction.quarantine);
        let (found, whole) = stamps.finish(|| self.event_files(system))?;
        noted_stamps::note(self, system, &found, &whole)?;
        Ok(found)
    }
}

impl Transaction for StoreTransaction {
    type Quarantine = TableWriter;

    fn quarantine(&mut self) -> &mut TableWriter {
        &mut self.quarantine
    }

    fn events(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        self.events.work(move |events| events.write(batch))
    }

    fn commit(&mut self) -> Result<bool, StoreError> {
        if self.quarantine.is_pending() {
            self.number.quarantine += 1;
            self.quarantine.commit(&[self.number.of(self.number.quarantine)], Gone::Nothing)?;
        }
        let events = self.events.get()?;
        let pending = events.is_pending();
        if pending {
            self.number.events += 1;
            events.commit(&[self.number.of(self.number.events)], Gone::Nothing)?;
        }
        Ok(pending)
    }
}

impl Sink for TableWriter {
    fn write(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        TableWriter::write(self, batch)
    }
}
