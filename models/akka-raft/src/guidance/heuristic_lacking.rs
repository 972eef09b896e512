//! Heuristic: how far it seems to a leader that lacks what another has committed.
//!
//! The lower bound counts what every way has in common. Two elections, a command, an append and its answer are on the
//! usual way: here both elections are counted whole, with voters who would vote as things stand. A voter whose log is newer
//! would not, nor one that has voted, and a leader hears from no follower that is in a later term.
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

/// What it costs a candidate or leader to lose an entry: it steps down, and is elected again.
const LOSS: usize = 4;
/// What it costs a candidate that a vote it needs is not to be had.
const RELUCTANCE: usize = 3;

impl Scene<'_> {
    /// How many deliveries a member seems to be away from being a leader that lacks what another has committed.
    pub fn heuristic_lacking(&self, leader: ActorId) -> usize {
        let least = self.lacking(leader);
        let Some(m) = self.view.state(leader).filter(|_| !self.view.crashed(leader)) else { return least };
        let base = i32::from(!self.on.raft58b_zero_indexed_log);
        let (mut own, for_own) = self.own_election(m, leader);
        // Who has all entries there are lacks none until it loses one.
        let entries = self.entries();
        if !entries.is_empty() && entries.iter().all(|entry| m.log.contains(entry)) {
            own += if m.role == Role::Follower { 1 } else { LOSS };
        }
        if self.running().any(|(_, m)| m.committed >= base) {
            return (own + for_own).max(least);
        }
        // A voter's configuration serves both elections.
        let told = |id| {
            let terms = self.election(id, Count::Terms);
            (terms, self.election(id, Count::ButFor(leader)).saturating_sub(terms))
        };
        let by = |(id, m): (ActorId, &Member)| {
            let (command, (election, configurations)) = (usize::from(m.log.is_empty()), told(id));
            election + configurations.max(for_own) + command + self.commit(id) + self.back(id, m, leader)
        };
        let others = self.running().filter(|(id, _)| *id != leader);
        let by_another = own.saturating_add(others.map(by).min().unwrap_or(FAR));
        let by_itself = by((leader, m)) + self.anew();
        by_another.min(by_itself).max(least)
    }

    /// What a member seems to take until it is leader, from voters who would vote for it as things stand; and what of it
    /// are configurations of these.
    pub fn own_election(&self, m: &Member, me: ActorId) -> (usize, usize) {
        let majority = self.cluster_size() / 2 + 1;
        let others = majority.saturating_sub(1);
        let again = || {
            let before = usize::from(m.role == Role::Leader) + self.configuration(m, me);
            let (votes, configurations) = self.votes(m, me, others, None);
            (before + 2 + others + votes, configurations)
        };
        match m.role {
            Role::Leader => (0, 0),
            Role::Follower | Role::Init => again(),
            Role::Candidate => {
                let by_itself = usize::from(m.vote(m.term).is_none() && !m.tally.voters.contains(&me));
                let missing = majority.saturating_sub(m.tally.count as usize + by_itself);
                let (votes, configurations) = self.votes(m, me, missing, Some(m.term));
                let now = (by_itself + missing + votes, configurations);
                now.min(again())
            }
        }
    }

    /// What it takes until so many others have voted for a member, in its present term or in a later one; and what of it
    /// are their configurations, which come on top.
    fn votes(&self, m: &Member, me: ActorId, wanted: usize, now: Option<i32>) -> (usize, usize) {
        let mut left = wanted;
        let mut costs = Vec::new();
        for (id, voter) in self.running().filter(|(id, _)| *id != me) {
            if now.is_some() && m.tally.voters.contains(&id) {
                continue;
            }
            let coming = |w: &Waiting<'_, Msg>| match w.msg {
                Msg::VoteCandidate { term } => w.to == me && w.from == id && Some(*term) == now,
                _ => false,
            };
            if self.waiting.iter().any(coming) {
                left = left.saturating_sub(1);
                continue;
            }
            let newer = (voter.last_term(), voter.last_index()) > (m.last_term(), m.last_index());
            let gone = |term| voter.term > term || voter.vote(term).is_some_and(|given| given != me);
            let unwilling = newer && !self.on.vote_ignores_log || now.is_some_and(gone);
            if !unwilling || self.on.no_term_checks {
                let raised = usize::from(now != Some(voter.term) && !self.on.no_term_checks);
                costs.push((self.configuration(voter, id) + raised, self.configuration(voter, id)));
            }
        }
        costs.sort_unstable();
        let lacking = left.saturating_sub(costs.len());
        let chosen = &costs[..left.min(costs.len())];
        let configurations = chosen.iter().map(|c| c.1).sum();
        let all: usize = chosen.iter().map(|c| c.0).sum();
        (left + all - configurations + RELUCTANCE * lacking, configurations)
    }

    /// What it takes until a follower listens to a leader again, if all of them are in later terms and no answer comes: an
    /// append of the other leader, who has begun.
    fn back(&self, leader: ActorId, m: &Member, other: ActorId) -> usize {
        let answer = |w: &Waiting<'_, Msg>| w.to == leader && matches!(w.msg, Msg::AppendSuccessful { .. });
        if m.role != Role::Leader || self.waiting.iter().any(answer) {
            return 0;
        }
        let mut others = self.running().filter(|(id, _)| *id != leader && *id != other);
        if others.any(|(_, other)| other.term <= m.term) {
            return 0;
        }
        let begins = |w: &Waiting<'_, Msg>| w.to == other && matches!(w.msg, Msg::ElectedAsLeader);
        let has_begun = self.view.state(other).is_some_and(|m| m.role == Role::Leader);
        1 + usize::from(!has_begun || self.waiting.iter().any(begins))
    }
}
