//! What verdicts rest on, in a form that outlives its process; and how it is forgotten.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::history::ALL;
use super::{ActorHistory, Finding, Group, Verdicts};
use crate::Predicate;
use crate::row::{Delivered, Link, ReportedState, Row};
use crate::scope::Scope;
use crate::state::State;

/// The state of [`Verdicts`], as plain data. States are JSON objects. States are JSON objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedVerdicts {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    actors: Vec<Actor>,
    /// Actors whose states nobody has looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<Arc<str>>,
    #[serde(default)]
    stale: bool,
    /// The rows of a history, each with the actor that told it, in the order of each group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    past: Vec<(Arc<str>, Json)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
    /// Pairs of actors that exchanged a message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    met: Vec<(Arc<str>, Arc<str>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    found: Vec<SavedFinding>,
    #[serde(default)]
    beyond: u64,
}

/// An actor with its states, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Actor {
    name: Arc<str>,
    incarnation: u32,
    #[serde(default)]
    still: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Json>,
    now: Json,
}

/// A finding, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFinding {
    one: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<Arc<str>>,
    finding: Finding,
}

/// A delivered message, saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    kind: Arc<str>,
    message: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Json>,
    links: Vec<(Arc<str>, Json)>,
}

impl SavedVerdicts {
    /// Takes out what actors told, and what is said of them.
    pub fn forget(&mut self, whose: &dyn Fn(&str) -> bool) {
        self.actors.retain(|actor| !whose(&actor.name));
        self.unseen.retain(|name| !whose(name));
        self.past.retain(|(actor, _)| !whose(actor));
        self.messages.retain(|message| !message.links.iter().any(|(actor, _)| whose(actor)));
        self.met.retain(|(a, b)| !whose(a) && !whose(b));
        self.found.retain(|found| !found.finding.affected.iter().any(|actor| whose(actor)));
        self.stale = true;
    }
}

impl Verdicts<'_> {
    /// What it rests on; [`Predicate::resume`] goes on from there.
    #[must_use]
    pub fn save(&self) -> SavedVerdicts {
        let actors = self.actors.iter().map(|(name, seen)| Actor {
            name: name.clone(),
            incarnation: seen.incarnation,
            still: seen.still,
            before: seen.before.as_ref().map(|state| state.value()),
            now: seen.now.value(),
        });
        let past = sorted(&self.past).flat_map(|group| &group.rows);
        let messages = sorted(&self.messages).flat_map(|group| &group.rows);
        let found = self.found.iter().map(|((one, other), finding)| SavedFinding {
            one: one.clone(),
            other: other.clone(),
            finding: finding.clone(),
        });
        SavedVerdicts {
            actors: actors.collect(),
            unseen: self.unseen.iter().cloned().collect(),
            stale: self.stale,
            past: past.map(|(actor, state)| (actor.clone(), state.value())).collect(),
            messages: messages.map(Message::of).collect(),
            met: self.met.iter().cloned().collect(),
            found: found.collect(),
            beyond: self.beyond,
        }
    }

    /// Forgets the last states of all actors: they are unknown until they are told again. A history stays.
    pub fn forget_actors(&mut self) {
        self.actors.clear();
        self.unseen.clear();
        self.stale = false;
        self.fresh.clear();
        if self.is_of_last_states() {
            self.found.clear();
        }
    }

    /// Forgets the last states of an actor that is gone. Groups are judged without it at the next look.
    pub fn forget_actor(&mut self, actor: &str) {
        if self.actors.remove(actor).is_none() || !self.is_of_last_states() {
            return;
        }
        self.unseen.remove(actor);
        match self.predicate.is_of_groups() {
            true => self.stale = true,
            false => {
                let of = |name: &Arc<str>| **name == *actor;
                self.found.retain(|(a, b), _| !of(a) && !b.as_ref().is_some_and(of));
            }
        }
        let Verdicts { fresh, found, .. } = self;
        fresh.retain(|key| found.contains_key(key));
    }

    /// The same of many, for which there is no room any more.
    pub fn forget_those(&mut self, gone: &BTreeSet<Arc<str>>) {
        let before = self.actors.len();
        gone.iter().for_each(|actor| drop(self.actors.remove(actor)));
        self.met.retain(|(a, b)| !gone.contains(a) && !gone.contains(b));
        if self.actors.len() == before || !self.is_of_last_states() {
            return;
        }
        self.unseen.retain(|actor| !gone.contains(actor));
        match self.predicate.is_of_groups() {
            true => self.stale = true,
            false => {
                let is = |name: &Arc<str>| gone.contains(name);
                self.found.retain(|(a, b), _| !is(a) && !b.as_ref().is_some_and(is));
            }
        }
        let Verdicts { fresh, found, .. } = self;
        fresh.retain(|key| found.contains_key(key));
    }

    /// Whether its rows are made of what actors told last.
    pub(super) fn is_of_last_states(&self) -> bool {
        !self.predicate.scope().is_history() && !self.predicate.scope().is_of_messages()
    }

    /// How many rows of a history, or of messages that count together, it keeps.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Forgets half of the rows it keeps: groups that nothing was added to for the longest time, and the oldest rows of the last of them.
    pub fn forget_half(&mut self) {
        let most = self.kept / 2;
        self.kept = match self.past.is_empty() {
            true => shrink(&mut self.messages, most),
            false => shrink(&mut self.past, most),
        };
        self.taken.clear();
        let rows: Vec<Link> = self.past.values().flat_map(|group| group.rows.iter().cloned()).collect();
        for (actor, state) in rows {
            self.note_taken(&actor, &state, 0);
        }
    }

    /// Notes a row of the past, so that the same does not come in twice.
    fn note_taken(&mut self, actor: &Arc<str>, state: &Arc<State>, place: usize) {
        let told = ReportedState { actor, state };
        let projected = match self.predicate.scope() {
            Scope::EverPairs(..) => format!("{actor}\u{1f}{}", self.projected(Row::pair(told, told))),
            _ => self.projected(Row::one(told)),
        };
        self.taken.insert(projected, place);
    }

    fn restore(&mut self, saved: &SavedVerdicts) {
        let state = |json: &Json| Arc::new(State::new(json.clone()));
        for actor in &saved.actors {
            let seen = ActorHistory {
                incarnation: actor.incarnation,
                still: actor.still,
                now: state(&actor.now),
                before: actor.before.as_ref().map(state),
            };
            self.actors.insert(actor.name.clone(), seen);
        }
        self.unseen = saved.unseen.iter().filter(|name| self.actors.contains_key(*name)).cloned().collect();
        self.stale = saved.stale;
        self.met = saved.met.iter().cloned().collect();
        for (actor, json) in &saved.past {
            let state = state(json);
            let key = match self.predicate.scope() {
                Scope::EverPairs(..) => ALL.to_owned(),
                // What was kept has a group.
                _ => match self.group_of(Row::one(ReportedState { actor, state: &state })) {
                    Ok(Some((key, _))) => key,
                    _ => continue,
                },
            };
            self.added += 1;
            let group = self.past.entry(key).or_default();
            group.touched = self.added;
            group.rows.push((actor.clone(), state.clone()));
            let place = group.rows.len() - 1;
            self.kept += 1;
            self.note_taken(actor, &state, place);
        }
        for message in &saved.messages {
            let delivered = message.delivered();
            if let Some(row) = self.row_of(&delivered)
                && let Ok(Some((key, _))) = self.group_of(row)
            {
                self.keep(&key, row, &delivered);
            }
        }
        let found = saved.found.iter().map(|f| ((f.one.clone(), f.other.clone()), f.finding.clone()));
        self.found = found.take(self.most).collect();
        let unasked = |f: &Finding| f.unjudged.is_none() && f.looks == 0;
        self.fresh = self.found.iter().filter(|(_, f)| unasked(f)).map(|(key, _)| key.clone()).collect();
        self.beyond = saved.beyond;
    }
}

