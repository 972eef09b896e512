//! A replicated set on three replicas that gossip their states: an observed-remove set without tombstones.
//!
//! Bug `common_dots`: an element that both sides of a merge have stays, without a look at whether one side has removed the
//! other's additions. Source: basho/riak_dt, pull request 82 ("Fix bugs in Map, Set, and OD Flag"). Each replica carries a
//! plain observed-remove set with tombstones beside it, as a reference.

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

/// One addition: the replica's place and its count.
type Dot = (usize, u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside, to one replica.
    Add(u8),
    Remove(u8),
    /// Send the state to the replica of this place.
    Sync(usize),
    Merge(Set),
}

/// The set: what each replica did, the additions of each element, and the reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Set {
    clock: [u32; 3],
    elements: BTreeMap<u8, BTreeSet<Dot>>,
    added: BTreeSet<(u8, Dot)>,
    removed: BTreeSet<(u8, Dot)>,
}

impl Set {
    fn merge(&mut self, other: &Set, common_dots: bool) {
        let known = |clock: &[u32; 3], dot: &Dot| clock[dot.0] >= dot.1;
        let none = BTreeSet::new();
        let all: BTreeSet<u8> = self.elements.keys().chain(other.elements.keys()).copied().collect();
        let mut merged = BTreeMap::new();
        for element in all {
            let mine = self.elements.get(&element).unwrap_or(&none);
            let theirs = other.elements.get(&element).unwrap_or(&none);
            let both = !mine.is_empty() && !theirs.is_empty();
            let stays = |dot: &&Dot| {
                let (here, there) = (mine.contains(dot), theirs.contains(dot));
                common_dots && both
                    || here && there
                    || here && !known(&other.clock, dot)
                    || there && !known(&self.clock, dot)
            };
            let dots: BTreeSet<Dot> = mine.union(theirs).filter(stays).copied().collect();
            if !dots.is_empty() {
                merged.insert(element, dots);
            }
        }
        self.elements = merged;
        for (mine, theirs) in self.clock.iter_mut().zip(other.clock) {
            *mine = (*mine).max(theirs);
        }
        self.added.extend(&other.added);
        self.removed.extend(&other.removed);
    }

    /// Whether the set has what the reference has.
    fn right(&self) -> bool {
        let reference: BTreeSet<u8> = self.added.difference(&self.removed).map(|a| a.0).collect();
        reference.iter().eq(self.elements.keys())
    }
}

#[derive(Clone)]
pub struct Crdt {
    replicas: Vec<ActorId>,
    common_dots: bool,
}

impl Crdt {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Crdt { replicas: group(names, "replica", 3), common_dots: on(scenario, "common_dots") }
    }
}

impl Model for Crdt {
    type State = Set;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.replicas
    }

    fn initial(&self, _: ActorId) -> Set {
        Set::default()
    }

    fn deliver(&self, state: &mut Set, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = self.replicas.iter().position(|&r| r == ctx.me()).unwrap_or(0);
        match msg {
            Msg::Add(element) => {
                state.clock[me] += 1;
                let dot = (me, state.clock[me]);
                // A new addition takes the place of those that were seen.
                let before = state.elements.insert(*element, [dot].into()).unwrap_or_default();
                state.removed.extend(before.into_iter().map(|dot| (*element, dot)));
                state.added.insert((*element, dot));
            }
            Msg::Remove(element) => {
                state.elements.remove(element);
                let seen: Vec<_> = state.added.iter().filter(|a| a.0 == *element).copied().collect();
                state.removed.extend(seen);
            }
            Msg::Sync(to) => {
                if *to != me {
                    ctx.send(self.replicas[*to], Msg::Merge(state.clone()));
                }
            }
            Msg::Merge(other) => state.merge(other, self.common_dots),
        }
    }

    fn check(&self, view: &View<'_, Set>, (): &mut (), found: &mut Vec<Violation>) {
        let wrong = |r: &ActorId| view.state(*r).is_some_and(|set| !set.right());
        let affected: Vec<ActorId> = self.replicas.iter().copied().filter(wrong).collect();
        if !affected.is_empty() {
            found.push(Violation { fingerprint: "Elements".into(), affected });
        }
    }

    fn logs(&self) -> &dyn Logs<Set, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<Set, Msg> {
        self
    }
}

impl Logs<Set, Msg> for Crdt {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Add(_) => "Add",
            Msg::Remove(_) => "Remove",
            Msg::Sync(_) => "Sync",
            Msg::Merge(_) => "Merge",
        };
        name.to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    fn describe(&self, state: &Set, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }
}

impl Workload<Set, Msg> for Crdt {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let (at, element) = ((choice % 3) as usize, (choice / 3 % 4) as u8);
        let msg = match choice / 12 % 8 {
            0 => Msg::Add(element),
            1 => Msg::Remove(element),
            n => Msg::Sync((at + 1 + (n % 2) as usize) % 3),
        };
        Some(Proposal { to: self.replicas[at], msg, fields: Value::Null })
    }
}
