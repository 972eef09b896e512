//! What the parts of the service share: the journal, and where it is.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use demi_incidents::{Journal, JournalError, LocalFolder, Place};

use super::config::Settings;

/// What the parts share.
pub(super) struct Shared {
    journal: Mutex<Journal<LocalFolder>>,
    pub(super) place: Place,
    pub(super) settings: Settings,
}

impl Shared {
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal<LocalFolder>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(store: &Path, settings: Settings) -> Result<Self, JournalError> {
        let place = Place::of(store);
        let folder = LocalFolder::new(place.root().to_owned());
        let _ = folder.sweep("journal");
        let journal = Journal::open(folder, by("pages"))?;
        Ok(Shared { journal: Mutex::new(journal), place, settings })
    }

    /// A reader and writer of the journal for a part of the service. What the journal comes to is in memory once for all of them.
    pub(super) fn part(&self, part: &str) -> Journal<LocalFolder> {
        self.journal().share(by(part))
    }
}

/// The name of a part of this process.
fn by(part: &str) -> String {
    format!("daemon:{}:{part}", std::process::id())
}
