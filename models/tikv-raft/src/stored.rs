//! What a node wrote, and what of it would survive a crash.

use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::application::Application;
use crate::entries::Entries;
use crate::settings::Switches;

/// The library's hard state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hard {
    /// The term.
    pub term: u64,
    /// For whom the node voted in it; 0 for nobody.
    pub vote: u64,
    /// The commit index.
    pub commit: u64,
}

impl From<&HardState> for Hard {
    fn from(state: &HardState) -> Hard {
        Hard { term: state.term, vote: state.vote, commit: state.commit }
    }
}

/// Everything that a node writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stored {
    /// The hard state.
    pub hard: Hard,
    /// The log.
    pub entries: Entries,
    /// The application.
    pub application: Application,
}

impl Stored {
    /// What a member of a new cluster of that many begins with.
    pub(crate) fn founded(members: u64) -> Stored {
        Stored {
            hard: Hard { term: 1, vote: 0, commit: 1 },
            entries: Entries::after(1, 1, 0),
            application: Application::founded(members),
        }
    }

    fn same(&self, other: &Stored) -> bool {
        self.hard == other.hard
            && self.entries.same(&other.entries)
            && self.application.same(&other.application)
    }
}

/// A disk with a cache: what was written is read back, but a crash leaves only what was synced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    /// What was written.
    pub written: Stored,
    /// What a crash leaves, where that is something else.
    pub synced: Option<Stored>,
}

impl Disk {
    /// What a crash leaves.
    #[must_use]
    pub fn after_crash(&self) -> Stored {
        self.synced.as_ref().unwrap_or(&self.written).clone()
    }
}

/// What a crash leaves while the library works on what was written.
#[derive(Debug)]
pub(crate) struct Syncing {
    synced: Option<Stored>,
    switches: Switches,
}

impl Syncing {
    pub(crate) fn new(synced: Option<Stored>, switches: Switches) -> Syncing {
        Syncing { synced, switches }
    }

    /// Something is about to be written. `now` says whether it will be synced together with the rest in the same step.
    pub(crate) fn before_write(&mut self, written: &Stored, now: bool) {
        let kept = !now || self.switches.syncs_late();
        if kept && self.synced.is_none() {
            self.synced = Some(written.clone());
        }
    }

    /// What was written is to be synced, as the library asks.
    pub(crate) fn sync(&mut self, written: &Stored) {
        if self.switches.send_before_sync {
            return;
        }
        match &mut self.synced {
            Some(synced) if self.switches.ignore_must_sync => synced.entries = written.entries.clone(),
            synced => *synced = None,
        }
    }

    /// Entries were applied.
    pub(crate) fn applied(&mut self, written: &Stored) {
        if let Some(synced) = self.synced.as_mut().filter(|_| self.switches.apply_before_persist) {
            synced.application = written.application.clone();
        }
    }

    /// Everything is synced, whatever the switches say.
    pub(crate) fn all(&mut self) {
        self.synced = None;
    }

    pub(crate) fn disk(self, written: Stored) -> Disk {
        Disk { synced: self.synced.filter(|synced| !synced.same(&written)), written }
    }
}

impl Storage for Stored {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let mut hard = HardState::default();
        (hard.term, hard.vote, hard.commit) = (self.hard.term, self.hard.vote, self.hard.commit);
        Ok(RaftState::new(hard, self.application.members().conf_state()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.entries.base() {
            return Err(StorageError::Compacted.into());
        }
        let found: Option<Vec<Entry>> =
            (low..high).map(|index| self.entries.get(index).map(|slot| slot.entry.clone())).collect();
        let mut found = found.ok_or(StorageError::Unavailable)?;
        raft::util::limit_size(&mut found, max_size.into());
        Ok(found)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let missing =
            if index < self.entries.base() { StorageError::Compacted } else { StorageError::Unavailable };
        self.entries.term(index).ok_or_else(|| missing.into())
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.entries.base() + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.entries.last())
    }

    fn snapshot(&self, least: u64, _: u64) -> raft::Result<Snapshot> {
        if self.application.index() < least {
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        }
        Ok(self.application.snapshot())
    }
}
