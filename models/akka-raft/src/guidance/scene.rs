//! A configuration as the estimates look at it: its members, and what is pending.
//!
//! What all estimates count alike stands here. Nothing here estimates a whole way to a violation.

use crate::config::Switches;
use crate::message::Msg;
use crate::state::{Entry, Member, Role};
use demi_replay::model::{View, Waiting};
use demi_replay::names::ActorId;

/// More than any execution has.
pub const FAR: usize = usize::MAX / 4;

/// A configuration to judge.
pub struct Scene<'a> {
    /// What is there.
    pub view: &'a View<'a, Member>,
    /// What is pending and worth a look.
    pub waiting: &'a [Waiting<'a, Msg>],
    /// All members.
    pub members: &'a [ActorId],
    /// The deviations.
    pub on: &'a Switches,
}

impl Scene<'_> {
    /// The number of members that a configuration may have: the fewest of those known or on the way.
    pub fn cluster_size(&self) -> usize {
        let states = self.members.iter().filter_map(|m| self.view.state(*m));
        let known = states.map(|m| m.config.len()).filter(|n| *n > 0);
        let coming = self.waiting.iter().filter_map(|w| match w.msg {
            Msg::ChangeConfiguration { members } => Some(members.len()),
            _ => None,
        });
        known.chain(coming).min().unwrap_or(1)
    }

    /// A member's place in a set of members; nothing for others.
    pub fn bit(&self, member: ActorId) -> u64 {
        self.members.iter().position(|m| *m == member).map_or(0, |at| 1 << at)
    }

    /// Members that run.
    pub fn running(&self) -> impl Iterator<Item = (ActorId, &Member)> {
        self.members.iter().filter_map(|m| Some((*m, self.view.state(*m)?)))
    }

    /// Different entries in logs and on the way.
    pub fn entries(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = Vec::new();
        let on_the_way = self.waiting.iter().filter_map(|w| match w.msg {
            Msg::AppendEntries { entries, .. } => Some(&entries[..]),
            _ => None,
        });
        for entry in self.running().map(|(_, m)| &m.log[..]).chain(on_the_way).flatten() {
            if !all.contains(entry) {
                all.push(*entry);
            }
        }
        all
    }

    /// What a member that has no configuration takes until it has one: none that is on its way is the answer of a leader
    /// to its request, which answers an append.
    pub fn configuration(&self, m: &Member, me: ActorId) -> usize {
        if m.role != Role::Init {
            return 0;
        }
        let comes = |w: &Waiting<'_, Msg>| w.to == me && matches!(w.msg, Msg::ChangeConfiguration { .. });
        let asked = |w: &Waiting<'_, Msg>| w.from == me && matches!(w.msg, Msg::RequestConfiguration);
        match () {
            () if self.waiting.iter().any(comes) => 1,
            () if self.waiting.iter().any(asked) => 2,
            () => 3,
        }
    }
}
