//! What a checker knows, in a form that outlives its process; and how it forgets.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Checker, Group, Past, told_of};
use crate::Predicate;
use crate::row::{Delivered, Row};
use crate::scope::Scope;
use crate::state::State;

/// What a [`Checker`] knows, as plain data. States are JSON objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    actors: Vec<Actor>,
    /// The rows of a history, each with the actor that told it, in the order of each group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    past: Vec<(Arc<str>, Json)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
    /// Pairs of actors that exchanged a message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    met: Vec<(Arc<str>, Arc<str>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Actor {
    name: Arc<str>,
    incarnation: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Json>,
    now: Json,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    kind: Arc<str>,
    message: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Json>,
    links: Vec<(Arc<str>, Json)>,
}

impl Checker<'_> {
    /// What it knows; [`Predicate::resume`] goes on from there.
    #[must_use]
    pub fn save(&self) -> Saved {
        let actors = self.actors.iter().filter_map(|(name, seen)| {
            let before = seen.before.as_ref().map(|state| state.value());
            let incarnation = self.last.get(name)?.incarnation;
            Some(Actor { name: name.clone(), incarnation, before, now: seen.now.value() })
        });
        let past = sorted(&self.groups).flat_map(|group| &group.rows);
        let messages = sorted(&self.messages).flat_map(|group| &group.rows);
        Saved {
            actors: actors.collect(),
            past: past.map(|(actor, state)| (actor.clone(), state.value())).collect(),
            messages: messages.map(Message::of).collect(),
            met: self.met.iter().cloned().collect(),
            failure: self.failure.clone(),
        }
    }

    /// Forgets the last states of all actors: they are unknown until they are told again. A history stays.
    pub fn forget_actors(&mut self) {
        self.last.clear();
        self.actors.clear();
        self.failing.clear();
        self.unseen.clear();
        if !self.predicate.scope().is_history() && !self.predicate.scope().is_of_messages() {
            self.failure = None;
        }
    }

    /// Forgets the last states of an actor that is gone. What failed with it is judged at the next state that is told.
    pub fn forget_actor(&mut self, actor: &str) {
        if self.last.remove(actor).is_none() {
            return;
        }
        self.actors.remove(actor);
        self.unseen.remove(actor);
        self.failing.retain(|(a, b)| &**a != actor && b.as_deref() != Some(actor));
        if !self.predicate.scope().is_history() && !self.predicate.scope().is_of_messages() {
            self.failure = None;
            // The others are looked at without it.
            self.unseen.extend(self.actors.keys().next().cloned());
        }
    }

    /// How many rows of a history, or of messages that count together, it keeps.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Forgets half of the rows it keeps: groups that nothing was added to for the longest time, and the oldest rows of the last of them.
    pub fn forget_half(&mut self) {
        let most = self.kept / 2;
        self.kept = shrink(&mut self.groups, most);
        if self.groups.is_empty() {
            self.kept = shrink(&mut self.messages, most);
        }
        self.taken.clear();
        if matches!(self.predicate.scope(), Scope::Ever) {
            let rows: Vec<Past> = self.groups.values().flat_map(|g| g.rows.iter().cloned()).collect();
            for past in rows {
                let projected = self.projected(Row::one(told_of(&past)), &past.1);
                self.taken.insert(projected, 0);
            }
        }
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), String> {
        for actor in &saved.actors {
            let mut told = BTreeSet::new();
            for state in actor.before.iter().chain([&actor.now]) {
                if self.note(&actor.name, actor.incarnation, &Arc::new(State::new(state.clone()))) {
                    told.extend(self.pending.take());
                }
            }
            if !self.predicate.scope().is_history() {
                self.unseen.extend(told);
            }
        }
        self.met = saved.met.iter().cloned().collect();
        for (actor, state) in &saved.past {
            let state = Arc::new(State::new(state.clone()));
            let row = Row::one(told_of_parts(actor, &state));
            let projected = self.projected(row, &state);
            let Some(key) = self.predicate.key(row)? else { continue };
            self.looks += 1;
            let group = self.groups.entry(key).or_default();
            group.touched = self.looks;
            self.taken.insert(projected, group.rows.len());
            group.rows.push((actor.clone(), state));
            self.kept += 1;
        }
        for message in &saved.messages {
            let delivered = message.delivered();
            let row = match self.predicate.scope() {
                Scope::Chain => Row::chain(&delivered, self.predicate.chain_length()),
                _ => Row::message(&delivered),
            };
            if let Some(row) = row
                && let Some(key) = self.predicate.key(row)?
            {
                self.keep(&key, row, &delivered);
            }
        }
        for name in std::mem::take(&mut self.unseen) {
            let now = self.actors.get(&name).map(|seen| seen.now.clone());
            now.map_or(Ok(()), |now| self.changed(&name, &now))?;
        }
        self.failure.clone_from(&saved.failure);
        Ok(())
    }
}

impl Predicate {
    /// Goes on where another checker of this predicate was [saved](Checker::save).
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn resume(&self, saved: &Saved) -> Result<Checker<'_>, String> {
        let mut checker = self.checker();
        checker.restore(saved)?;
        Ok(checker)
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

fn told_of_parts<'a>(actor: &'a str, state: &'a State) -> crate::Told<'a> {
    crate::Told { actor, state }
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
