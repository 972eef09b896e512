//! What of an event record a monitor needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use demi_predicate::meant;
use demi_schemas::event::{ANYONE, DEAD_LETTERS, ENVIRONMENT};
use demi_schemas::{EventRecord, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::Invariant;

/// The variables that invariants speak of, by which records are cut down to what is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// In order.
    pub(crate) variables: Vec<String>,
    /// Whether one is about messages, or about actors that exchanged them.
    pub(crate) of_messages: bool,
    /// Whether one reads what messages tell of themselves.
    tells: bool,
}

/// The part of an event record that a monitor needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub(crate) actor: Arc<str>,
    pub(crate) incarnation: u32,
    pub(crate) seq: u64,
    pub(crate) step: Step,
    /// Whether the actor is gone with it, for good or until its next incarnation.
    pub(crate) is_end: bool,
    /// By variable of the interest: its value.
    pub(crate) state: Option<Box<[Option<Json>]>>,
}

/// The effect of a record on the order of records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A message went out.
    Send(MatchKey, MessageContent),
    /// A message came in: a handler begins.
    Receive(MatchKey, MessageContent),
    /// A handler begins.
    Head,
    /// Anything else.
    Other,
}

/// The key by which a receive finds its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatchKey {
    /// A message id: a digest of it and the receiver, and one of it and everybody.
    Id { one: u64, all: u64 },
    /// The sender and the receiver: messages are counted.
    Channel(u64),
    /// It came from outside, or nobody knows from where.
    Outside,
}

/// The content of a message: its type and its fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageContent {
    pub(crate) kind: Option<Arc<str>>,
    pub(crate) tells: Option<Json>,
}

/// The value of the variable that a name stands for.
fn value(state: &Map<String, Json>, name: &str) -> Option<Json> {
    state.get(name).or_else(|| state.get(meant(name, state.keys().map(String::as_str))?)).cloned()
}

impl Interest {
    /// What these invariants speak of.
    #[must_use]
    pub fn of(invariants: &[Invariant]) -> Interest {
        let mut variables: BTreeSet<&str> = BTreeSet::new();
        let (mut of_messages, mut tells) = (false, false);
        for Invariant { predicate, .. } in invariants {
            variables.extend(predicate.variables());
            of_messages |= predicate.scope().is_of_messages()
                || matches!(predicate.scope(), demi_predicate::Scope::Neighbours(..));
            tells |= !predicate.message_variables().is_empty();
        }
        Interest { variables: variables.into_iter().map(str::to_owned).collect(), of_messages, tells }
    }

    /// Cuts a record down. A state that was taken before its event, at a logging point, is passed over.
    #[must_use]
    pub fn record(&self, record: &EventRecord) -> Record {
        let points = record.fields.as_ref().and_then(|f| f.get("points"));
        let state = record.state.as_ref().and_then(Json::as_object).filter(|_| points.is_none());
        let step = match record.kind {
            Kind::Send => Step::Send(way(record, record.to.as_deref().unwrap_or(ANYONE)), self.said(record)),
            Kind::Receive => {
                Step::Receive(way(record, record.to.as_deref().unwrap_or(&record.actor)), self.said(record))
            }
            Kind::Start
            | Kind::Crash
            | Kind::Restart
            | Kind::Stop
            | Kind::Isolate
            | Kind::Heal
            | Kind::Action
            | Kind::TimerFire => Step::Head,
            _ => Step::Other,
        };
        Record {
            actor: Arc::from(record.actor.as_str()),
            incarnation: record.incarnation,
            seq: record.seq,
            step,
            is_end: matches!(record.kind, Kind::Crash | Kind::Stop),
            state: state.map(|state| self.variables.iter().map(|name| value(state, name)).collect()),
        }
    }

    /// A record as this interest has it, which another cut down: variables that it left out are unknown.
    #[must_use]
    pub fn translate(&self, mut record: Record, other: &Interest) -> Record {
        let values = record.state.take();
        record.state = values.map(|values| {
            let of = |name: &String| {
                let place = other.variables.iter().position(|known| known == name)?;
                values.get(place).cloned().flatten()
            };
            self.variables.iter().map(of).collect()
        });
        record
    }

    fn said(&self, record: &EventRecord) -> MessageContent {
        if !self.of_messages {
            return MessageContent::default();
        }
        let tells = || {
            let mut all = Map::new();
            if let Some(Json::Object(payload)) = record
                .payload
                .as_deref()
                .filter(|p| p.starts_with('{'))
                .and_then(|p| serde_json::from_str(p).ok())
            {
                all.extend(payload);
            }
            if let Some(Json::Object(fields)) = &record.fields {
                all.extend(fields.clone());
            }
            (!all.is_empty()).then_some(Json::Object(all))
        };
        MessageContent {
            kind: record.type_.as_deref().map(Arc::from),
            tells: if self.tells { tells() } else { None },
        }
    }
}

impl Record {
    /// Whether a handler begins with it.
    pub(crate) fn is_head(&self) -> bool {
        matches!(self.step, Step::Head | Step::Receive(..))
    }
}

fn way(record: &EventRecord, to: &str) -> MatchKey {
    let from = record.from.as_deref().unwrap_or(&record.actor);
    let receives = record.kind == Kind::Receive;
    // Who is outside tells no state, so that a receive need not wait for it.
    if receives && (record.external == Some(true) || [ENVIRONMENT, DEAD_LETTERS].contains(&from)) {
        return MatchKey::Outside;
    }
    let key = |id: &str, to: &str| xxh3_64_with_seed(id.as_bytes(), xxh3_64(to.as_bytes()));
    match &record.msg_id {
        Some(id) => MatchKey::Id { one: key(id, to), all: key(id, ANYONE) },
        None if receives && (record.from.is_none() || from == ANYONE) => MatchKey::Outside,
        None if to == ANYONE => MatchKey::Outside,
        None => MatchKey::Channel(key(from, to)),
    }
}
