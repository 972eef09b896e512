//! Heuristic: how far it seems to a leader that fails because its tables are those of an earlier leadership.
//!
//! Lower bounds say no more than is needed on every way, which is little after the first election. This follows the way
//! that such failures take: a leader notes where its peers are, another leader shortens its log, and it is elected again.
//!
//! It is not admissible: on other ways it says too much, so only searches that prove nothing go by it. It is 0 at the
//! violation, as `replay/tests/it/raft_bound.rs` tests.

use super::entries::Count;
use super::scene::{FAR, Scene};
use crate::message::Msg;
use crate::state::{Member, Role};
use demi_replay::model::Waiting;
use demi_replay::names::ActorId;

/// The peer's next index that a log of one entry is too short for.
const BEYOND: i32 = 3;

impl Scene<'_> {
    /// How many deliveries a member seems to be away from failing as a leader.
    pub fn heuristic_failing(&self, member: ActorId) -> usize {
        if self.view.crashed(member) {
            return 0;
        }
        let Some(m) = self.view.state(member) else { return FAR };
        let election = self.election(member, Count::ButFor(member));
        let peers = m.config.iter().filter(|peer| **peer != member);
        let next = peers.filter_map(|peer| m.next.get(*peer)).max().unwrap_or(1);
        if next > m.length() + 1 {
            return election + 1;
        }
        let again = usize::from(m.role == Role::Leader) + self.anew() + 1;
        if next >= BEYOND {
            return self.shorter(member, next - 2) + again;
        }
        let entries = usize::try_from(m.length()).unwrap_or(0);
        let begins = |w: &Waiting<'_, Msg>| w.to == member && matches!(w.msg, Msg::ElectedAsLeader);
        // A leader that has begun hears from a peer; one that is still to begin fills the table in doing so.
        let fills = match m.role {
            Role::Leader if !self.waiting.iter().any(begins) => 2,
            _ => 1,
        };
        let commands = 2_usize.saturating_sub(entries);
        election + commands + fills + self.shorter(member, 1) + 1 + self.anew() + 1
    }

    /// Deliveries until an append leaves a member's log with so many entries at most.
    fn shorter(&self, member: ActorId, most: i32) -> usize {
        let on_the_way = self.waiting.iter().any(|w| match w.msg {
            Msg::AppendEntries { entries, .. } if w.to == member => match entries.first() {
                Some(first) => first.index - 1 + i32::try_from(entries.len()).unwrap_or(i32::MAX) <= most,
                None => false,
            },
            _ => false,
        });
        if on_the_way {
            return 1;
        }
        let others = self.members.iter().filter(|other| **other != member);
        let sends = |other: &ActorId| {
            let m: &Member = self.view.state(*other)?;
            // Its command, or a word of what it has, and the append; a long log is short again after another append.
            let fits = if m.length() <= most { 2 } else { 5 };
            Some(self.election(*other, Count::ButFor(member)).min(FAR) + fits)
        };
        others.filter_map(sends).min().unwrap_or(FAR)
    }

    /// Deliveries of an election from the timer on: the own vote, requests and votes of others.
    pub fn anew(&self) -> usize {
        let majority = self.cluster_size() / 2 + 1;
        1 + majority + 2 * (majority - 1)
    }
}
