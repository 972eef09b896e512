//! What a leader does.

use super::message::{HEARTBEAT_TIMER, Msg};
use super::quorum;
use super::state::{Entry, Role};
use super::step::{Outcome, Step};

impl Step<'_, '_> {
    /// Handles a message as leader.
    pub fn leader(&mut self, msg: &Msg) -> Outcome {
        match *msg {
            Msg::ElectedAsLeader => {
                if self.on.raft58a_late_leader_init {
                    self.init_leader_tables();
                }
                self.replicate()?;
                // Also when a heartbeat of an earlier leadership is still live.
                self.set_heartbeat_timer();
                Ok(None)
            }
            Msg::HeartbeatTimer { .. } => self.replicate().map(|()| None),
            // The heartbeat timer keeps running; a newer request is neither answered nor forwarded.
            Msg::RequestVote { term, .. } | Msg::VoteCandidate { term } | Msg::DeclineCandidate { term }
                if term > self.m.term && !self.on.no_term_checks =>
            {
                Ok(self.step_down(term))
            }
            Msg::ClientMessage { word } => {
                let index = self.m.length() + self.base();
                self.m.push(Entry { word, term: self.m.term, index });
                let me = self.ctx.me();
                *self.m.matched.entry(me, index) = index;
                self.replicate().map(|()| None)
            }
            Msg::AppendEntries { term, .. } if term > self.m.term => Ok(self.end_leadership(term)),
            Msg::AppendEntries { .. } => self.append_to_sender().map(|()| None),
            Msg::AppendRejected { term, .. } if term > self.m.term => Ok(self.end_leadership(term)),
            Msg::AppendRejected { term, index } => self.rejected(term, index),
            Msg::AppendSuccessful { term, index } => self.accepted(term, index),
            Msg::RequestConfiguration => {
                let members = self.m.config.clone();
                self.answer(Msg::ChangeConfiguration { members });
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Sets up what the leader knows of its peers' logs.
    pub fn init_leader_tables(&mut self) {
        let zero_indexed = self.on.raft58b_zero_indexed_log;
        let last_index = self.m.last_index();
        let next = if zero_indexed { last_index } else { self.m.length() + 1 };
        self.m.next.fill(&self.m.config, next);
        self.m.matched.fill(&self.m.config, self.base() - 1);
        if !zero_indexed {
            let me = self.ctx.me();
            *self.m.matched.entry(me, last_index) = last_index;
        }
    }

    fn end_leadership(&mut self, term: i32) -> Option<Role> {
        self.ctx.cancel_timer(HEARTBEAT_TIMER);
        self.step_down(term)
    }

    fn step_down(&mut self, term: i32) -> Option<Role> {
        if !self.on.no_term_checks {
            self.m.term = term;
        }
        if self.on.leader_forgets_votes {
            self.m.votes.clear();
        }
        Some(Role::Follower)
    }

    fn rejected(&mut self, term: i32, index: i32) -> Outcome {
        let sender = self.ctx.sender();
        let zero_indexed = self.on.raft58b_zero_indexed_log;
        if !zero_indexed && term < self.m.term {
            return Ok(None);
        }
        let next = self.m.next.entry(sender, i32::from(!zero_indexed));
        if zero_indexed {
            *next = index.min(*next);
        } else if *next > 1 {
            *next -= 1;
        }
        self.append_to_sender().map(|()| None)
    }

    fn accepted(&mut self, term: i32, index: i32) -> Outcome {
        let base = self.base();
        // Only the one-indexed family looks at the term.
        if base == 1 {
            if term > self.m.term {
                return Ok(self.end_leadership(term));
            }
            if term < self.m.term {
                return Ok(None);
            }
            if index > self.m.last_index() {
                return Err(format!(
                    "assertion failed: a follower's last index {index} is beyond the own {}",
                    self.m.last_index()
                ));
            }
        }
        let sender = self.ctx.sender();
        let next = index.saturating_add(base);
        *self.m.next.entry(sender, next) = next;
        let matched = self.m.matched.entry(sender, base - 1);
        *matched = index.max(*matched);
        self.commit_quorum().map(|()| None)
    }

    /// Commits what the quorum rule allows. That the entry is of the current term is not looked at.
    fn commit_quorum(&mut self) -> Result<(), String> {
        let base = self.base();
        // Match indices move with every answer: most of the time they are few enough for the stack.
        let mut few = [0; 16];
        let mut many = Vec::new();
        let members = self.m.config.len();
        let values = if members <= few.len() {
            &mut few[..members]
        } else {
            many.resize(members, 0);
            &mut many[..]
        };
        let mut known = 0;
        for value in self.m.config.iter().filter_map(|member| self.m.matched.get(*member)) {
            values[known] = value;
            known += 1;
        }
        let values = &mut values[..known];
        let quorum = if self.on.raft42_mode_quorum {
            quorum::mode(values).unwrap_or(base - 1)
        } else if known < members {
            return Err(format!("assertion failed: match indices of {known} of {members} members are known"));
        } else {
            quorum::median(values).unwrap_or(base - 1)
        };
        if quorum > self.m.committed {
            self.m.commit(quorum, base);
            self.m.committed = quorum;
        }
        Ok(())
    }
}
