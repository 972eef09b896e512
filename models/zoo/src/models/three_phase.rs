//! Three-phase commit: a coordinator and two participants, one transaction at a time.
//!
//! Bug `timeouts_decide`: the timeout transitions of the protocol are taken though messages are only late. One participant
//! that is prepared to commit commits, another that only voted aborts. Source: Skeen, "Nonblocking Commit Protocols",
//! SIGMOD 1981 (failures are taken to be reliably detected); Keidar and Dolev, "Increasing the Resilience of Distributed and
//! Replicated Database Systems", JCSS 57, 1998, on what happens where they are not. Without the switch who waits blocks.

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    Begin,
    CanCommit(u32),
    Yes(u32),
    PreCommit(u32),
    Ack(u32),
    DoCommit(u32),
    Abort(u32),
    Timeout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Stage {
    Voted,
    Prepared,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The transaction in hand, how far it is, who answered.
    transaction: u32,
    stage: Option<Stage>,
    answers: BTreeSet<ActorId>,
    /// Coordinator: requests that wait.
    waiting: u32,
    /// Whether each was committed.
    decided: BTreeMap<u32, bool>,
}

#[derive(Clone)]
pub struct ThreePhase {
    actors: Vec<ActorId>,
    coordinator: ActorId,
    participants: Vec<ActorId>,
    timeouts_decide: bool,
}

impl ThreePhase {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let coordinator = names.id("coordinator");
        let participants = group(names, "participant", 2);
        let actors = [coordinator].into_iter().chain(participants.iter().copied()).collect();
        ThreePhase { actors, coordinator, participants, timeouts_decide: on(scenario, "timeouts_decide") }
    }

    fn all(&self, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        self.participants.iter().for_each(|&to| ctx.send(to, msg.clone()));
    }

    fn stage(&self, state: &mut State, stage: Stage, ctx: &mut Ctx<'_, Msg>) {
        state.stage = Some(stage);
        state.answers.clear();
        if self.timeouts_decide {
            ctx.set_timer("timeout", Msg::Timeout);
        }
    }

    fn decide(&self, state: &mut State, commit: bool, ctx: &mut Ctx<'_, Msg>) {
        ctx.cancel_timer("timeout");
        state.stage = None;
        state.answers.clear();
        state.decided.entry(state.transaction).or_insert(commit);
        if ctx.me() == self.coordinator {
            let t = state.transaction;
            self.all(&if commit { Msg::DoCommit(t) } else { Msg::Abort(t) }, ctx);
            self.begin(state, ctx);
        }
    }

    fn begin(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.waiting > 0 {
            state.waiting -= 1;
            state.transaction += 1;
            self.stage(state, Stage::Voted, ctx);
            self.all(&Msg::CanCommit(state.transaction), ctx);
        }
    }

    /// Whether both participants have answered, this one included.
    fn answered(&self, state: &mut State, t: u32, stage: Stage, from: ActorId) -> bool {
        if t == state.transaction && state.stage == Some(stage) {
            state.answers.insert(from);
        }
        state.answers.len() == self.participants.len()
    }
}

impl Model for ThreePhase {
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
        let from = ctx.sender();
        match *msg {
            Msg::Begin => {
                state.waiting += 1;
                if state.stage.is_none() {
                    self.begin(state, ctx);
                }
            }
            Msg::Yes(t) => {
                if self.answered(state, t, Stage::Voted, from) {
                    self.stage(state, Stage::Prepared, ctx);
                    self.all(&Msg::PreCommit(t), ctx);
                }
            }
            Msg::Ack(t) => {
                if self.answered(state, t, Stage::Prepared, from) {
                    self.decide(state, true, ctx);
                }
            }
            Msg::CanCommit(t) => {
                state.transaction = t;
                self.stage(state, Stage::Voted, ctx);
                ctx.send(from, Msg::Yes(t));
            }
            Msg::PreCommit(t) => {
                if t == state.transaction && state.stage == Some(Stage::Voted) {
                    self.stage(state, Stage::Prepared, ctx);
                    ctx.send(from, Msg::Ack(t));
                }
            }
            Msg::DoCommit(t) | Msg::Abort(t) => {
                if t == state.transaction && state.stage.is_some() {
                    self.decide(state, matches!(msg, Msg::DoCommit(_)), ctx);
                }
            }
            Msg::Timeout => {
                if let Some(stage) = state.stage {
                    self.decide(state, stage == Stage::Prepared, ctx);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let known: Vec<_> =
            self.actors.iter().filter_map(|&a| Some((a, &view.state(a)?.decided))).collect();
        for (at, (a, one)) in known.iter().enumerate() {
            for (b, other) in &known[at + 1..] {
                if one.iter().any(|(t, d)| other.get(t).is_some_and(|e| e != d)) {
                    found.push(Violation { fingerprint: "Atomicity".into(), affected: vec![*a, *b] });
                    return;
                }
            }
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for ThreePhase {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Begin => "Begin",
            Msg::CanCommit(_) => "CanCommit",
            Msg::Yes(_) => "Yes",
            Msg::PreCommit(_) => "PreCommit",
            Msg::Ack(_) => "Ack",
            Msg::DoCommit(_) => "DoCommit",
            Msg::Abort(_) => "Abort",
            Msg::Timeout => "Timeout",
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

impl Workload<State, Msg> for ThreePhase {
    fn client_message(&self, _: u64, _: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(Proposal { to: self.coordinator, msg: Msg::Begin, fields: Value::Null })
    }
}
