//! The event record: one thing one actor did, in that actor's own order.

use std::ops::Range;

use std::collections::BTreeMap;

use demi_common::text::exact_numbers;
use schemars::JsonSchema;
use serde::de::DeserializeSeed;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::EventId;
pub use crate::kind::{Kind, Via};

/// The actor name under which sends made outside any recorded actor are logged.
pub const ENVIRONMENT: &str = "_environment";
/// The actor name under which a monitor logs violations.
pub const MONITOR: &str = "_monitor";
/// The sender of everything that no recorded actor sent: clients, timers, outside threads.
pub const DEAD_LETTERS: &str = "deadLetters";
/// An address that says "unknown, or several": the `to` of a message that whoever receives its id was sent, the `from`
/// of a message whose id alone tells the sender.
pub const ANYONE: &str = "*";

/// What a `msg_id` begins with that was made by counting the messages between two actors. Whether the n-th receive is that of the n-th send is a
/// guess unless both logs have their beginning.
pub const COUNTED_ID: &str = "count:";
/// What stands in place of [`COUNTED_ID`] once a record of the logs could not be read: the messages behind it may be counted wrong. The same
/// message has the one at one end and the other at the other, if one end was read before the loss.
pub const COUNTED_AFTER_LOSS_ID: &str = "count?:";
/// What a `msg_id` begins with that was made by taking the earliest send of equal key. Which of several sends a receive takes is a guess.
pub const EARLIEST_ID: &str = "earliest:";

/// A vector clock (C. Fidge, ACSC 1988; F. Mattern, 1989) as logged: by actor, how many of its events are the event
/// itself or precede it.
pub type VectorClock = BTreeMap<String, u64>;

/// What may be wrong where the clock of an event has no entry of its own actor: clocks without names count their hosts
/// `p0`, `p1` and so on from a first one, and the log may count its nodes from another.
#[must_use]
pub fn first_host_hint<'a>(actor: &str, hosts: impl IntoIterator<Item = &'a String>) -> &'static str {
    let number = |name: &str| name.strip_prefix('p').and_then(|n| n.parse::<u64>().ok());
    let mut hosts = hosts.into_iter().peekable();
    let numbered =
        number(actor).is_some() && hosts.peek().is_some() && hosts.all(|host| number(host).is_some());
    if numbered {
        "; if the log counts its nodes from another number, set 'first' in the mapping's [clock]"
    } else {
        ""
    }
}

/// Sequence numbers from here on were taken from a clock: nanoseconds since 1970, which passed this in July 2006.
///
/// The order of such numbers within an actor counts; gaps between them say nothing, because nobody counted.
pub const FIRST_CLOCK_SEQ: u64 = 1 << 60;

/// Whether a sequence number was taken from a clock ([`FIRST_CLOCK_SEQ`]).
#[must_use]
pub fn is_clock_seq(seq: u64) -> bool {
    seq >= FIRST_CLOCK_SEQ
}

/// What is added to a sequence number that is sparse by design, so that it counts as one taken from a clock.
const SPARSE: u64 = 2_000_000_000_000_000_000;

/// A sequence number between which and others gaps mean nothing: it is brought above [`FIRST_CLOCK_SEQ`], where that holds, by adding
/// 2 * 10^18, which leaves its digits readable, and the order of such numbers as it is.
///
/// # Errors
/// When it is too large for that.
pub fn sparse_seq(seq: u64) -> Result<u64, String> {
    let brought = seq.checked_add(SPARSE).filter(|brought| i64::try_from(*brought).is_ok());
    brought.ok_or_else(|| {
        format!(
            "seq {seq} is too large where gaps are normal: the largest is {}",
            i64::MAX.unsigned_abs() - SPARSE
        )
    })
}

/// The sequence number of a time in nanoseconds since 1970: of one before 2006 too gaps mean nothing.
#[must_use]
pub fn clock_seq(nanos: u64) -> u64 {
    if is_clock_seq(nanos) { nanos } else { nanos + SPARSE }
}