impl Predicate {
    /// Goes on where other verdicts of this predicate were [saved](Verdicts::save), with room for so many findings.
    #[must_use]
    pub fn resume(&self, saved: &SavedVerdicts, most: usize) -> Verdicts<'_> {
        let mut verdicts = self.verdicts(most);
        verdicts.restore(saved);
        verdicts
    }
}

impl Message {
    fn of(delivered: &Delivered) -> Message {
        Message {
            kind: delivered.kind.clone(),
            message: delivered.message.value(),
            before: delivered.before.as_ref().map(|state| state.value()),
            links: delivered.links.iter().map(|(name, state)| (name.clone(), state.value())).collect(),
        }
    }

    fn delivered(&self) -> Delivered {
        let state = |json: &Json| Arc::new(State::new(json.clone()));
        Delivered {
            kind: self.kind.clone(),
            message: state(&self.message),
            before: self.before.as_ref().map(state),
            links: self.links.iter().map(|(name, json)| (name.clone(), state(json))).collect(),
        }
    }
}

/// Groups in an order that is always the same.
fn sorted<T>(groups: &HashMap<String, Group<T>>) -> impl Iterator<Item = &Group<T>> {
    let mut all: Vec<(&String, &Group<T>)> = groups.iter().collect();
    all.sort_unstable_by_key(|(key, group)| (group.touched, *key));
    all.into_iter().map(|(_, group)| group)
}

/// Keeps the newest rows, at most so many; how many it keeps.
fn shrink<T>(groups: &mut HashMap<String, Group<T>>, most: usize) -> usize {
    let mut all: Vec<(u64, String)> =
        groups.iter().map(|(key, group)| (group.touched, key.clone())).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let mut left = most;
    for (_, key) in all {
        let Some(group) = groups.get_mut(&key) else { continue };
        let drop = group.rows.len().saturating_sub(left);
        group.rows.drain(..drop);
        left -= group.rows.len();
        if group.rows.is_empty() {
            groups.remove(&key);
        }
    }
    most - left
}
