//! How messages and entries of the library are written for people and logs.

use std::fmt::Write as _;

use raft::eraftpb::{Entry, EntryType, Message};

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
