//! Where the sources are: a checkpoint beside the segments, brought up to date by the frames in them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::PositionUpdate;
use crate::spool::{Disk, SpoolError};

const FILE: &str = "positions.json";
const FORMAT: &str = "demi-positions/1";

/// Positions of all durable batches, shared between the writer and those who ask. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct LivePositions(Arc<Mutex<Positions>>);

impl LivePositions {
    pub(super) fn new(positions: Positions) -> Self {
        LivePositions(Arc::new(Mutex::new(positions)))
    }

    /// The positions. No holder leaves them half changed, so a holder that panicked does no harm.
    pub(super) fn lock(&self) -> MutexGuard<'_, Positions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Positions of all sources by source and key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Positions {
    format: String,
    /// The frames up to here are in it.
    pub lsn: u64,
    /// Last frame that was in the store when this was written.
    #[serde(default)]
    pub committed: u64,
    /// The identity of the store that the frames go to. Unknown before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    sources: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Positions {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Positions { format: FORMAT.to_owned(), ..Positions::default() }
    }

    /// Reads the checkpoint; none is there before the first segment was removed.
    ///
    /// # Errors
    /// When it is there and cannot be read: going on would read everything again.
    pub fn read<D: Disk + ?Sized>(disk: &D) -> Result<Self, SpoolError> {
        let io = |source| SpoolError::Io { name: FILE.to_owned(), action: "read this file", source };
        if !disk.list().map_err(io)?.iter().any(|name| name == FILE) {
            return Ok(Positions::new());
        }
        let mut bytes = vec![0; disk.len(FILE).map_err(io)? as usize];
        let got = disk.read_at(FILE, 0, &mut bytes).map_err(io)?;
        Positions::from_text(&bytes[..got])
    }

    /// Reads the text of a checkpoint.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_text(text: &[u8]) -> Result<Self, SpoolError> {
        let no_spool = |reason: String| SpoolError::NoSpool { name: FILE.to_owned(), reason };
        let read: Positions = serde_json::from_slice(text)
            .map_err(|e| no_spool(format!("the saved positions are damaged: {e}")))?;
        if read.format != FORMAT {
            return Err(no_spool(format!("these are '{}', this version reads '{FORMAT}'", read.format)));
        }
        Ok(read)
    }

    /// Takes note of the store that the frames go to.
    pub fn goes_to(&mut self, store: String) {
        self.store = Some(store);
    }

    /// The identity of the store that the frames went to, if it is known that it was another one than this.
    #[must_use]
    pub fn other_store(&self, store: &str) -> Option<&str> {
        self.store.as_deref().filter(|other| *other != store)
    }

    /// The same positions, as this version writes them.
    #[must_use]
    pub fn of_this_format(self) -> Self {
        Positions { format: FORMAT.to_owned(), ..self }
    }

    /// Takes in the updates of the frame `lsn`, unless they are in it.
    pub fn apply(&mut self, lsn: u64, source: &str, updates: &[PositionUpdate]) {
        if lsn <= self.lsn {
            return;
        }
        self.lsn = lsn;
        if updates.is_empty() {
            return;
        }
        let keys = self.sources.entry(source.to_owned()).or_default();
        for update in updates {
            match &update.value {
                Some(value) => {
                    keys.insert(update.key.clone(), value.clone());
                }
                None => {
                    keys.remove(&update.key);
                }
            }
        }
    }

    /// Replaces the checkpoint.
    ///
    /// # Errors
    /// What the disk says; the old one stays.
    pub fn write<D: Disk + ?Sized>(&self, disk: &D) -> Result<(), SpoolError> {
        // Keys are text and values are JSON: this can always be written as JSON.
        let text = serde_json::to_vec(self).unwrap_or_default();
        disk.replace(FILE, &text).map_err(|source| SpoolError::Io {
            name: FILE.to_owned(),
            action: "write this file",
            source,
        })
    }

    /// Those of one source.
    #[must_use]
    pub fn of(&self, source: &str) -> BTreeMap<String, Value> {
        self.sources.get(source).cloned().unwrap_or_default()
    }

    /// All, by source and key.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, BTreeMap<String, Value>> {
        &self.sources
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spool::Folder;

    #[test]
    fn updates_are_taken_once_and_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Folder::at(dir.path());
        assert_eq!(Positions::read(&disk).unwrap(), Positions::new());
        let mut positions = Positions::new();
        let update = |key: &str, value| PositionUpdate { key: key.into(), value };
        positions.apply(1, "s", &[update("a", Some(json!(1))), update("b", Some(json!({"x": 2})))]);
        positions.apply(2, "s", &[update("a", None)]);
        positions.apply(2, "s", &[update("b", None)]);
        positions.write(&disk).unwrap();
        let read = Positions::read(&disk).unwrap();
        assert_eq!(read, positions);
        assert_eq!(read.of("s"), BTreeMap::from([("b".to_owned(), json!({"x": 2}))]));
        assert!(read.of("t").is_empty());
        std::fs::write(dir.path().join(FILE), b"{\"format\"").unwrap();
        assert!(Positions::read(&disk).unwrap_err().to_string().contains("damaged"));
    }
}
