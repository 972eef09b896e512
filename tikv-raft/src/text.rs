//! How messages and states are written for people and logs.

use std::fmt::Write as _;

use raft::eraftpb::{Entry, EntryType, Message};
use serde_json::{Value, json};

use crate::message::Msg;
use crate::node::Node;
use crate::state::State;

/// The type tag of a message.
pub(crate) fn tag(msg: &Msg) -> String {
    let name = match msg {
        Msg::Raft(wire) => return format!("{:?}", wire.message().msg_type),
        Msg::Write(_) => "Write",
        Msg::Read { .. } => "Read",
        Msg::AddNode(_) => "AddNode",
        Msg::RemoveNode(_) => "RemoveNode",
        Msg::Compact => "Compact",
        Msg::Ask(_) => "Ask",
        Msg::Done { .. } => "Done",
        Msg::Value { .. } => "Value",
        Msg::Election => "Election",
        Msg::Heartbeat => "Heartbeat",
        Msg::Sync => "Sync",
        Msg::SnapshotLost(_) => "SnapshotLost",
    };
    name.to_owned()
}

/// All of a message.
pub(crate) fn payload(msg: &Msg) -> String {
    match msg {
        Msg::Raft(wire) => message(wire.message()),
        Msg::Read { read, node } => format!("Read({read}, {node})"),
        Msg::Done { write, index, term } => format!("Done(write {write} at {index}, term {term})"),
        Msg::Value { read, index } => format!("Value(read {read} at {index})"),
        other => format!("{other:?}"),
    }
}

/// The time of a message.
pub(crate) fn clock(msg: &Msg) -> Option<i64> {
    match msg {
        Msg::Raft(wire) if wire.message().term > 0 => i64::try_from(wire.message().term).ok(),
        _ => None,
    }
}

/// A message of the library, without its sender and receiver.
pub(crate) fn message(message: &Message) -> String {
    let mut parts = Vec::new();
    let numbers = [
        ("term", message.term),
        ("log_term", message.log_term),
        ("index", message.index),
        ("commit", message.commit),
        ("commit_term", message.commit_term),
        ("request_snapshot", message.request_snapshot),
        ("reject_hint", message.reject_hint),
    ];
    parts.extend(numbers.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")));
    if message.reject {
        parts.push("rejected".to_owned());
    }
    if !message.context.is_empty() {
        parts.push(format!("context {}", bytes(&message.context)));
    }
    if !message.get_entries().is_empty() {
        let entries: Vec<String> = message.get_entries().iter().map(entry).collect();
        parts.push(format!("[{}]", entries.join(", ")));
    }
    let metadata = message.get_snapshot().get_metadata();
    if metadata.index > 0 {
        let voters = metadata.get_conf_state().get_voters();
        parts.push(format!("snapshot up to {} of term {}, voters {voters:?}", metadata.index, metadata.term));
    }
    format!("{:?}({})", message.msg_type, parts.join(", "))
}

/// An entry: its index, its term and what it holds.
pub(crate) fn entry(entry: &Entry) -> String {
    let holds = match entry.entry_type {
        EntryType::EntryNormal if entry.data.is_empty() => String::new(),
        EntryType::EntryNormal => format!(" {}", bytes(&entry.data)),
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
            format!(" members {}", bytes(&entry.data))
        }
    };
    format!("{}/{}{holds}", entry.index, entry.term)
}

/// A number where it is one, otherwise digits.
fn bytes(bytes: &[u8]) -> String {
    if let Ok(number) = <[u8; 8]>::try_from(bytes) {
        return u64::from_be_bytes(number).to_string();
    }
    let mut text = "0x".to_owned();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A state, for people and predicates.
pub(crate) fn state(state: &State) -> Value {
    match state {
        State::Client(client) => json!({
            "acknowledged": client.acknowledged,
            "open_reads": client.reads,
            "stale_read": client.stale,
        }),
        State::Node(node) => self::node(node),
    }
}

fn node(node: &Node) -> Value {
    let Node { disk, volatile, .. } = node;
    let stored = &disk.written;
    let log: Vec<String> = stored.entries.slots().iter().map(|slot| entry(&slot.entry)).collect();
    json!({
        "role": volatile.as_ref().map(|v| format!("{:?}", v.role)),
        "leader": volatile.as_ref().map(|v| v.leader),
        "term": stored.hard.term,
        "vote": stored.hard.vote,
        "commit": stored.hard.commit,
        "compacted": stored.entries.base(),
        "log": log,
        "applied": stored.application.index(),
        "voters": stored.application.members().voters,
        "synced": disk.synced.as_ref().map(|synced| json!({
            "term": synced.hard.term,
            "vote": synced.hard.vote,
            "commit": synced.hard.commit,
            "last": synced.entries.last(),
            "applied": synced.application.index(),
        })),
        "writes": node.writes,
        "reads": node.reads,
        "died": node.died,
    })
}
