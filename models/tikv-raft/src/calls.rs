//! Which function of the library is called for what is delivered.

use raft::SnapshotStatus;
use raft::eraftpb::{ConfChange, ConfChangeType};

use crate::message::Msg;
use crate::ready::Work;
use crate::rebuild::ELECTION_TICKS;
use crate::settings::Switches;
use crate::volatile::{Flow, Role};

/// Makes the call. What the library refuses is a request that cannot be met now: nothing happens and nobody is told.
pub(crate) fn make(work: &mut Work, msg: &Msg, switches: Switches) {
    let raw = &mut work.raw;
    let leads = Role::from(raw.raft.state) == Role::Leader;
    match msg {
        Msg::Raft(wire) => drop(raw.step(wire.message().clone())),
        Msg::Write(write) => {
            let proposed = raw.propose(Vec::new(), write.to_be_bytes().to_vec());
            if proposed.is_ok() {
                work.writes.insert(*write);
            }
        }
        Msg::AddNode(id) => {
            drop(raw.propose_conf_change(Vec::new(), change(ConfChangeType::AddNode, *id)));
        }
        Msg::RemoveNode(id) => {
            drop(raw.propose_conf_change(Vec::new(), change(ConfChangeType::RemoveNode, *id)));
        }
        Msg::Compact => {
            let store = raw.mut_store();
            store.entries.compact(store.application.index());
            work.syncing.all();
        }
        Msg::Ask(_) if switches.read_without_index && !leads => {}
        Msg::Ask(read) if switches.read_without_index => {
            let index = raw.store().application.last_write();
            work.replies.push(Msg::Value { read: *read, index });
        }
        Msg::Ask(read) => {
            work.reads.insert(*read, None);
            raw.read_index(read.to_be_bytes().to_vec());
        }
        Msg::Election if raw.raft.promotable() && !leads => {
            for _ in raw.raft.election_elapsed..ELECTION_TICKS {
                raw.tick();
            }
        }
        Msg::Heartbeat if leads => drop(raw.tick()),
        Msg::Sync => work.syncing.all(),
        Msg::SnapshotLost(peer) => {
            let progress = raw.raft.prs().get(*peer);
            if progress.is_some_and(|progress| Flow::from(progress.state) == Flow::Snapshot) {
                raw.report_snapshot(*peer, SnapshotStatus::Failure);
            }
        }
        _ => {}
    }
}

fn change(kind: ConfChangeType, id: u64) -> ConfChange {
    let mut change = ConfChange::default();
    change.set_change_type(kind);
    change.node_id = id;
    change
}
