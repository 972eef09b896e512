//! A `RawNode` from plain values, and the values of a `RawNode`.
//!
//! The library draws election timeouts at random. Here the range from which it draws has one value, so that the draw
//! decides nothing.

use raft::{Config, Progress, RawNode};
use slog::Logger;

use crate::message::Wire;
use crate::settings::Settings;
use crate::stored::Stored;
use crate::volatile::{Flow, Peer, PendingRead, Volatile};

/// Ticks until an election timeout. A heartbeat takes one, so that no part of one is left between two calls.
pub(crate) const ELECTION_TICKS: usize = 2;

/// The library's configuration of a node.
pub(crate) fn config(settings: &Settings, id: u64, applied: u64) -> Config {
    Config {
        id,
        applied,
        election_tick: ELECTION_TICKS,
        min_election_tick: ELECTION_TICKS,
        max_election_tick: ELECTION_TICKS + 1,
        heartbeat_tick: 1,
        max_size_per_msg: raft::NO_LIMIT,
        check_quorum: settings.check_quorum,
        pre_vote: settings.pre_vote,
        ..Config::default()
    }
}

/// A node that begins with what was written.
pub(crate) fn begin(
    settings: &Settings,
    id: u64,
    stored: Stored,
    logger: &Logger,
) -> raft::Result<RawNode<Stored>> {
    RawNode::new(&config(settings, id, stored.application.index()), stored, logger)
}

/// A node in that state.
pub(crate) fn rebuild(
    settings: &Settings,
    id: u64,
    (stored, volatile): (Stored, &Volatile),
    logger: &Logger,
) -> raft::Result<RawNode<Stored>> {
    let mut raw = begin(settings, id, stored, logger)?;
    let raft = &mut raw.raft;
    raft.state = volatile.role.into();
    raft.leader_id = volatile.leader;
    raft.election_elapsed = volatile.elapsed;
    raft.pending_conf_index = volatile.pending_conf;
    for (&id, peer) in &volatile.peers {
        if let Some(progress) = raft.mut_prs().get_mut(id) {
            set(progress, peer);
        }
    }
    for (&id, &vote) in &volatile.votes {
        raft.mut_prs().record_vote(id, vote);
    }
    for read in &volatile.reads {
        raft.read_only.add_request(read.index, read.request.message().clone(), id);
        for &ack in &read.acks {
            raft.read_only.recv_ack(ack, read.context());
        }
    }
    Ok(raw)
}

/// The state of a node.
pub(crate) fn taken(raw: &RawNode<Stored>) -> Volatile {
    let raft = &raw.raft;
    let pending = raft.read_only.read_index_queue.iter();
    let pending = pending.filter_map(|context| raft.read_only.pending_read_index.get(context));
    Volatile {
        role: raft.state.into(),
        leader: raft.leader_id,
        elapsed: raft.election_elapsed,
        pending_conf: raft.pending_conf_index,
        peers: raft.prs().iter().map(|(&id, progress)| (id, peer(progress))).collect(),
        votes: raft.prs().votes().iter().map(|(&id, &vote)| (id, vote)).collect(),
        reads: pending
            .map(|status| PendingRead {
                request: Wire::from(status.req.clone()),
                index: status.index,
                acks: status.acks.iter().copied().collect(),
            })
            .collect(),
    }
}

fn set(progress: &mut Progress, peer: &Peer) {
    progress.matched = peer.matched;
    progress.next_idx = peer.next;
    progress.state = peer.flow.into();
    progress.paused = peer.paused;
    progress.pending_snapshot = peer.snapshot;
    progress.recent_active = peer.active;
    progress.committed_index = peer.committed;
    progress.ins.reset();
    for &last in &peer.inflight {
        progress.ins.add(last);
    }
}

fn peer(progress: &Progress) -> Peer {
    Peer {
        matched: progress.matched,
        next: progress.next_idx,
        flow: Flow::from(progress.state),
        paused: progress.paused,
        snapshot: progress.pending_snapshot,
        active: progress.recent_active,
        inflight: inflight(progress),
        committed: progress.committed_index,
    }
}

/// What is on its way. The window itself tells only how much that is, and forgets what comes before an index; what it holds
/// is newer than what matched.
fn inflight(progress: &Progress) -> Vec<u64> {
    let mut held = Vec::new();
    if progress.ins.count() == 0 {
        return held;
    }
    let mut window = progress.ins.clone();
    for index in progress.matched..=progress.next_idx {
        let before = window.count();
        window.free_to(index);
        held.extend(std::iter::repeat_n(index, before - window.count()));
        if window.count() == 0 {
            break;
        }
    }
    held
}

impl PendingRead {
    /// What tells the read from others.
    fn context(&self) -> &[u8] {
        self.request.message().get_entries().first().map_or(&[], |entry| &entry.data[..])
    }
}

#[cfg(test)]
mod tests;
