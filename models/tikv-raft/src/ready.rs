//! One call of the library, and what it hands out after it: the program that its documentation asks for.

use std::collections::{BTreeMap, BTreeSet};

use protobuf::Message as _;
use raft::eraftpb::{ConfChange, ConfChangeV2, Entry, EntryType, Message, Snapshot};
use raft::{RawNode, ReadState};

use crate::application::{Application, Members};
use crate::entries::Entries;
use crate::error::Corrupt;
use crate::message::Msg;
use crate::stored::{Hard, Stored, Syncing};

/// A node during a call.
pub(crate) struct Work {
    /// The library's node.
    pub(crate) raw: RawNode<Stored>,
    /// What a crash would leave.
    pub(crate) syncing: Syncing,
    /// Writes of clients that wait until they are applied.
    pub(crate) writes: BTreeSet<u64>,
    /// Reads of clients, with the index that must be applied first, once that is known.
    pub(crate) reads: BTreeMap<u64, Option<u64>>,
    /// What goes to other nodes.
    pub(crate) sent: Vec<Message>,
    /// What goes to the client.
    pub(crate) replies: Vec<Msg>,
}

impl Work {
    /// Takes care of everything that the library hands out, until there is nothing more.
    pub(crate) fn finish(&mut self) -> Result<(), Corrupt> {
        while self.raw.has_ready() {
            self.one()?;
        }
        Ok(())
    }

    fn one(&mut self) -> Result<(), Corrupt> {
        let mut ready = self.raw.ready();
        // A leader's messages need not wait: its own entries count only once they are persisted.
        self.sent.extend(ready.take_messages());
        for read in ready.take_read_states() {
            self.may_read(&read);
        }
        // What is applied here is synced together with the commit index that allows it.
        let synced = ready.must_sync();
        self.syncing.before_write(self.raw.store(), synced);
        if !ready.snapshot().is_empty() {
            self.install(ready.snapshot())?;
        }
        self.apply(&ready.take_committed_entries())?;
        let store = self.raw.mut_store();
        store.entries.append(ready.entries());
        if let Some(hard) = ready.hs() {
            store.hard = Hard::from(hard);
        }
        if synced {
            self.syncing.sync(self.raw.store());
        }
        self.sent.extend(ready.take_persisted_messages());

        let mut light = self.raw.advance(ready);
        if light.commit_index().is_some() || !light.committed_entries().is_empty() {
            self.syncing.before_write(self.raw.store(), false);
        }
        if let Some(commit) = light.commit_index() {
            self.raw.mut_store().hard.commit = commit;
        }
        self.sent.extend(light.take_messages());
        self.apply(&light.take_committed_entries())?;
        self.raw.advance_apply();
        self.answer_reads();
        Ok(())
    }

    fn install(&mut self, snapshot: &Snapshot) -> Result<(), Corrupt> {
        let application = Application::restored(snapshot)?;
        let metadata = snapshot.get_metadata();
        let chain = application.last().map_or(0, |applied| applied.chain);
        let store = self.raw.mut_store();
        store.entries = Entries::after(metadata.index, metadata.term, chain);
        store.application = application;
        Ok(())
    }

    fn apply(&mut self, entries: &[Entry]) -> Result<(), Corrupt> {
        for entry in entries {
            let members = self.change_members(entry)?;
            let application = &mut self.raw.mut_store().application;
            let write = application.apply(entry)?;
            if let Some(members) = members {
                application.set_members(members);
            }
            if let Some(write) = write.filter(|write| self.writes.remove(write)) {
                let term = self.raw.raft.term;
                self.replies.push(Msg::Done { write, index: entry.index, term });
            }
        }
        if !entries.is_empty() {
            self.syncing.applied(self.raw.store());
        }
        Ok(())
    }

    /// Tells the library of a change of the membership that is applied, if the entry is one.
    fn change_members(&mut self, entry: &Entry) -> Result<Option<Members>, Corrupt> {
        let corrupt = |_| Corrupt::Content(entry.index);
        let outcome = match entry.entry_type {
            EntryType::EntryNormal => return Ok(None),
            EntryType::EntryConfChange => {
                self.raw.apply_conf_change(&ConfChange::parse_from_bytes(&entry.data).map_err(corrupt)?)
            }
            EntryType::EntryConfChangeV2 => {
                self.raw.apply_conf_change(&ConfChangeV2::parse_from_bytes(&entry.data).map_err(corrupt)?)
            }
        };
        // A change that cannot be, such as one that leaves no voter, is refused in the same way everywhere.
        Ok(outcome.ok().map(|state| Members::of(&state)))
    }

    fn may_read(&mut self, state: &ReadState) {
        let Ok(number) = <[u8; 8]>::try_from(&state.request_ctx[..]) else { return };
        if let Some(index) = self.reads.get_mut(&u64::from_be_bytes(number)) {
            index.get_or_insert(state.index);
        }
    }

    fn answer_reads(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let application = &self.raw.store().application;
        let (applied, found) = (application.index(), application.last_write());
        let replies = &mut self.replies;
        self.reads.retain(|&read, index| {
            let waits = index.is_none_or(|index| index > applied);
            if !waits {
                replies.push(Msg::Value { read, index: found });
            }
            waits
        });
    }
}
