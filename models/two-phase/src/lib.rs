//! Two-phase commit: a coordinator asks participants to vote and commits only what all of them accept.
//!
//! A participant that refuses aborts at once. The switch `commit_on_timeout` is a bug: when votes are late the
//! coordinator counts them as yes. Repaired, it aborts.

use std::collections::{BTreeMap, VecDeque};

use demi_schemas::event::TimerInfo;
use demi_schemas::{Known, Scenario, ScenarioError};
use serde_json::{Value, json};

use demi_replay::model::{Ctx, ExternalMessage, Guidance, Logs, Model, Proposal, View, Violation, Workload};
use demi_replay::names::{ActorId, Names};

const TIMEOUT: &str = "vote-timeout";

/// The model.
#[derive(Clone, Debug)]
pub struct TwoPhase {
    actors: Vec<ActorId>,
    commit_on_timeout: bool,
}

/// What is sent: a transaction's number, then the participant that will vote no, or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A client asks for a transaction.
    Begin(u64, Option<ActorId>),
    /// The coordinator asks for a vote.
    Prepare(u64, Option<ActorId>),
    /// A participant answers: yes or no.
    Vote(u64, bool),
    /// The coordinator has decided: commit or abort.
    Decide(u64, bool),
    /// Votes are late.
    Timeout(u64),
}

/// State of the coordinator or of a participant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    waiting: VecDeque<(u64, Option<ActorId>)>,
    open: Option<u64>,
    votes: Vec<ActorId>,
    decided: BTreeMap<u64, bool>,
}

impl TwoPhase {
    /// The model as the scenario configures it.
    ///
    /// # Errors
    /// When a switch, invariant, setting or payload name is unknown or there are no participants.
    pub fn new(scenario: &Scenario, names: &mut Names) -> Result<Self, ScenarioError> {
        Known { switches: &["commit_on_timeout"], invariants: &["Atomicity"], ..Known::default() }
            .check(scenario)?;
        let members = scenario.members.unwrap_or(3);
        if !(1..=1000).contains(&members) {
            return Err(ScenarioError::Value(format!("members must be from 1 to 1000, got {members}")));
        }
        let mut actors = vec![names.id("coordinator")];
        actors.extend((1..=members).map(|n| names.id(&format!("participant-{n}"))));
        let commit_on_timeout = scenario.switches.get("commit_on_timeout").copied().unwrap_or(false);
        Ok(TwoPhase { actors, commit_on_timeout })
    }

    /// Opens the next transaction, if none is open.
    fn next(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.open.is_none()
            && let Some((tx, refuses)) = state.waiting.pop_front()
        {
            state.open = Some(tx);
            self.actors[1..].iter().for_each(|&p| ctx.send(p, Msg::Prepare(tx, refuses)));
            ctx.set_timer(TIMEOUT, Msg::Timeout(tx));
        }
    }

    fn decide(&self, state: &mut State, commit: bool, ctx: &mut Ctx<'_, Msg>) {
        if let Some(tx) = state.open.take() {
            state.votes.clear();
            ctx.cancel_timer(TIMEOUT);
            self.actors[1..].iter().for_each(|&p| ctx.send(p, Msg::Decide(tx, commit)));
            self.next(state, ctx);
        }
    }
}

impl Model for TwoPhase {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match *msg {
            Msg::Begin(tx, refuses) => {
                state.waiting.push_back((tx, refuses));
                self.next(state, ctx);
            }
            Msg::Prepare(tx, refuses) => {
                let yes = refuses != Some(ctx.me());
                if !yes {
                    state.decided.insert(tx, false);
                }
                ctx.send(self.actors[0], Msg::Vote(tx, yes));
            }
            Msg::Vote(tx, yes) if state.open == Some(tx) => {
                state.votes.push(ctx.sender());
                if !yes || state.votes.len() == self.actors.len() - 1 {
                    self.decide(state, yes, ctx);
                }
            }
            Msg::Vote(..) => {}
            Msg::Decide(tx, commit) => {
                state.decided.entry(tx).or_insert(commit);
            }
            Msg::Timeout(_) => self.decide(state, self.commit_on_timeout, ctx),
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let mut outcomes: BTreeMap<u64, [Vec<ActorId>; 2]> = BTreeMap::new();
        for &p in &self.actors[1..] {
            for (&tx, &commit) in view.state(p).iter().flat_map(|s| &s.decided) {
                outcomes.entry(tx).or_default()[usize::from(commit)].push(p);
            }
        }
        for (tx, [aborted, committed]) in outcomes {
            if !aborted.is_empty() && !committed.is_empty() {
                let mut affected = [aborted, committed].concat();
                affected.sort_unstable();
                found.push(Violation { fingerprint: format!("Atomicity:tx{tx}"), affected });
            }
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for TwoPhase {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Begin(..) => "Begin",
            Msg::Prepare(..) => "Prepare",
            Msg::Vote(..) => "Vote",
            Msg::Decide(..) => "Decide",
            Msg::Timeout(_) => "VoteTimeout",
        };
        name.to_owned()
    }

