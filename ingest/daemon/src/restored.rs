//! A spool beside a store that was restored: how far the store is, what has to come again, and what cannot.

use std::path::Path;

use serde::Serialize;

use super::committer::progress::application;
use super::forget::Idle;
use super::positions::Positions;
use super::serve::ServeError;
use crate::spool::{Folder, Options, Spool, SpoolError, identity};
use demi_store::Store;

/// What a spool was told of a restored store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The last frame in the store.
    pub committed: u64,
    /// The last frame that had been in the store.
    pub was_committed: u64,
    /// Frames that are in the spool and will be taken into the store again.
    pub again: u64,
    /// First and last of the frames that are neither in the store nor in the spool. Files are read again from where they stood at the backup; what came by a
    /// connection has to be sent again.
    pub lost: Option<(u64, u64)>,
}

/// The number of a spool and where its sources stood when their positions were last saved, as the text that [`Idle::restored`] takes. A daemon may be
/// running.
///
/// # Errors
/// When there is no spool, or its positions cannot be read.
pub fn saved_positions(spool: &Path) -> Result<(u64, Vec<u8>), ServeError> {
    let disk = Folder::at(spool);
    let failed = |source| ServeError::Spool { dir: spool.display().to_string(), source };
    let none = || SpoolError::NoSpool { name: ".".into(), reason: "there is no spool here".into() };
    let id = identity(&disk).map_err(failed)?.ok_or_else(|| failed(none()))?;
    let positions = Positions::read(&disk).map_err(failed)?;
    // Keys are text and values are JSON: this can always be written as JSON.
    Ok((id, serde_json::to_vec(&positions).unwrap_or_default()))
}

impl Idle {
    /// The number of the spool.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn id(&self) -> Result<u64, ServeError> {
        self.opened().map(|(spool, _)| spool.id())
    }

    /// Whether its frames went to this store, or one of which this is a copy.
    ///
    /// # Errors
    /// When they went to another one, or spool or store cannot be read.
    pub fn fits(&self, store: &Store) -> Result<(), ServeError> {
        let failed = |source| ServeError::Spool { dir: self.dir().to_owned(), source };
        let saved = Positions::read(self.disk()).map_err(failed)?;
        let own = store.identity()?;
        match saved.other_store(&own).map(str::to_owned) {
            Some(other) => Err(ServeError::OtherStore { dir: self.dir().to_owned(), other, own }),
            None => Ok(()),
        }
    }

    /// Tells the spool that the store is an earlier one: what is left of its frames is taken again, and where some are gone, files are read again
    /// from where they stood at the backup, or from their beginning. What is in the store already is not added twice. Whether its frames went to this
    /// store says [`Idle::fits`]; a store to which they went instead is given up.
    ///
    /// # Errors
    /// When spool, store or the positions of the backup cannot be read, or nothing can be written.
    pub fn restored(&self, store: &Store, backup: Option<&[u8]>) -> Result<Restored, ServeError> {
        let (spool, begins_after) = self.opened()?;
        let failed = |source| ServeError::Spool { dir: self.dir().to_owned(), source };
        let saved = Positions::read(self.disk()).map_err(failed)?;
        let own = store.identity()?;
        let committed = store.progress(&application(spool.id()))?.unwrap_or(0);
        let mut told = Restored { committed, was_committed: saved.committed, ..Restored::default() };
        told.again = spool.last_lsn().saturating_sub(committed.max(begins_after));
        let other = saved.other_store(&own).is_some();
        if saved.committed <= committed && !other {
            return Ok(told);
        }
        let mut positions = saved;
        if begins_after > committed {
            told.lost = Some((committed + 1, begins_after));
            let at_backup = backup.map(Positions::from_text).transpose().map_err(failed)?;
            // Those of a later time have passed what is missing.
            let at_backup = at_backup.filter(|then| then.lsn <= committed).unwrap_or_default();
            // What frames behind the hole say of positions would lead over it.
            let lsn = spool.last_lsn().max(positions.lsn);
            positions = at_backup.of_this_format();
            positions.lsn = lsn;
        }
        positions.committed = committed;
        positions.goes_to(own);
        positions.write(self.disk()).map_err(failed)?;
        Ok(told)
    }

    /// The spool, and the last frame that is gone from it.
    fn opened(&self) -> Result<(Spool<Folder>, u64), ServeError> {
        let failed = |source| ServeError::Spool { dir: self.dir().to_owned(), source };
        let (spool, found) = Spool::open(self.disk().clone(), Options::default()).map_err(failed)?;
        Ok((spool, found.begins_after))
    }
}
