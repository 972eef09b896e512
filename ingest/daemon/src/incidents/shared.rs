//! What the parts of the service share: the journal, and where it is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use demi_incidents::models::Models;
use demi_incidents::{Anywhere, Journal, JournalError, Place};

use super::config::{ReceiverConfig, Settings};

/// How often a journal on object storage is looked at.
const SELDOM: Duration = Duration::from_secs(2);

/// What the parts share.
pub(super) struct Shared {
    journal: Mutex<Journal<Anywhere>>,
    pub(super) place: Place,
    pub(super) settings: Settings,
    /// The models and the receivers of the configuration.
    pub(super) models: Models,
    pub(super) receivers: BTreeMap<String, ReceiverConfig>,
}

impl Shared {
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal<Anywhere>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It blocks, and is not to be called where tasks run: object storage may be asked.
    pub(super) fn open(
        store: &Path,
        settings: Settings,
        models: Models,
        receivers: BTreeMap<String, ReceiverConfig>,
    ) -> Result<Self, JournalError> {
        let place = Place::of(store);
        let journal = Anywhere::journal(&place, by("pages"))?;
        Ok(Shared { journal: Mutex::new(journal), place, settings, models, receivers })
    }

    /// How long is waited before the journal is looked at again: longer where each look is a request.
    pub(super) fn pause(&self, here: Duration) -> Duration {
        if self.place.is_far() { here.max(SELDOM) } else { here }
    }

    /// A reader and writer of the journal for a part of the service. What the journal comes to is in memory once for all of them.
    pub(super) fn part(&self, part: &str) -> Journal<Anywhere> {
        self.journal().share(by(part))
    }
}

/// The name of a part of this process.
fn by(part: &str) -> String {
    format!("daemon:{}:{part}", std::process::id())
}
