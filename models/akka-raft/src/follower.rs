//! What a follower does.

use super::message::Msg;
use super::state::{Entry, Role};
use super::step::{Outcome, Step};
use demi_replay::names::ActorId;

impl Step<'_, '_> {
    /// Handles a message as follower.
    pub fn follower(&mut self, msg: &Msg) -> Outcome {
        match msg {
            Msg::RequestVote { term, candidate, last_term, last_index } => {
                self.follower_asked(msg, *term, *candidate, (*last_term, *last_index));
                Ok(None)
            }
            Msg::AppendEntries { term, prev_term, prev_index, entries, commit } => {
                if self.on.raft58b_zero_indexed_log {
                    self.append_zero_indexed(*term, entries, *commit);
                } else {
                    self.append_one_indexed(*term, (*prev_term, *prev_index), entries, *commit);
                }
                Ok(None)
            }
            Msg::ElectionTimer { .. } if self.m.config.is_empty() => {
                self.reset_election_timer();
                Ok(None)
            }
            Msg::ElectionTimer { .. } => {
                self.use_generation();
                self.m.term += 1;
                self.m.tally.clear();
                Ok(Some(Role::Candidate))
            }
            _ => Ok(None),
        }
    }

    fn follower_asked(&mut self, msg: &Msg, term: i32, candidate: ActorId, last: (i32, i32)) {
        let own = self.m.term;
        let unchecked = self.on.no_term_checks;
        if term > own && !unchecked {
            self.m.term = term;
            if !self.on.follower_drops_newer_rv {
                self.ctx.forward(msg.clone());
            }
        } else if (term == own || (unchecked && term > own)) && self.may_vote(term, candidate) {
            if !self.on.vote_keeps_timer {
                self.reset_election_timer();
            }
            if !self.on.vote_ignores_log && last < (self.m.last_term(), self.m.last_index()) {
                self.answer(Msg::DeclineCandidate { term: own });
            } else {
                self.answer(Msg::VoteCandidate { term: own });
                self.m.set_vote(term, candidate);
            }
        } else {
            self.answer(Msg::DeclineCandidate { term: own });
        }
    }

    fn append_one_indexed(&mut self, term: i32, prev: (i32, i32), entries: &[Entry], commit: i32) {
        let (prev_term, prev_index) = prev;
        let position = usize::try_from(i64::from(prev_index) - 1).ok();
        let fits = prev == (0, 0)
            || position.and_then(|at| self.m.log.get(at)).is_some_and(|entry| entry.term == prev_term);
        if !fits || term < self.m.term {
            let term = self.m.term;
            self.answer(Msg::AppendRejected { term, index: 0 });
        } else {
            self.take(term, entries, commit);
        }
    }

    /// This family never looks at the previous entry, and an empty append only keeps the follower quiet.
    fn append_zero_indexed(&mut self, term: i32, entries: &[Entry], commit: i32) {
        if term < self.m.term {
            if !entries.is_empty() {
                let (term, index) = (self.m.term, self.m.last_index());
                self.answer(Msg::AppendRejected { term, index });
            }
        } else if entries.is_empty() {
            self.reset_election_timer();
        } else {
            self.take(term, entries, commit);
        }
    }

    fn take(&mut self, term: i32, entries: &[Entry], commit: i32) {
        let base = self.base();
        self.m.append(entries, base, self.on.raft66_truncate);
        let last_term = self.m.last_term();
        // The answer speaks of the whole log, also after an empty append.
        self.answer(Msg::AppendSuccessful { term: last_term, index: self.m.last_index() });
        self.m.commit(commit, base);
        // The deviation may lower the term.
        self.m.term = if self.on.term_from_log { last_term } else { self.m.term.max(term) };
        self.reset_election_timer();
    }
}
