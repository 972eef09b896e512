//! What a monitor knows, in a form that outlives its process.

use std::collections::BTreeMap;
use std::sync::Arc;

use demi_predicate::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::interest::{MatchKey, MessageContent};
use crate::monitor::{Actor, Monitor};
use crate::status::Options;
use crate::units::{Sent, Unit};
use crate::watched::{WatchRecord, Watched};
use crate::{Interest, Invariant};

/// The state of a [`Monitor`], as plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonitorState {
    logs: Vec<SavedLog>,
    sent: Vec<u64>,
    channels: BTreeMap<u64, i64>,
    channels_failed: bool,
    #[serde(default)]
    has_forgotten: bool,
    #[serde(default)]
    forgotten: u64,
    messages: Vec<(u64, SavedMessage)>,
    counted: BTreeMap<u64, (u64, u64)>,
    invariants: BTreeMap<String, SavedInvariant>,
    uncertain: u64,
}

/// A log, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedLog {
    actor: Arc<str>,
    incarnation: u32,
    next: u64,
    #[serde(default)]
    lost: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsent: Vec<MatchKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_work: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Map<String, Json>>,
    #[serde(default)]
    told: u64,
    #[serde(default)]
    used: u64,
    #[serde(default)]
    uncertain: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handler: Option<SavedHandler>,
}

/// A handler at work, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedHandler {
    received: Option<(u32, u64, MessageContent, Option<SavedMessage>)>,
    before: Option<Json>,
    sends: Vec<(MatchKey, MessageContent)>,
}

/// A message on its way, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMessage {
    said: MessageContent,
    links: Vec<(Arc<str>, Json)>,
}

/// An invariant with its verdicts, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedInvariant {
    /// The predicate and the class that it was kept for.
    holds: String,
    class: Vec<String>,
    verdicts: demi_predicate::SavedVerdicts,
    standing: WatchRecord,
    never_told: Vec<String>,
}

impl MonitorState {
    /// Takes out what actors told: their states, and the messages that these led to. Where their logs are stays known.
    pub fn forget(&mut self, whose: &dyn Fn(&str) -> bool) {
        let led = |message: &SavedMessage| message.links.iter().any(|(actor, _)| whose(actor));
        for log in &mut self.logs {
            if whose(&log.actor) {
                (log.state, log.handler) = (None, None);
            } else if let Some(handler) = &mut log.handler
                && let Some((_, _, _, sent)) = &mut handler.received
                && sent.as_ref().is_some_and(led)
            {
                *sent = None;
            }
        }
        self.messages.retain(|(_, message)| !led(message));
        for kept in self.invariants.values_mut() {
            kept.verdicts.forget(whose);
            // The rows and groups that were told are named after actors and values.
            kept.standing.alerted.clear();
            kept.standing.last = None;
        }
    }
}

impl Monitor<'_> {
    /// What it knows, but for the records that wait: these come again with the frames from [`oldest_waiting`](Self::oldest_waiting) on.
    #[must_use]
    pub fn save(&self) -> MonitorState {
        let known =
            self.order.logs.iter().enumerate().filter(|(number, _)| !self.order.names[*number].is_empty());
        let logs = known.map(|(number, log)| {
            let actor = self.actors.get(number);
            let state = actor.filter(|a| a.state.is_some()).map(|a| a.object(&self.interest));
            SavedLog {
                actor: self.order.names[number].clone(),
                incarnation: log.incarnation,
                next: log.next,
                lost: log.lost,
                unsent: log.unsent.clone(),
                at_work: log.at_work,
                state: state.and_then(|s| if let Json::Object(s) = s { Some(s) } else { None }),
                told: actor.map_or(0, |a| a.told),
                used: log.used,
                uncertain: actor.map_or(0, |a| a.uncertain),
                handler: self.units.units.get(&number).map(SavedHandler::of),
            }
        });
        let invariants = self.watched.iter().map(|watched| {
            let kept = SavedInvariant {
                holds: watched.invariant.predicate.to_string(),
                class: class(watched.invariant),
                verdicts: watched.verdicts.save(),
                standing: watched.standing.clone(),
                never_told: self.interest.names(watched.unseen),
            };
            (watched.invariant.id.clone(), kept)
        });
        MonitorState {
            logs: logs.collect(),
            sent: self.order.sent.sorted().into_iter().map(|(key, ())| key).collect(),
            channels: self.order.channels.sorted().into_iter().map(|(k, v)| (k, *v)).collect(),
            channels_failed: self.order.channels_failed,
            has_forgotten: self.order.has_forgotten,
            forgotten: self.counts.forgotten,
            messages: self
                .units
                .sent
                .sorted()
                .into_iter()
                .map(|(key, m)| (key, SavedMessage::of(m)))
                .collect(),
            counted: self.units.counted.sorted().into_iter().map(|(k, v)| (k, *v)).collect(),
            invariants: invariants.collect(),
            uncertain: self.counts.uncertain,
        }
    }
}

