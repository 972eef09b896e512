//! What a candidate does.

use super::message::Msg;
use super::state::Role;
use super::step::{Outcome, Step};
use demi_replay::names::ActorId;

impl Step<'_, '_> {
    /// Handles a message as candidate.
    pub fn candidate(&mut self, msg: &Msg) -> Outcome {
        match *msg {
            Msg::BeginElection => Ok(self.ask_for_votes()),
            Msg::RequestVote { term, candidate, .. } => Ok(self.candidate_asked(msg, term, candidate)),
            Msg::VoteCandidate { term } => Ok(self.voted_for(term)),
            Msg::DeclineCandidate { term } if term > self.m.term && !self.on.newer_decline_ignored => {
                self.m.term = term;
                Ok(Some(Role::Follower))
            }
            // The own term is kept: the follower handles the message again.
            Msg::AppendEntries { term, .. } if term >= self.m.term => {
                self.ctx.forward(msg.clone());
                Ok(Some(Role::Follower))
            }
            Msg::ElectionTimer { .. } if self.m.config.len() > 1 => {
                let me = self.ctx.me();
                self.ctx.send(me, Msg::BeginElection);
                if !self.on.candidate_timeout_no_rearm {
                    self.reset_election_timer();
                }
                self.m.term += 1;
                self.m.tally.clear();
                if self.on.raft56_forget_votes {
                    self.m.votes.clear();
                }
                Ok(None)
            }
            Msg::ElectionTimer { .. } => Ok(Some(Role::Follower)),
            _ => Ok(None),
        }
    }

    fn ask_for_votes(&mut self) -> Option<Role> {
        if self.m.config.is_empty() {
            return Some(Role::Follower);
        }
        let me = self.ctx.me();
        let (term, last_term, last_index) = (self.m.term, self.m.last_term(), self.m.last_index());
        for &peer in self.m.config.iter().filter(|peer| **peer != me) {
            self.ctx.send(peer, Msg::RequestVote { term, candidate: me, last_term, last_index });
        }
        // One that has voted for another in this term still asks, but does not count itself.
        if self.on.no_term_checks || self.m.vote(term).is_none() {
            self.count_vote(me);
            self.m.set_vote(term, me);
        }
        None
    }

    fn candidate_asked(&mut self, msg: &Msg, term: i32, candidate: ActorId) -> Option<Role> {
        let own = self.m.term;
        if term < own {
            let echo = self.on.stale_decline_echoes_term || self.on.no_term_checks;
            let echoed = if echo { term } else { own };
            self.answer(Msg::DeclineCandidate { term: echoed });
            return None;
        }
        if term > own && !self.on.no_term_checks {
            if !self.on.candidate_drops_newer_rv {
                self.ctx.forward(msg.clone());
            }
            self.m.term = term;
            return Some(Role::Follower);
        }
        if !self.may_vote(term, candidate) {
            self.answer(Msg::DeclineCandidate { term });
            return None;
        }
        // Without term checks candidates and followers treat requests alike, so they vote in place.
        if self.on.candidate_votes_in_place || self.on.no_term_checks {
            let sender = self.ctx.sender();
            self.answer(Msg::VoteCandidate { term: own });
            self.m.set_vote(term, sender);
            return None;
        }
        self.ctx.forward(msg.clone());
        Some(Role::Follower)
    }

    fn voted_for(&mut self, term: i32) -> Option<Role> {
        let own = self.m.term;
        if !self.on.no_term_checks {
            if term < own && !self.on.raft46_stale_votes {
                self.answer(Msg::DeclineCandidate { term: own });
                return None;
            }
            if term > own {
                self.m.term = term;
                return Some(Role::Follower);
            }
        }
        let voter = self.ctx.sender();
        self.count_vote(voter);
        if self.m.tally.count as usize * 2 <= self.m.config.len() {
            return None;
        }
        if !self.on.raft58a_late_leader_init {
            self.init_leader_tables();
        }
        Some(Role::Leader)
    }

    fn count_vote(&mut self, voter: ActorId) {
        self.m.tally.count(voter, !self.on.raft45_duplicate_votes);
    }
}
