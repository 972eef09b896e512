//! Messages that were delivered, each with the states of its sender and its receiver, and with what led to it.
//!
//! A handler is atomic: the state of a unit is the last that it tells, and where it tells none that of the unit before it, in the same
//! incarnation. No cut is needed: what is said of the states on both sides of a message can be seen at its receive (S. Grant, H. Cech and
//! I. Beschastnikh, "Inferring and asserting distributed system invariants", ICSE 2018, section 4).

use std::sync::Arc;

use demi_predicate::{Delivered, LONGEST, Link, State};
use rustc_hash::FxHashMap;

use super::Query;
use super::check::StateHistory;
use super::units::{ExecutionUnits, States};
use crate::error::LineageError;
use crate::matching::Reason;

/// A message that was delivered.
#[derive(Debug)]
pub struct Delivery {
    /// The event that sent it.
    send: u32,
    /// The event that received it.
    pub(super) receive: u32,
    /// The events with which its states were told.
    told: [u32; 2],
    /// How many records of states stand before what came of it: those of the handler that it began are among them.
    after: usize,
    /// The message.
    pub delivered: Arc<Delivered>,
}

impl Delivery {
    /// The events with which its states were told.
    pub(super) fn told(&self) -> &[u32; 2] {
        &self.told
    }

    /// How many records of states stand before what came of it: those of the handler that it began are among them.
    pub(super) fn after(&self) -> usize {
        self.after
    }
}

/// Fields of messages, by the number of an event.
#[derive(Default)]
struct MessageFields {
    kind: FxHashMap<u32, Arc<str>>,
    tells: FxHashMap<u32, Arc<State>>,
}

impl Delivery {
    /// The event that received it.
    #[must_use]
    pub fn receive(&self) -> u32 {
        self.receive
    }
}

impl StateHistory {
    /// The messages that were delivered, see [`Query::deliveries`]; they are gathered once.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn deliveries(&self, query: &Query) -> Result<&[Delivery], LineageError> {
        if let Some(known) = self.delivered.get() {
            return Ok(known);
        }
        let found = query.deliveries(self)?;
        Ok(self.delivered.get_or_init(|| found))
    }
}

impl Query {
    /// The messages that were delivered, in the order in which their receivers were done with them. Where clocks or causes alone tell
    /// that an event followed from another actor's, that counts as a message. A timer is none.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn deliveries(&self, told: &StateHistory) -> Result<Vec<Delivery>, LineageError> {
        let causes = self.causes()?;
        let units = ExecutionUnits::new(self, &causes)?;
        let states = States::new(self, told, &units)?;
        let said = self.said(&causes)?;
        let nothing = Arc::new(State::default());
        let names: Vec<Arc<str>> =
            self.index.header().actors.iter().map(|a| Arc::from(a.name.as_str())).collect();
        let name = |event: u32| names[self.index.actor_of(event)].clone();
        let mut all = Vec::new();
        for &(receive, send) in &causes {
            let unit = units.of(receive);
            let rest = self.behind(send, receive, &causes, &units)?;
            let left = |e: u32| -> Result<Vec<Arc<State>>, LineageError> {
                let mut all = match self.index.info(e)?.is_alone() {
                    true => states.at(e, self)?.into_iter().collect(),
                    false => states.of(e, &units).to_vec(),
                };
                if all.is_empty() {
                    all.push(nothing.clone());
                }
                Ok(all)
            };
            let mut further: Vec<Link> = Vec::new();
            for e in rest {
                further.extend(left(e)?.pop().map(|state| (name(e), state)));
            }
            let kind = said.kind.get(&send).or_else(|| said.kind.get(&receive)).cloned().unwrap_or_default();
            let message = said.tells.get(&send).or_else(|| said.tells.get(&receive));
            let message = message.unwrap_or(&nothing).clone();
            let done = |e: u32| states.done(units.of(e));
            let key = done(receive).map_or(self.index.order(receive)?, |d| d.0);
            let told_at = [send, receive].map(|e| done(e).map_or(e, |d| d.1.max(e)));
            let after = told.records().partition_point(|record| record.order <= key);
            // Several points of one handler make several rows.
            for theirs in left(send)? {
                for own in left(receive)? {
                    let mut links = vec![(name(receive), own), (name(send), theirs.clone())];
                    links.extend(further.iter().cloned());
                    let (kind, message) = (kind.clone(), message.clone());
                    let delivered = Arc::new(Delivered { kind, message, before: states.before(unit), links });
                    all.push((key, Delivery { send, receive, told: told_at, after, delivered }));
                }
            }
        }
        all.sort_by_key(|(key, delivery)| (*key, delivery.receive, delivery.send));
        Ok(all.into_iter().map(|(_, delivery)| delivery).collect())
    }

    /// Events that another event caused, with that one; in their order.
    pub(super) fn causes(&self) -> Result<Vec<(u32, u32)>, LineageError> {
        let mut causes = Vec::new();
        for event in 0..self.index.header().events {
            let info = self.index.info(event)?;
            self.index.each_cause(event, info, |cause| {
                if cause.reason() != Reason::Timer && (cause.certain() || !self.certain) {
                    causes.push((event, cause.event()));
                }
                Ok(())
            })?;
        }
        Ok(causes)
    }

    /// What led to a send: the send of the message that began its handler, and so on backward, as long as no actor comes again.
    fn behind(
        &self,
        send: u32,
        receive: u32,
        causes: &[(u32, u32)],
        units: &ExecutionUnits,
    ) -> Result<Vec<u32>, LineageError> {
        let mut actors = vec![self.index.actor_of(receive), self.index.actor_of(send)];
        let (mut at, mut found) = (send, Vec::new());
        while actors.len() < LONGEST && actors[0] != actors[1] && !self.index.info(at)?.is_alone() {
            let head = units.head(units.of(at));
            let from = causes.partition_point(|(effect, _)| *effect < head);
            let Some(&(_, cause)) = causes.get(from).filter(|(effect, _)| *effect == head) else { break };
            let actor = self.index.actor_of(cause);
            if actors.contains(&actor) {
                break;
            }
            actors.push(actor);
            found.push(cause);
            at = cause;
        }
        Ok(found)
    }

    /// Types of messages, and what their records tell: the members of a payload that is an object, and the fields.
    fn said(&self, causes: &[(u32, u32)]) -> Result<MessageFields, LineageError> {
        let mut events: Vec<u32> = causes.iter().flat_map(|(effect, cause)| [*effect, *cause]).collect();
        events.sort_unstable();
        events.dedup();
        let ranges: Vec<_> = events.iter().map(|e| *e..*e + 1).collect();
        let mut said = MessageFields::default();
        let mut kinds: FxHashMap<String, Arc<str>> = FxHashMap::default();
        self.each_text("type", &ranges, &mut |event, text| {
            if !text.is_empty() {
                let kind = kinds.entry(text.to_owned()).or_insert_with(|| Arc::from(text));
                said.kind.insert(event, kind.clone());
            }
        })?;
        let mut known: FxHashMap<String, Arc<State>> = FxHashMap::default();
        for column in ["payload", "fields"] {
            self.each_text(column, &ranges, &mut |event, text| {
                if !text.starts_with('{') {
                    return;
                }
                let own =
                    known.entry(text.to_owned()).or_insert_with(|| Arc::new(State::parse(text))).clone();
                if own.variables().next().is_none() {
                    return;
                }
                let all = match said.tells.get(&event) {
                    Some(payload) => Arc::new(payload.with(&own)),
                    None => own,
                };
                said.tells.insert(event, all);
            })?;
        }
        Ok(said)
    }
}