/// Whether a sequence number may be the time of its event, in nanoseconds since 1970. Of events of one time each has a number of one more than
/// the one before it, so numbers like these that follow each other say that no clock told their events apart.
#[must_use]
pub fn is_time_seq(seq: u64) -> bool {
    TIME_SEQS.contains(&seq)
}

/// The sequence numbers that may be times ([`is_time_seq`]).
pub const TIME_SEQS: Range<u64> = FIRST_CLOCK_SEQ..SPARSE;

/// What is known of a timer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct TimerInfo {
    /// Name of the timer, unique within its actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The message it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it re-arms itself when it fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<bool>,
    /// How many timers the actor had set before this one, if the runtime counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// What else the logger wrote.
    #[serde(flatten)]
    pub attrs: BTreeMap<String, Value>,
}

/// One event, as one JSON object a line. Absent fields are absent; unknown ones are kept in `attrs`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventRecord {
    /// Which recorded system or deployment; the partition of the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Who did it.
    pub actor: String,
    /// Which incarnation of the actor; 0, the first, is not written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub incarnation: u32,
    /// Sequence number in the actor's own log of that incarnation, from 1.
    pub seq: u64,
    /// What it was.
    pub kind: Kind,
    /// Joins a send to its receive, and a `timer_set` to its `timer_fire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<String>,
    /// Sender address as logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Receiver address as logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Set where `from` is not the actor that sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// What is known of the timer, for timer events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerInfo>,
    /// Message type tag; for timers the name of what they carry.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Full content of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The masked string that decides whether two messages are the same logical message; `payload` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Came from outside the recorded actors: a client, an operator, a test driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<bool>,
    /// Structured content where the logger gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
    /// The actor's variables at this point; all that a `state` record says, and beside other things elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// Wall-clock time as logged: RFC 3339 text or a number; never trusted for order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Value>,
    /// File or connection the record came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Byte offset of the raw line in `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Number of that line, from 1. Whoever reads the line sets it; in a record it is an unknown field like others.
    #[serde(skip)]
    pub line: Option<u64>,
    /// Vector clock as logged. It is kept, compared with the order that messages give, and tells the order where no
    /// message does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_clock: Option<VectorClock>,
    /// Fields this version does not know, kept as they came.
    #[serde(flatten)]
    pub attrs: BTreeMap<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// An error of reading an event record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The line is not UTF-8.
    #[error("not UTF-8 (first bad byte at {0})")]
    NotUtf8(usize),
    /// The line is not a JSON object with the right types.
    #[error("not an event record: {0}")]
    Json(String),
    /// The kind is not one of [`Kind::ALL`].
    #[error("unknown kind '{0}'")]
    UnknownKind(String),
    /// A rule about the fields is broken.
    #[error("{0}")]
    Rule(String),
}

impl RecordError {
    /// A short, stable code for tables and metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            RecordError::NotUtf8(_) => "not_utf8",
            RecordError::Json(_) => "not_json",
            RecordError::UnknownKind(_) => "unknown_kind",
            RecordError::Rule(_) => "rule",
        }
    }
}

impl EventRecord {
    /// A record with the three fields that every record has, and nothing else.
    #[must_use]
    pub fn new(actor: impl Into<String>, seq: u64, kind: Kind) -> Self {
        EventRecord {
            system: None,
            actor: actor.into(),
            incarnation: 0,
            seq,
            kind,
            msg_id: None,
            from: None,
            to: None,
            via: None,
            timer: None,
            type_: None,
            payload: None,
            fingerprint: None,
            external: None,
            fields: None,
            state: None,
            time: None,
            source: None,
            offset: None,
            line: None,
            vector_clock: None,
            attrs: BTreeMap::new(),
        }
    }

    /// Reads one line.
    ///
    /// # Errors
    /// When the bytes are not UTF-8, not a JSON object of the right shape, name an unknown kind, or break a rule
    /// (see [`EventRecord::check`]).
    pub fn parse(line: &[u8]) -> Result<Self, RecordError> {
        let mut record = EventRecord::new(String::new(), 0, Kind::Local);
        record.read(line)?;
        Ok(record)
    }

