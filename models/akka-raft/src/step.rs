//! One delivery: what happens before and after a role's handler, and what handlers have in common.

use std::sync::Arc;

use super::config::Switches;
use super::message::{ELECTION_TIMER, HEARTBEAT_TIMER, Msg, STATE_TIMEOUT};
use super::state::{Entry, Member, Role};
use demi_replay::model::{Ctx, Timer};
use demi_replay::names::{ActorId, OUTSIDE};

/// What a handler ends with: the role the member takes, if the handler says, or why it failed.
pub type Outcome = Result<Option<Role>, String>;

/// A handler at work.
pub struct Step<'a, 'c> {
    /// Deviations from the repaired program.
    pub on: &'a Switches,
    /// The member's variables.
    pub m: &'a mut Member,
    /// What the simulator does for the handler.
    pub ctx: &'a mut Ctx<'c, Msg>,
}

impl Step<'_, '_> {
    /// Handles a delivered message to the end.
    pub fn run(mut self, msg: &Msg) {
        // Nobody reacts to a state timeout; it does not even count as received.
        if matches!(msg, Msg::StateTimeout { .. }) {
            return;
        }
        // It is cancelled by whatever comes next, also after a restart, which it outlives.
        self.ctx.cancel_timer(STATE_TIMEOUT);
        self.m.events += 1;
        let before = self.m.role;
        let outcome = match before {
            Role::Init => self.init(msg),
            Role::Follower => self.follower(msg),
            Role::Candidate => self.candidate(msg),
            Role::Leader => self.leader(msg),
        };
        match outcome {
            Ok(Some(role)) if role != before => self.enter(before, role),
            Ok(_) => {}
            Err(reason) => self.ctx.crash(reason),
        }
    }

    /// What a change of role brings with it, after everything the handler did.
    fn enter(&mut self, before: Role, role: Role) {
        self.m.role = role;
        if before == Role::Candidate {
            self.m.tally.clear();
        }
        let me = self.ctx.me();
        match (before, role) {
            (_, Role::Candidate) => {
                self.ctx.send(me, Msg::BeginElection);
                self.reset_election_timer();
                let generation = self.m.events;
                let timer = Timer::named(STATE_TIMEOUT).surviving();
                self.ctx.set_timer(timer, Msg::StateTimeout { generation });
            }
            (_, Role::Leader) => {
                self.ctx.send(me, Msg::ElectedAsLeader);
                self.ctx.cancel_timer(ELECTION_TIMER);
            }
            (_, Role::Follower) => {
                if before == Role::Candidate && self.on.raft56_forget_votes {
                    self.m.votes.clear();
                }
                self.reset_election_timer();
            }
            (_, Role::Init) => {}
        }
    }

    fn init(&mut self, msg: &Msg) -> Outcome {
        match msg {
            Msg::ChangeConfiguration { members } => {
                self.m.config = self.by_name(members);
                self.use_generation();
                Ok(Some(Role::Follower))
            }
            Msg::AppendEntries { .. } => {
                self.answer(Msg::RequestConfiguration);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The members in the order in which they are addressed; nothing is copied if they are in it already.
    fn by_name(&mut self, members: &Arc<[ActorId]>) -> Arc<[ActorId]> {
        let names = self.ctx.names();
        if members.is_sorted_by(|a, b| names.get(*a) < names.get(*b)) {
            return members.clone();
        }
        let mut sorted = members.to_vec();
        sorted.sort_by(|a, b| names.get(*a).cmp(names.get(*b)));
        sorted.dedup();
        sorted.into()
    }

    /// The index of the first entry of a log.
    pub fn base(&self) -> i32 {
        i32::from(!self.on.raft58b_zero_indexed_log)
    }

    /// Answers the sender, unless it is outside: what is sent there leaves the system.
    pub fn answer(&mut self, msg: Msg) {
        let sender = self.ctx.sender();
        if sender != OUTSIDE {
            self.ctx.send(sender, msg);
        }
    }

    /// Uses up a timer generation for a timer that is replaced within the same step and so never seen.
    pub fn use_generation(&mut self) -> u32 {
        let generation = self.m.timer_gen;
        self.m.timer_gen += 1;
        generation
    }

    /// Arms the election timer anew.
    pub fn reset_election_timer(&mut self) {
        let generation = self.use_generation();
        self.ctx.set_timer(ELECTION_TIMER, Msg::ElectionTimer { generation });
    }

    /// Arms the heartbeat timer anew.
    pub fn set_heartbeat_timer(&mut self) {
        let generation = self.use_generation();
        self.ctx.set_timer(Timer::named(HEARTBEAT_TIMER).repeating(), Msg::HeartbeatTimer { generation });
    }

    /// Whether a member that has not voted for another in `term` may vote for `candidate`.
    pub fn may_vote(&self, term: i32, candidate: ActorId) -> bool {
        match self.m.vote(term) {
            None => true,
            Some(other) => other == candidate && !self.on.never_repeats_vote,
        }
    }

    /// Sends every peer what it lacks.
    pub fn replicate(&mut self) -> Result<(), String> {
        let me = self.ctx.me();
        // Peers mostly lack the same: they share one list.
        let mut shared = None;
        for k in 0..self.m.config.len() {
            let peer = self.m.config[k];
            if peer != me {
                self.send_append(peer, &mut shared)?;
            }
        }
        Ok(())
    }

    /// Sends the sender of the message being handled what it lacks.
    pub fn append_to_sender(&mut self) -> Result<(), String> {
        match self.ctx.sender() {
            OUTSIDE => Ok(()),
            sender => self.send_append(sender, &mut None),
        }
    }

    fn send_append(&mut self, peer: ActorId, shared: &mut Option<(i32, Arc<[Entry]>)>) -> Result<(), String> {
        let base = self.base();
        let next = *self.m.next.entry(peer, base);
        if base == 1 {
            if next > self.m.length() + 1 {
                return Err(format!("fromIndex > nextIndex: {next} > {}", self.m.length() + 1));
            }
            if next < 1 {
                return Err(format!("assertion failed: entries are asked for from index {next}"));
            }
        }
        let entries = match shared {
            Some((from, entries)) if *from == next => entries.clone(),
            _ => {
                let entries: Arc<[Entry]> = match self.m.batch(next - base) {
                    [] => Arc::default(),
                    batch => batch.into(),
                };
                *shared = Some((next, entries.clone()));
                entries
            }
        };
        let (prev_term, prev_index) = match (entries.first(), base) {
            // The zero-indexed family sends constants with an empty append.
            (None, 0) => (1, 1),
            (first, _) => {
                let prev = if base == 1 { next - 1 } else { first.map_or(0, |entry| entry.index - 1) }.max(0);
                let term = self.m.term_at(prev);
                (term.ok_or_else(|| format!("no entry carries the previous index {prev}"))?, prev)
            }
        };
        let (term, commit) = (self.m.term, self.m.committed);
        self.ctx.send(peer, Msg::AppendEntries { term, prev_term, prev_index, entries, commit });
        Ok(())
    }
}