impl<'p> Monitor<'p> {
    /// Goes on where another was saved. An invariant that is new, or that says something else than before, begins with the last states.
    #[must_use]
    pub fn resume(invariants: &'p [Invariant], options: Options, saved: &MonitorState) -> Monitor<'p> {
        let mut monitor = Monitor::new(invariants, options);
        let by_handler = monitor.interest.of_messages;
        for log in &saved.logs {
            let number = monitor.order.number(&log.actor);
            let known = &mut monitor.order.logs[number];
            (known.incarnation, known.next, known.lost) = (log.incarnation, log.next, log.lost);
            known.unsent.clone_from(&log.unsent);
            known.tells = log.state.is_some();
            known.used = log.used;
            if by_handler {
                known.at_work = log.at_work;
            }
            monitor.order.resume(number);
            monitor.actors.push(Actor::of(log, &monitor.interest));
            if log.uncertain > 0 {
                monitor.uncertain.insert(number);
            }
            if let Some(handler) = &log.handler {
                monitor.units.units.insert(number, handler.unit());
            }
        }
        saved.sent.iter().for_each(|key| monitor.order.sent.insert(*key, ()));
        saved.channels.iter().for_each(|(key, left)| monitor.order.channels.insert(*key, *left));
        (monitor.order.has_forgotten, monitor.counts.forgotten) = (saved.has_forgotten, saved.forgotten);
        monitor.order.channels_failed = saved.channels_failed;
        saved.messages.iter().for_each(|(key, message)| monitor.units.sent.insert(*key, message.sent()));
        saved.counted.iter().for_each(|(key, counts)| monitor.units.counted.insert(*key, *counts));
        monitor.counts.uncertain = saved.uncertain;
        for watched in &mut monitor.watched {
            let invariant = watched.invariant;
            let kept = saved.invariants.get(&invariant.id).filter(|kept| {
                kept.holds == invariant.predicate.to_string() && kept.class == class(invariant)
            });
            if let Some(kept) = kept {
                let verdicts = invariant.predicate.resume(&kept.verdicts, options.keys);
                *watched = Watched::new(invariant, verdicts, watched.mask, kept.standing.clone());
                watched.unseen &= monitor.interest.bits(&kept.never_told);
                continue;
            }
            for (number, actor) in monitor.actors.iter().enumerate() {
                let name = &monitor.order.names[number];
                if let Some(state) = actor.state.as_ref().filter(|_| watched.is_about(number, name)) {
                    watched.tell(name, actor.incarnation, state, false);
                }
            }
        }
        monitor
    }
}

fn class(invariant: &Invariant) -> Vec<String> {
    invariant.class.patterns().map(str::to_owned).collect()
}

impl Actor {
    /// A variable that nobody asked for before is unknown until it is told again.
    fn of(log: &SavedLog, interest: &Interest) -> Actor {
        let (incarnation, told, uncertain) = (log.incarnation, log.told, log.uncertain);
        let mut actor = Actor { incarnation, told, uncertain, ..Actor::default() };
        if let Some(state) = &log.state {
            actor.values = interest.variables.iter().map(|name| state.get(name).cloned()).collect();
            actor.state = Some(Arc::new(State::new(actor.object(interest))));
        }
        actor
    }
}

impl SavedHandler {
    fn of(unit: &Unit) -> SavedHandler {
        let received = unit.received.clone();
        SavedHandler {
            received: received
                .map(|(inc, seq, said, sent)| (inc, seq, said, sent.as_ref().map(SavedMessage::of))),
            before: unit.before.as_ref().map(|state| state.value()),
            sends: unit.sends.clone(),
        }
    }

    fn unit(&self) -> Unit {
        let received = self.received.clone();
        Unit {
            received: received
                .map(|(inc, seq, said, sent)| (inc, seq, said, sent.as_ref().map(SavedMessage::sent))),
            before: self.before.clone().map(|json| Arc::new(State::new(json))),
            sends: self.sends.clone(),
        }
    }
}

impl SavedMessage {
    fn of(sent: &Sent) -> SavedMessage {
        let links = sent.links.iter().map(|(name, state)| (name.clone(), state.value()));
        SavedMessage { said: sent.said.clone(), links: links.collect() }
    }

    fn sent(&self) -> Sent {
        let links = self.links.iter().map(|(name, json)| (name.clone(), Arc::new(State::new(json.clone()))));
        Sent { said: self.said.clone(), links: links.collect() }
    }
}
