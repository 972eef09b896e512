//! Mutual exclusion by a token that goes round a ring of four nodes.
//!
//! Bug `impatient`: a node whose patience ends makes a new token, though the old one is only slow. Source: Misra, "Detecting
//! Termination of Distributed Computations Using Markers", PODC 1983, and Le Lann, IFIP 1977, on why a timeout alone does
//! not tell that a token is lost. The repaired protocol sends a second token round, which counts how often it meets the
//! first: if it comes back with the same count, and the first was not seen in between, that is lost.

use demi_replay::{ActorId, Ctx, ExternalMessage, Model, Names, Proposal, View, Violation};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: the node wants to enter.
    Want,
    Token,
    /// The second token, and how often it met the first.
    Probe(u32),
    Leave,
    Patience,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    wants: bool,
    holds: bool,
    /// What the second token said when it was here, if the first has not come since.
    probed: Option<u32>,
}

#[derive(Clone)]
pub struct Token {
    nodes: Vec<ActorId>,
    impatient: bool,
}

impl Token {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Token { nodes: group(names, "node", 4), impatient: on(scenario, "impatient") }
    }

    fn pass(&self, msg: Msg, ctx: &mut Ctx<'_, Msg>) {
        let at = self.nodes.iter().position(|&n| n == ctx.me()).unwrap_or(0);
        ctx.send(self.nodes[(at + 1) % self.nodes.len()], msg);
    }

    fn release(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        (state.holds, state.wants) = (false, false);
        self.pass(Msg::Token, ctx);
    }

    fn take(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.probed = None;
        if state.holds {
            return;
        }
        state.holds = true;
        ctx.cancel_timer("patience");
        ctx.set_timer("leave", Msg::Leave, false);
    }
}

impl Model for Token {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.nodes
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match *msg {
            Msg::Want => {
                state.wants = true;
                if !state.holds {
                    ctx.set_timer("patience", Msg::Patience, false);
                }
            }
            Msg::Token if state.wants => self.take(state, ctx),
            Msg::Token => {
                state.probed = None;
                self.pass(Msg::Token, ctx);
            }
            Msg::Leave => self.release(state, ctx),
            Msg::Patience if self.impatient => self.take(state, ctx),
            Msg::Patience => {}
            Msg::Probe(met) => {
                if state.probed == Some(met) && !state.holds {
                    self.take(state, ctx);
                }
                let met = met + u32::from(state.holds);
                state.probed = Some(met);
                self.pass(Msg::Probe(met), ctx);
            }
        }
    }

    fn type_name(&self, msg: &Msg) -> &'static str {
        match msg {
            Msg::Want => "Want",
            Msg::Token => "Token",
            Msg::Probe(_) => "Probe",
            Msg::Leave => "Leave",
            Msg::Patience => "Patience",
        }
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    fn check(&self, view: &View<'_, Self>, (): &mut (), found: &mut Vec<Violation>) {
        let holds = |n: &ActorId| view.state(*n).is_some_and(|s| s.holds);
        let affected: Vec<ActorId> = self.nodes.iter().copied().filter(holds).collect();
        if affected.len() > 1 {
            found.push(Violation { fingerprint: "OneHolder".into(), affected });
        }
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }

    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        let first = |msg| Proposal { to: self.nodes[0], msg, fields: Value::Null };
        vec![first(Msg::Token), first(Msg::Probe(0))]
    }

    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(Proposal { to: self.nodes[(choice % 4) as usize], msg: Msg::Want, fields: Value::Null })
    }
}
