//! Two-phase commit: a coordinator and two participants, one transaction after the other begun.
//!
//! Bug `rollback_prepared`: a participant whose session ends rolls back what it has prepared, though it voted yes and the
//! others may commit. Source: MySQL bug 12161, "Xa recovery and client disconnection".

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: a transaction; the end of a participant's session.
    Begin,
    Disconnect,
    Work(u32),
    Worked(u32),
    Prepare(u32),
    Vote(u32, bool),
    Commit(u32),
    Rollback(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Branch {
    Active,
    Prepared,
    Committed,
    RolledBack,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Participant: what became of each transaction.
    branches: BTreeMap<u32, Branch>,
    /// Coordinator: how many were begun, and who answered in the present phase of each.
    begun: u32,
    answers: BTreeMap<u32, BTreeSet<ActorId>>,
}

#[derive(Clone)]
pub struct TwoPhase {
    actors: Vec<ActorId>,
    coordinator: ActorId,
    participants: Vec<ActorId>,
    rollback_prepared: bool,
}

impl TwoPhase {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let coordinator = names.id("coordinator");
        let participants = group(names, "participant", 2);
        let actors = [coordinator].into_iter().chain(participants.iter().copied()).collect();
        TwoPhase { actors, coordinator, participants, rollback_prepared: on(scenario, "rollback_prepared") }
    }

    fn all(&self, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        self.participants.iter().for_each(|&to| ctx.send(to, msg.clone()));
    }

    /// Notes an answer of the sender; when both have answered the next phase begins.
    fn answered(&self, state: &mut State, transaction: u32, next: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let Some(answers) = state.answers.get_mut(&transaction) else { return };
        answers.insert(ctx.sender());
        if answers.len() == self.participants.len() {
            answers.clear();
            self.all(next, ctx);
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
            Msg::Begin => {
                state.begun += 1;
                state.answers.insert(state.begun, BTreeSet::new());
                self.all(&Msg::Work(state.begun), ctx);
            }
            Msg::Worked(t) => self.answered(state, t, &Msg::Prepare(t), ctx),
            Msg::Vote(t, true) => self.answered(state, t, &Msg::Commit(t), ctx),
            Msg::Vote(t, false) => {
                if state.answers.remove(&t).is_some() {
                    self.all(&Msg::Rollback(t), ctx);
                }
            }
            Msg::Work(t) => {
                state.branches.insert(t, Branch::Active);
                ctx.send(ctx.sender(), Msg::Worked(t));
            }
            Msg::Prepare(t) => {
                let active = state.branches.get(&t) == Some(&Branch::Active);
                if active {
                    state.branches.insert(t, Branch::Prepared);
                }
                ctx.send(ctx.sender(), Msg::Vote(t, active));
            }
            Msg::Commit(t) => {
                if state.branches.get(&t) == Some(&Branch::Prepared) {
                    state.branches.insert(t, Branch::Committed);
                }
            }
            Msg::Rollback(t) => {
                state.branches.insert(t, Branch::RolledBack);
            }
            Msg::Disconnect => {
                for branch in state.branches.values_mut() {
                    if *branch == Branch::Active || self.rollback_prepared && *branch == Branch::Prepared {
                        *branch = Branch::RolledBack;
                    }
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let [one, other] = &self.participants[..] else { return };
        let (Some(a), Some(b)) = (view.state(*one), view.state(*other)) else { return };
        let split = a.branches.iter().any(|(t, x)| {
            let both = (*x, b.branches.get(t).copied().unwrap_or(Branch::Active));
            matches!(both, (Branch::Committed, Branch::RolledBack) | (Branch::RolledBack, Branch::Committed))
        });
        if split {
            found.push(Violation { fingerprint: "Atomicity".into(), affected: vec![*one, *other] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for TwoPhase {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Begin => "Begin",
            Msg::Disconnect => "Disconnect",
            Msg::Work(_) => "Work",
            Msg::Worked(_) => "Worked",
            Msg::Prepare(_) => "Prepare",
            Msg::Vote(..) => "Vote",
            Msg::Commit(_) => "Commit",
            Msg::Rollback(_) => "Rollback",
        };
        name.to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }
}

impl Workload<State, Msg> for TwoPhase {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(match choice % 10 {
            at @ 0..2 => Proposal { to: self.participants[at as usize], msg: Msg::Disconnect, fields: Value::Null },
            _ => Proposal { to: self.coordinator, msg: Msg::Begin, fields: Value::Null },
        })
    }
}