    fn payload(&self, msg: &Msg, names: &Names) -> String {
        let no = |refuses: Option<ActorId>| refuses.map(|p| format!(",{}", names.get(p))).unwrap_or_default();
        match *msg {
            Msg::Begin(tx, refuses) => format!("Begin(tx{tx}{})", no(refuses)),
            Msg::Prepare(tx, refuses) => format!("Prepare(tx{tx}{})", no(refuses)),
            Msg::Vote(tx, yes) => format!("Vote(tx{tx},{})", if yes { "yes" } else { "no" }),
            Msg::Decide(tx, commit) => format!("Decide(tx{tx},{})", if commit { "commit" } else { "abort" }),
            Msg::Timeout(tx) => format!("VoteTimeout(tx{tx})"),
        }
    }

    fn timer_info(&self, msg: &Msg) -> TimerInfo {
        let message = Some(self.type_name(msg));
        TimerInfo { name: Some(TIMEOUT.into()), message, repeat: Some(false), ..TimerInfo::default() }
    }

    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Msg, String> {
        let bad = || format!("'{}' is not Begin(txN) or Begin(txN,PARTICIPANT)", message.payload);
        let inner =
            message.payload.strip_prefix("Begin(tx").and_then(|p| p.strip_suffix(')')).ok_or_else(bad)?;
        let (tx, refuses) = inner.split_once(',').map_or((inner, None), |(tx, who)| (tx, Some(who)));
        Ok(Msg::Begin(tx.parse().map_err(|_| bad())?, refuses.map(|who| names.id(who))))
    }

    fn describe(&self, state: &State, names: &Names) -> Value {
        let votes: Vec<&str> = state.votes.iter().map(|&v| names.get(v)).collect();
        json!({ "open": state.open, "waiting": state.waiting.len(), "votes": votes, "committed": state.decided })
    }
}

impl Workload<State, Msg> for TwoPhase {
    fn client_message(&self, n: u64, choice: u64, names: &Names) -> Option<Proposal<Msg>> {
        let refuses = self.actors.get(1 + (choice % self.actors.len() as u64) as usize).copied();
        let fields = json!({ "tx": n + 1, "refuses": refuses.map(|p| names.get(p)) });
        Some(Proposal { to: self.actors[0], msg: Msg::Begin(n + 1, refuses), fields })
    }
}

impl Guidance<State, Msg> for TwoPhase {
    fn watch(&self, state: &State) -> Option<u64> {
        // A refusal that comes after the decision replaces it: the number of outcomes alone would stay the same.
        let commits = state.decided.values().filter(|commit| **commit).count();
        Some((state.decided.len() as u64) << 32 | commits as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused() {
        for (text, near) in [
            ("[switches]\ncommit_on_timeuot = true", "'commit_on_timeout'"),
            ("invariants = [\"Atomicty\"]", "'Atomicity'"),
            ("[settings]\nx = 1", "setting 'x'"),
            ("members = 0", "got 0"),
        ] {
            let scenario =
                Scenario::parse(&format!("model = \"two-phase\"\nnetwork = \"fifo\"\n{text}")).unwrap();
            let error = TwoPhase::new(&scenario, &mut Names::default()).unwrap_err().to_string();
            assert!(error.contains(near), "{error}");
        }
    }

    #[test]
    fn messages_are_read_back() {
        let mut names = Names::default();
        for payload in ["Begin(tx3)", "Begin(tx12,participant-2)"] {
            let (type_, fields) = ("Begin", None);
            let scenario = Scenario::parse("model = \"two-phase\"\nnetwork = \"fifo\"").unwrap();
            let model = TwoPhase::new(&scenario, &mut names).unwrap();
            let msg = model.external(ExternalMessage { type_, payload, fields }, &mut names).unwrap();
            assert_eq!(model.payload(&msg, &names), payload);
        }
    }
}
