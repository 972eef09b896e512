//! What the library has in memory between two calls, as plain values.
//!
//! A `RawNode` can be neither copied nor compared. Between two calls all that it handed out was taken care of, and then
//! these values and what was written say everything that its next call depends on.

use std::collections::{BTreeMap, BTreeSet};

use raft::{ProgressState, StateRole};

use crate::message::Wire;

/// The role of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// It follows.
    #[default]
    Follower,
    /// It asks whether it could be elected.
    PreCandidate,
    /// It wants to be elected.
    Candidate,
    /// It leads.
    Leader,
}

impl From<StateRole> for Role {
    fn from(role: StateRole) -> Role {
        match role {
            StateRole::Follower => Role::Follower,
            StateRole::PreCandidate => Role::PreCandidate,
            StateRole::Candidate => Role::Candidate,
            StateRole::Leader => Role::Leader,
        }
    }
}

impl From<Role> for StateRole {
    fn from(role: Role) -> StateRole {
        match role {
            Role::Follower => StateRole::Follower,
            Role::PreCandidate => StateRole::PreCandidate,
            Role::Candidate => StateRole::Candidate,
            Role::Leader => StateRole::Leader,
        }
    }
}

/// How a leader sends entries to another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flow {
    /// One message at a time, until it knows where the logs agree.
    #[default]
    Probe,
    /// As entries come.
    Replicate,
    /// Not at all, while a snapshot is on its way.
    Snapshot,
}

impl From<ProgressState> for Flow {
    fn from(state: ProgressState) -> Flow {
        match state {
            ProgressState::Probe => Flow::Probe,
            ProgressState::Replicate => Flow::Replicate,
            ProgressState::Snapshot => Flow::Snapshot,
        }
    }
}

impl From<Flow> for ProgressState {
    fn from(flow: Flow) -> ProgressState {
        match flow {
            Flow::Probe => ProgressState::Probe,
            Flow::Replicate => ProgressState::Replicate,
            Flow::Snapshot => ProgressState::Snapshot,
        }
    }
}

/// What a node knows of another, the library's `Progress`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Up to where the logs agree.
    pub matched: u64,
    /// What is sent next.
    pub next: u64,
    /// How entries are sent.
    pub flow: Flow,
    /// Whether nothing is sent until an answer comes.
    pub paused: bool,
    /// The index of the snapshot that is on its way; 0 for none.
    pub snapshot: u64,
    /// Whether it was heard of lately.
    pub active: bool,
    /// The last entries of the messages that are on their way.
    pub inflight: Vec<u64>,
    /// Its commit index.
    pub committed: u64,
}

/// A read that waits until a quorum confirms the leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingRead {
    /// The request.
    pub request: Wire,
    /// The leader's commit index when it came.
    pub index: u64,
    /// Who has confirmed.
    pub acks: BTreeSet<u64>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Volatile {
    /// The role.
    pub role: Role,
    /// Who leads; 0 where that is not known.
    pub leader: u64,
    /// Ticks since the last election timeout, or since the leader was heard of.
    pub elapsed: usize,
    /// The log index up to which a change of the membership may be pending.
    pub pending_conf: u64,
    /// What is known of the others, and of itself.
    pub peers: BTreeMap<u64, Peer>,
    /// Votes in the running election.
    pub votes: BTreeMap<u64, bool>,
    /// Reads that wait for a quorum, in the order in which they came.
    pub reads: Vec<PendingRead>,
}

impl Volatile {
    /// Whether the node leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.role == Role::Leader
    }

    /// To whom a snapshot is on its way.
    pub(crate) fn awaiting_snapshot(&self) -> impl Iterator<Item = u64> {
        self.peers.iter().filter(|(_, peer)| peer.flow == Flow::Snapshot).map(|(&id, _)| id)
    }
}