    /// As [`parse`](Self::parse), for records that are kept in memory of their own.
    ///
    /// # Errors
    /// The same.
    pub fn parse_boxed(line: &[u8]) -> Result<Box<Self>, RecordError> {
        let mut record = Box::new(EventRecord::new(String::new(), 0, Kind::Local));
        record.read(line)?;
        Ok(record)
    }

    /// Reads a line into a record that is new.
    fn read(&mut self, line: &[u8]) -> Result<(), RecordError> {
        let text = std::str::from_utf8(line).map_err(|e| RecordError::NotUtf8(e.valid_up_to()))?;
        let exact = exact_numbers(text);
        let mut reader = serde_json::Deserializer::from_str(&exact);
        let read = read::RecordReader(self).deserialize(&mut reader).and_then(|()| reader.end());
        read.map_err(|e| Self::explain(text, &e))?;
        // Two messages without an id are not one.
        if self.msg_id.as_deref() == Some("") {
            self.msg_id = None;
        }
        if self.seq > 0 && self.attrs.get("gaps").is_some_and(|gaps| gaps == "normal") {
            // The number says it from now on: read again it is the same.
            self.attrs.remove("gaps");
            self.seq = sparse_seq(self.seq).map_err(RecordError::Rule)?;
        }
        self.check()
    }

    /// Finds the cause behind a failed parse: an unknown kind deserves its own answer.
    fn explain(text: &str, error: &serde_json::Error) -> RecordError {
        if let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) {
            if let Some(Value::String(kind)) = map.get("kind")
                && Kind::from_name(kind).is_none()
            {
                return RecordError::UnknownKind(kind.clone());
            }
            if let Some(seq) = map.get("seq")
                && seq.as_u64().is_none()
            {
                // A whole number that is too large was read as one with a point.
                if seq.as_f64().is_some_and(|n| n >= i64::MAX as f64 && n.fract() == 0.0) {
                    return RecordError::Rule(format!("seq {seq} is too large: the largest is {}", i64::MAX));
                }
                return RecordError::Rule(format!("seq must be a whole number from 1, got {seq}"));
            }
            // What has these is meant as a record, and not as a line of another format.
            if ["actor", "seq", "kind"].iter().all(|name| map.contains_key(*name)) {
                return RecordError::Rule(format!("a field is not as it must be: {error}"));
            }
        }
        RecordError::Json(error.to_string())
    }

    /// Checks the rules that types alone do not: a named actor, sequence numbers from 1, an addressed message.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), RecordError> {
        let rule = |text: String| Err(RecordError::Rule(text));
        if self.actor.is_empty() {
            return rule("actor is empty".into());
        }
        if self.seq == 0 {
            return rule("seq counts from 1, got 0".into());
        }
        if i64::try_from(self.seq).is_err() {
            return rule(format!("seq {} is beyond {}", self.seq, i64::MAX));
        }
        if matches!(self.kind, Kind::Send) && self.to.is_none() {
            return rule("a send needs 'to'".into());
        }
        if matches!(self.kind, Kind::Receive) && self.from.is_none() {
            return rule("a receive needs 'from'".into());
        }
        Ok(())
    }

    /// The event's name.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId { actor: self.actor.clone(), incarnation: self.incarnation, seq: self.seq }
    }
}

/// What a `violation` record says, read from its `fields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViolationFields {
    /// Keys by which two violations are compared: one key in common makes them the same.
    #[serde(default)]
    pub fingerprints: Vec<String>,
    /// The actors whose state breaks the invariant.
    #[serde(default)]
    pub affected: Vec<String>,
    /// The events at which the execution ends that broke it, by their names. An affected actor without one ends at the record, where the record is its
    /// own, and else at its last event.
    #[serde(default)]
    pub told_at: Vec<String>,
}

mod read;
#[cfg(test)]
mod tests;
