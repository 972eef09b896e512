//! Handlers and the messages between them.
//!
//! A handler is atomic: what is said of a message is said of the states that its sender and its receiver had when the handlers that sent
//! and received it were done.

use std::sync::Arc;

use demi_predicate::{Delivered, LONGEST, Link, State};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Recent;
use crate::interest::{MatchKey, MessageContent, Record, Step};

/// A message on its way: what it says, and the states that led to it, its sender's first.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) said: MessageContent,
    pub(crate) links: Vec<Link>,
}

/// The handler that an actor is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// The message that began it: incarnation and sequence number of the receive, what the receive says, and the message if it is known.
    pub(crate) received: Option<(u32, u64, MessageContent, Option<Sent>)>,
    pub(crate) before: Option<Arc<State>>,
    pub(crate) sends: Vec<(MatchKey, MessageContent)>,
}

/// Handlers at work, and messages on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    pub(crate) units: FxHashMap<usize, Unit>,
    pub(crate) sent: Recent<Sent>,
    /// By channel: how many were sent and how many were received.
    pub(crate) counted: Recent<(u64, u64)>,
}

/// A message that was delivered, and the receive as incarnation and sequence number.
pub(crate) type Arrived = (Delivered, u32, u64);

impl Units {
    /// Takes a record of an actor that had this state before it in the same incarnation.
    pub(crate) fn record(&mut self, actor: usize, record: &Record, before: Option<&Arc<State>>) {
        match &record.step {
            Step::Receive(way, said) => {
                let sent = self.arrived(*way).cloned();
                let received = Some((record.incarnation, record.seq, said.clone(), sent));
                self.units.insert(actor, Unit { received, before: before.cloned(), sends: Vec::new() });
            }
            Step::Head => {
                self.units.insert(actor, Unit { before: before.cloned(), ..Unit::default() });
            }
            Step::Send(way, said) => {
                self.units.entry(actor).or_default().sends.push((*way, said.clone()));
            }
            Step::Other => {}
        }
    }

    /// The handler of an actor is done, and has left this state; the message that began it.
    pub(crate) fn done(
        &mut self,
        actor: usize,
        name: &Arc<str>,
        state: Option<&Arc<State>>,
    ) -> Option<Arrived> {
        let unit = self.units.remove(&actor)?;
        let own: Link = (name.clone(), state.cloned().unwrap_or_default());
        let cause = unit.received.as_ref().and_then(|received| received.3.as_ref());
        let behind = cause.map_or(&[][..], |cause| &cause.links);
        for (way, said) in unit.sends {
            let links = std::iter::once(&own).chain(behind).take(LONGEST - 1).cloned().collect();
            if let Some(key) = self.leaving(way) {
                self.sent.insert(key, Sent { said, links });
            }
        }
        let (incarnation, seq, said, sent) = unit.received?;
        let sent = sent?;
        let mut links = vec![own];
        for link in sent.links {
            // Of an actor that sent to itself nothing is told from further back.
            let own_message = links.len() > 1 && links[0].0 == links[1].0;
            if links.len() > 1 && (own_message || links.iter().any(|(known, _)| *known == link.0)) {
                break;
            }
            links.push(link);
        }
        let state = |tells: Json| Arc::new(State::new(tells));
        let delivered = Delivered {
            kind: sent.said.kind.or(said.kind).unwrap_or_default(),
            message: sent.said.tells.or(said.tells).map(state).unwrap_or_default(),
            before: unit.before,
            links,
        };
        Some((delivered, incarnation, seq))
    }

    fn arrived(&mut self, way: MatchKey) -> Option<&Sent> {
        match way {
            MatchKey::Id { one, all } => self.sent.get(one).or_else(|| self.sent.get(all)),
            MatchKey::Channel(channel) => {
                let (sent, received) = self.counted.remove(channel).unwrap_or_default();
                self.counted.insert(channel, (sent, received + 1));
                self.sent.get(numbered(channel, received + 1))
            }
            MatchKey::Outside => None,
        }
    }

    fn leaving(&mut self, way: MatchKey) -> Option<u64> {
        match way {
            MatchKey::Id { one, .. } => Some(one),
            MatchKey::Channel(channel) => {
                let (sent, received) = self.counted.remove(channel).unwrap_or_default();
                self.counted.insert(channel, (sent + 1, received));
                Some(numbered(channel, sent + 1))
            }
            MatchKey::Outside => None,
        }
    }
}

/// The key of a message without an id: the place that it has on its channel.
fn numbered(channel: u64, number: u64) -> u64 {
    xxh3_64_with_seed(&number.to_le_bytes(), channel)
}
