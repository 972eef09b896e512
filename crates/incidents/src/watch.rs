//! Violation records of an event store become incidents: whoever looks reads the committed table, by version, and keeps the version in the journal. So
//! it holds up nobody, loses nothing, and works on another machine.

use std::path::{Path, PathBuf};

use demi_store::{Store, StoreError, ViolationRow, violations_since};

use crate::journal::{Journal, JournalError};
use crate::objects::Objects;
use crate::sources::{Record, watched};

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
}

impl Watch {
    /// Of the store in a folder, which may be none so far.
    #[must_use]
    pub fn of(place: &Path) -> Self {
        Watch { place: place.to_owned(), store: None }
    }

    /// Opens the incidents that came since.
    ///
    /// # Errors
    /// When store or journal cannot be read, or the journal not be written.
    pub fn look<O: Objects>(&mut self, journal: &mut Journal<O>) -> Result<(), WatchError> {
        if self.store.is_none() && self.place.join("events").join("_delta_log").is_dir() {
            self.store = Some(Store::open(&self.place)?);
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
    }
}
