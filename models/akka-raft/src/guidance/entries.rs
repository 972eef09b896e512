//! Lower bounds for violations that need entries: logs that do not match, a leader that lacks what is committed, a leader
//! that fails.
//!
//! They are admissible. Each violation needs a leader, so what [`Scene::ways`] says of an election comes first. What
//! follows are deliveries of other kinds (commands, appends, answers) or at other members, so they add up. Where one
//! delivery might serve two parts of the sum, the part is left out.
//!
//! `replay/tests/it/raft_bound.rs` tests them as it tests the bound for two leaders: along random walks they fall by at
//! most one a delivery.

use super::scene::{FAR, Scene};
use super::two_leaders::{Term, Way};
use crate::message::Msg;
use crate::state::{Entry, Role};
use demi_replay::model::Waiting;
use demi_replay::names::{ActorId, OUTSIDE};

/// What of an election is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Everything, but for what this member needs before it votes.
    ButFor(ActorId),
    /// Configurations of voters, not what brings them to the term: other deliveries may do that.
    Configurations(ActorId),
    /// What the member itself takes, and the requests that its voters answer.
    Votes,
    /// The same, and what brings voters to the term, not their configurations.
    Terms,
}

impl Scene<'_> {
    /// What is missing at least until a member is leader; 0 if it is.
    pub fn election(&self, member: ActorId, count: Count) -> usize {
        let Some(m) = self.view.state(member) else { return FAR };
        if m.role == Role::Leader {
            return 0;
        }
        let ways = self.ways(m, member, member, self.cluster_size());
        let cost = |way: &Way| {
            let fits = |term| way.term.may_be(term);
            let (missing, voted) = self.missing(way, member, fits);
            let mut before: Vec<usize> = self
                .running()
                .filter(|(id, _)| *id != member && self.bit(*id) & voted == 0)
                .map(|(id, voter)| match count {
                    Count::ButFor(free) if id != free => self.before_a_vote(voter, id, fits),
                    Count::Terms => self.before_a_vote(voter, id, fits) - self.configuration(voter, id),
                    Count::Configurations(free) if id != free => self.configuration(voter, id),
                    _ => 0,
                })
                .collect();
            before.sort_unstable();
            // Where votes may be repeated one voter is enough.
            let voters = if self.on.raft45_duplicate_votes { missing.min(1) } else { missing };
            // The append that throws it back may be counted already as one that is answered.
            let counted = usize::from(count == Count::Votes && way.term == Term::Any);
            way.own - counted + missing + before.iter().take(voters).sum::<usize>()
        };
        ways.iter().flatten().map(cost).min().unwrap_or(FAR)
    }

    /// Of so many votes, how many are not on the way from different members.
    fn votes_missing(&self, member: ActorId, votes: usize) -> usize {
        let coming = self.waiting.iter().filter(|w| w.to == member);
        let mut from: Vec<ActorId> =
            coming.filter(|w| matches!(w.msg, Msg::VoteCandidate { .. })).map(|w| w.from).collect();
        if !self.on.raft45_duplicate_votes {
            from.sort_unstable();
            from.dedup();
        }
        votes.saturating_sub(from.len())
    }

    /// How an election is counted beside what brings entries about.
    fn counted(&self, entries: &[Entry], free: ActorId) -> Count {
        // An append sets the term too, and so might an empty one.
        match entries.is_empty() && !self.on.raft58a_late_leader_init {
            true => Count::ButFor(free),
            false => Count::Configurations(free),
        }
    }

    /// What is missing at least until two logs do not match, made of so many different entries.
    pub fn logs(&self, a: ActorId, b: ActorId, different: usize) -> usize {
        let (Some(first), Some(second)) = (self.view.state(a), self.view.state(b)) else { return FAR };
        let both = [first, second];
        let entries = self.entries();
        let commands = different.saturating_sub(entries.len());
        let empty = both.iter().filter(|m| m.log.is_empty()).count();
        let leaders = self.running().filter(|(_, m)| m.role == Role::Leader).count();
        let mut filled = both.iter().filter(|m| m.log.is_empty() && m.role == Role::Leader).count();
        let mut leader = 0;
        if commands > 0 && leaders == 0 {
            // Nobody is spared by being of the pair: nothing after this counts terms or configurations.
            let count = if entries.is_empty() { Count::ButFor(OUTSIDE) } else { Count::Votes };
            leader = self.running().map(|(id, _)| self.election(id, count)).min().unwrap_or(FAR);
            filled = 1;
        }
        // A command fills the log of the leader who takes it; another leader costs no less than an append.
        leader + commands + empty.saturating_sub(filled.min(commands))
    }

    /// What is missing at least until a leader lacks what is committed.
    pub fn lacking(&self, leader: ActorId) -> usize {
        let Some(m) = self.view.state(leader) else { return FAR };
        let base = i32::from(!self.on.raft58b_zero_indexed_log);
        // Also of a log that it does not have yet: then it commits what comes at once.
        let committed = self.running().any(|(_, m)| m.committed >= base);
        let entries = self.entries();
        let command = usize::from(entries.is_empty());
        let majority = self.cluster_size() / 2 + 1;
        // A leader is elected anew after it has stepped down; what votes are on the way may still count then.
        let anew = match (self.on.no_term_checks, m.role) {
            (true, _) => 2,
            (false, Role::Leader) => 2 + majority + self.votes_missing(leader, majority.saturating_sub(1)),
            (false, _) => 2 + majority,
        };
        let others = || self.running().filter(|(id, _)| *id != leader);
        // An entry that it may lack is there, or another leader makes one.
        let foreign = |lacks: &dyn Fn(&Entry) -> bool| match entries.iter().any(lacks) {
            true => 0,
            // An append may take it from the log of a follower.
            false if m.role != Role::Leader && !entries.is_empty() => 1,
            false => others().map(|(id, _)| self.election(id, Count::Votes)).min().unwrap_or(FAR) + 1,
        };
        if m.role != Role::Leader {
            let own = self.election(leader, Count::Votes);
            if committed {
                return own;
            }
            let count = self.counted(&entries, leader);
            let of = |id| self.election(id, count) + self.commit(id);
            let by_another = others().map(|(id, _)| of(id)).min().unwrap_or(FAR);
            let by_itself = of(leader) + anew.min(foreign(&|e| !m.log.contains(e)).max(1));
            return (by_another + own).min(by_itself) + command;
        }
        let lacks = |entry: &Entry| entry.term < m.term && !m.log.contains(entry);
        let count = self.counted(&entries, leader);
        let commit_by_another = || {
            let of = |id| self.election(id, count) + self.commit(id);
            others().map(|(id, _)| of(id)).min().unwrap_or(FAR)
        };
        // It commits itself, then is elected again, or a follower commits what it has with the next append.
        let missing = foreign(&lacks);
        let by_itself = anew.min(missing.max(1));
        match committed {
            true => by_itself,
            false => commit_by_another()
                .saturating_add(missing.min(1))
                .min(self.commit(leader) + command + by_itself),
        }
    }

    /// Appends and answers that are missing at least until a member commits something as leader.
    pub fn commit(&self, member: ActorId) -> usize {
        let Some(m) = self.view.state(member) else { return FAR };
        let base = i32::from(!self.on.raft58b_zero_indexed_log);
        // With tables that are set up late one value may be all there is.
        let useful = |index: i32| index >= base || self.on.raft58a_late_leader_init;
        let known = |id: ActorId| m.matched.get(id).is_some_and(|index| index >= base);
        let answers = if self.on.raft42_mode_quorum {
            1
        } else {
            let enough = self.members.iter().filter(|id| **id != member && known(**id)).count();
            (self.cluster_size() / 2).saturating_sub(enough)
        };
        if answers == 0 {
            // Any answer makes it count.
            let answer =
                |w: &Waiting<'_, Msg>| w.to == member && matches!(w.msg, Msg::AppendSuccessful { .. });
            return 1 + usize::from(!self.waiting.iter().any(answer));
        }
        let mut on_the_way: Vec<ActorId> = self
            .waiting
            .iter()
            .filter(|w| {
                w.to == member && matches!(w.msg, Msg::AppendSuccessful { index, .. } if useful(*index))
            })
            .map(|w| w.from)
            .filter(|from| self.on.raft42_mode_quorum || !known(*from))
            .collect();
        on_the_way.sort_unstable();
        on_the_way.dedup();
        answers + answers.saturating_sub(on_the_way.len())
    }
}
