//! The application over the log: it remembers what it applied.

use std::sync::Arc;

use raft::eraftpb::{ConfState, Entry, EntryType, Snapshot};
use serde::{Deserialize, Serialize};

use crate::entries::chained;
use crate::error::Corrupt;

/// Who belongs to the cluster, as the last applied change says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Members {
    /// Who votes, in the order of their numbers.
    pub voters: Vec<u64>,
}

impl Members {
    pub(crate) fn conf_state(&self) -> ConfState {
        let mut state = ConfState::default();
        state.set_voters(self.voters.clone());
        state
    }

    pub(crate) fn of(state: &ConfState) -> Members {
        let mut voters = state.get_voters().to_vec();
        // The library's order is that of a hash table.
        voters.sort_unstable();
        Members { voters }
    }
}

/// An entry that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Applied {
    /// Its term.
    pub term: u64,
    /// The write that it holds, if it holds one.
    pub write: Option<u64>,
    /// The digest of it and of everything before it.
    pub chain: u64,
}

/// What was applied, one entry after the other. The entry with index 1 comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Application {
    members: Members,
    applied: Arc<Vec<Applied>>,
}

impl Application {
    /// What all members of a new cluster have behind them: their membership. A node that is added later has not, so that
    /// it can begin only with a snapshot.
    pub(crate) fn founded(members: u64) -> Application {
        let founding = Applied { term: 1, write: None, chain: 0 };
        Application {
            members: Members { voters: (1..=members).collect() },
            applied: Arc::new(vec![founding]),
        }
    }

    /// The index of the last entry that was applied.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.applied.len() as u64
    }

    /// What was applied at an index.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<&Applied> {
        self.applied.get(usize::try_from(index.checked_sub(1)?).ok()?)
    }

    /// Who belongs to the cluster.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The index of the last write, 0 where there is none: what a read answers.
    #[must_use]
    pub fn last_write(&self) -> u64 {
        self.applied.iter().rposition(|applied| applied.write.is_some()).map_or(0, |at| at as u64 + 1)
    }

    pub(crate) fn set_members(&mut self, members: Members) {
        self.members = members;
    }

    /// Applies an entry and gives the write that it holds.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<Option<u64>, Corrupt> {
        if entry.index != self.index() + 1 {
            return Err(Corrupt::Gap { last: self.index(), got: entry.index });
        }
        let write = match entry.entry_type {
            EntryType::EntryNormal if !entry.data.is_empty() => {
                let number =
                    <[u8; 8]>::try_from(&entry.data[..]).map_err(|_| Corrupt::Content(entry.index))?;
                Some(u64::from_be_bytes(number))
            }
            _ => None,
        };
        let before = self.applied.last().map_or(0, |applied| applied.chain);
        let applied = Applied { term: entry.term, write, chain: chained(before, entry) };
        Arc::make_mut(&mut self.applied).push(applied);
        Ok(write)
    }

    /// A snapshot of it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        // A list of numbers always has a text.
        let data = serde_json::to_vec(self).unwrap_or_default().into();
        let mut snapshot = Snapshot { data, ..Snapshot::default() };
        let metadata = snapshot.mut_metadata();
        metadata.index = self.index();
        metadata.term = self.applied.last().map_or(0, |applied| applied.term);
        metadata.set_conf_state(self.members.conf_state());
        snapshot
    }

    /// The application that a snapshot holds.
    pub(crate) fn restored(snapshot: &Snapshot) -> Result<Application, Corrupt> {
        let index = snapshot.get_metadata().index;
        let application: Application =
            serde_json::from_slice(&snapshot.data).map_err(|_| Corrupt::Content(index))?;
        if application.index() == index { Ok(application) } else { Err(Corrupt::Content(index)) }
    }

    /// Whether both are the same copy.
    pub(crate) fn same(&self, other: &Application) -> bool {
        Arc::ptr_eq(&self.applied, &other.applied) && self.members == other.members
    }

    pub(crate) fn last(&self) -> Option<&Applied> {
        self.applied.last()
    }
}
