//! What is sent, and what timers carry.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use protobuf::Message as _;
use raft::eraftpb::Message;

use crate::library_text;

/// A message of the library. Copies share it.
#[derive(Clone)]
pub struct Wire(Arc<(Message, Vec<u8>)>);

impl Wire {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.0.0
    }
}

impl From<Message> for Wire {
    fn from(message: Message) -> Wire {
        // Only a message that lacks a required field has no bytes, and these messages have no such fields.
        let bytes = message.write_to_bytes().unwrap_or_default();
        Wire(Arc::new((message, bytes)))
    }
}

impl PartialEq for Wire {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.1 == other.0.1
    }
}

impl Eq for Wire {}

impl Hash for Wire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.1.hash(state);
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&library_text::message(self.message()))
    }
}

/// What is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A message of the library, from node to node.
    Raft(Wire),
    /// From outside to a node: a client writes.
    Write(u64),
    /// From outside to the client: it is to read at a node.
    Read {
        /// The read's number.
        read: u64,
        /// The node that is asked.
        node: u64,
    },
    /// From outside to a node: another one is to become a voter.
    AddNode(u64),
    /// From outside to a node: a voter is to go.
    RemoveNode(u64),
    /// From outside to a node: it drops the part of its log that it has applied.
    Compact,
    /// From the client to a node: a read.
    Ask(u64),
    /// From a node to the client: a write was applied.
    Done {
        /// The write.
        write: u64,
        /// Its index in the log.
        index: u64,
        /// The node's term.
        term: u64,
    },
    /// From a node to the client: what a read found.
    Value {
        /// The read.
        read: u64,
        /// The index of the last write that the node had applied.
        index: u64,
    },
    /// A timer: ticks until the election timeout has passed.
    Election,
    /// A timer: one tick of a leader, which is a heartbeat.
    Heartbeat,
    /// A timer: what was written reaches the disk.
    Sync,
    /// A timer: nothing was heard of a snapshot that was sent to that node.
    SnapshotLost(u64),
}
