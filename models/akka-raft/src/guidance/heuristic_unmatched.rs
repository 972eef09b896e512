//! Heuristic: how far it seems to logs that do not match because a leader skips entries of its own.
//!
//! A zero-indexed leader that sets its tables up late believes that each peer has all of its log but the last entry. So a
//! peer with an empty log is sent the second entry as the first, if the leader had two before it began: two commands of its
//! own while it had not begun, or entries of an earlier leader.
//!
//! It is not admissible: on other ways it says too much, so only searches that prove nothing go by it. It is never below
//! the lower bound, and says no more than 200 deliveries above it, as `replay/tests/it/raft_bound.rs` tests along random
//! walks.

use super::entries::Count;
use super::scene::{FAR, Scene};
use crate::message::Msg;
use crate::state::{Member, Role};
use demi_replay::model::Waiting;
use demi_replay::names::ActorId;

/// Entries that a leader has when it begins, of which it sends the last.
const SKIPPED: i32 = 2;
/// What it costs that a member takes a log from its beginning that was to have a gap.
const SPOILED: usize = 16;

impl Scene<'_> {
    /// How many deliveries two members seem to be away from logs that do not match.
    pub fn heuristic_unmatched(&self, a: ActorId, b: ActorId) -> usize {
        let least = self.logs(a, b, 2);
        let missing = |gapped: ActorId, other: ActorId| {
            let (Some(m), Some(whole)) = (self.view.state(gapped), self.view.state(other)) else {
                return FAR;
            };
            let skips = |(id, leader): (ActorId, &Member)| {
                // The other has what the leader has, or is told.
                let told = usize::from(id != other && whole.log.is_empty());
                self.skips((id, leader), (gapped, m)) + told
            };
            let others = self.running().filter(|(id, _)| *id != gapped);
            let on_the_way = self.gap_coming(gapped, m) + usize::from(whole.log.is_empty());
            others.map(skips).min().unwrap_or(FAR).min(on_the_way)
        };
        missing(a, b).min(missing(b, a)).max(least)
    }

    /// Deliveries until an append that is on its way leaves a gap in a log.
    fn gap_coming(&self, to: ActorId, m: &Member) -> usize {
        let gap = |w: &Waiting<'_, Msg>| match w.msg {
            Msg::AppendEntries { term, entries, .. } if w.to == to => {
                *term >= m.term && entries.first().is_some_and(|first| first.index > m.length())
            }
            _ => false,
        };
        let Some(at) = self.waiting.iter().position(gap) else { return FAR };
        let before = self.appends((self.waiting[at].from, to), at);
        1 + self.listens(m, to) + before.clone().count() + self.spoiled(before, m)
    }

    /// Appends of a channel among the first so many messages.
    fn appends(&self, (from, to): (ActorId, ActorId), first: usize) -> impl Iterator<Item = &Msg> + Clone {
        let here = move |w: &&Waiting<'_, Msg>| w.to == to && w.from == from;
        let all = self.waiting[..first].iter().filter(here).map(|w| w.msg);
        all.filter(|msg| matches!(msg, Msg::AppendEntries { .. }))
    }

    /// What it costs that a member seems to take one of these, none of which leaves a gap.
    fn spoiled<'m>(&self, mut appends: impl Iterator<Item = &'m Msg>, m: &Member) -> usize {
        let taken = |msg: &Msg| match msg {
            Msg::AppendEntries { term, .. } => m.role != Role::Init && *term >= m.term,
            _ => false,
        };
        if appends.any(taken) { SPOILED } else { 0 }
    }

    /// What it takes until a member takes an append.
    fn listens(&self, m: &Member, me: ActorId) -> usize {
        self.configuration(m, me) + usize::from(m.role == Role::Candidate)
    }

    /// Deliveries until a leader has begun with entries that it skips, and the other has taken what it sends then.
    fn skips(&self, (id, leader): (ActorId, &Member), (to, m): (ActorId, &Member)) -> usize {
        // They come first, and the other must not take them.
        let queued = self.appends((id, to), self.waiting.len());
        let before = queued.clone().count() + self.spoiled(queued, m);
        let commands = usize::try_from(SKIPPED - leader.length()).unwrap_or(0);
        // Its own commands are sent from the beginning: only who has no configuration lets them go by.
        let majority = self.cluster_size() / 2 + 1;
        let spared = m.role == Role::Init && self.running().count() > majority;
        let own = 2 * commands + if commands > 0 && !spared { SPOILED } else { 0 };
        // Whoever votes in a later term is brought to it first.
        let again = self.anew() + majority - 1;
        let last = 2 + before + self.listens(m, to) + usize::from(!m.log.is_empty()) * SPOILED;
        let (election, voters) = self.own_election(leader, id);
        match leader.role {
            Role::Leader => {
                let begins = |w: &Waiting<'_, Msg>| w.to == id && matches!(w.msg, Msg::ElectedAsLeader);
                let skipped = || leader.next.get(to).is_some_and(|next| next > m.length());
                match leader.term >= m.term {
                    true if self.waiting.iter().any(begins) => own + last,
                    true if skipped() => last,
                    _ => commands + 1 + again + last,
                }
            }
            _ if commands == 0 => election + voters + last,
            _ => {
                let by_itself = election + voters + own;
                by_itself.min(self.filled((id, leader), to) + election.max(again)) + last
            }
        }
    }

    /// Deliveries until a member has taken enough entries of another leader.
    fn filled(&self, (id, m): (ActorId, &Member), gapped: ActorId) -> usize {
        let enough = |w: &Waiting<'_, Msg>| match w.msg {
            Msg::AppendEntries { term, entries, .. } if w.to == id => {
                *term >= m.term && entries.last().is_some_and(|last| last.index + 1 >= SKIPPED)
            }
            _ => false,
        };
        let takes = self.listens(m, id) + 1;
        if let Some(at) = self.waiting.iter().position(enough) {
            return takes + self.appends((self.waiting[at].from, id), at).count();
        }
        let by = |(other, leader): (ActorId, &Member)| {
            let commands = usize::try_from(SKIPPED - leader.length()).unwrap_or(0);
            self.election(other, Count::ButFor(gapped)) + commands + takes
        };
        let others = self.running().filter(|(other, _)| *other != id);
        others.map(by).min().unwrap_or(FAR)
    }
}
