//! Loading sources into the store.

use std::fs::File;

use arrow_array::RecordBatch;
use demi_schemas::summary::BackwardStamps;

use crate::admit::Known;
use crate::delta::TableWriter;
use crate::load::{LoadOptions, LoadReport, Progress, load_into, native};
use crate::noted_stamps;
use crate::stamps::Stamps;
use crate::transaction::{Tables, Transaction};
use crate::writing::{Events, Quarantine, Writing};
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

/// A load into one system of a store.
///
/// Two loads into one system cannot both commit on what they read, for both would give their commit the same number.
pub(crate) struct StoreTransaction {
    /// Held until the load ends.
    _lock: File,
    writing: Writing,
    /// Numbers of the commits that loads made to the system: to its quarantine, and to its events.
    numbers: [(String, u64); 2],
}

impl Tables for Store {
    type Transaction = StoreTransaction;

    fn begin(&mut self, system: &str) -> Result<(Known, StoreTransaction), StoreError> {
        let lock = self.lock(system)?;
        self.refresh()?;
        let mut writing = Writing::begin(self)?;
        let application = format!("demi-ingest/{system}");
        let number = |table: &TableWriter| {
            Ok::<_, StoreError>((application.clone(), table.progress(&application)?.unwrap_or(0)))
        };
        let numbers = [number(writing.quarantine())?, number(writing.events()?)?];
        let known = self.known(system, self.dir().to_owned())?;
        Ok((known, StoreTransaction { _lock: lock, writing, numbers }))
    }

    fn end(
        &mut self,
        system: &str,
        transaction: StoreTransaction,
        stamps: Stamps,
    ) -> Result<Vec<BackwardStamps>, StoreError> {
        let (events, quarantine) = transaction.writing.end()?;
        self.adopt(events, quarantine);
        let (found, whole) = stamps.finish(|| self.known_event_files(system))?;
        noted_stamps::note(self, system, &found, &whole)?;
        Ok(found)
    }
}

impl Transaction for StoreTransaction {
    type Quarantine = TableWriter;

    fn quarantine(&mut self) -> &mut TableWriter {
        self.writing.quarantine()
    }

    fn events(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        self.writing.write(batch, || {})
    }

    fn commit(&mut self) -> Result<bool, StoreError> {
        let [quarantine, events] = &mut self.numbers;
        quarantine.1 += u64::from(self.writing.quarantine().is_pending());
        events.1 += u64::from(self.writing.events()?.is_pending());
        let added = Quarantine::Added(std::slice::from_ref(quarantine));
        self.writing.commit(added, || Ok(()), (Events::IfAny, std::slice::from_ref(events)))
    }
}
