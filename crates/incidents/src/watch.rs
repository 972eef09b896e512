//! Violation records of an event store become incidents: whoever looks reads the committed table, by version, and keeps the version in the journal. So
//! it holds up nobody, loses nothing, and works on another machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use demi_store::{Store, StoreError, ViolationRow, violations_since};

use crate::journal::{Journal, JournalError};
use crate::objects::Objects;
use crate::sources::{Record, watched};

/// How often a store on object storage is looked at.
const SELDOM: Duration = Duration::from_secs(2);

/// An error of looking at a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Reads the table of a store, from the version on that the journal names. Its calls block.
#[derive(Debug)]
pub struct Watch {
    place: PathBuf,
    store: Option<Store>,
    looked: Option<Instant>,
}

impl Watch {
    /// Of the store in a folder, which may be none so far.
    #[must_use]
    pub fn of(place: &Path) -> Self {
        Watch { place: place.to_owned(), store: None, looked: None }
    }

    /// Opens the incidents that came since.
    ///
    /// # Errors
    /// When store or journal cannot be read, or the journal not be written.
    pub fn look<O: Objects>(&mut self, journal: &mut Journal<O>) -> Result<(), WatchError> {
        let remote = demi_store::is_mirror(&self.place);
        // Each look at object storage is some requests.
        if remote && self.looked.is_some_and(|at| at.elapsed() < SELDOM) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        if self.store.is_none() && (remote || self.place.join("events").join("_delta_log").is_dir()) {
            self.store = match Store::open(&self.place) {
                Err(StoreError::NoStore { .. }) if remote => None,
                opened => Some(opened?),
            };
        }
        let Some(store) = &mut self.store else { return Ok(()) };
        store.refresh()?;
        journal.follow()?;
        let (version, known) = (store.version(), journal.state().watched());
        if version <= known {
            return Ok(());
        }
        let records: Vec<Record> = violations_since(store, known)?.into_iter().map(record).collect();
        while journal.commit(|state| watched(state, &records, version))?.is_some() {}
        Ok(())
    }
}

fn record(row: ViolationRow) -> Record {
    Record {
        system: row.system,
        actor: row.actor,
        incarnation: row.incarnation,
        seq: row.seq,
        fields: row.fields,
        time: row.time,
        attrs: row.attrs,
        type_: row.type_,
        payload: row.payload,
    }
}
