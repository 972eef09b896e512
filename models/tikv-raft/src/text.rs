//! How messages and states are written for people and logs.

use serde_json::{Value, json};

use crate::library_text::{entry, message};
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
