//! Mutual exclusion by a token that goes round a ring.
//!
//! Bug `times_out`: the node that watches over the ring makes a new token when it has not seen one for a while, though the
//! old one is only slow. Source:
//! J. Misra, "Detecting termination of distributed computations using markers", PODC 1983, whose two markers tell of each
//! other's loss without a timeout; the repaired system does as they do.

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// The token, with the number of its round.
    Ping(i32),
    /// What guards it against loss.
    Pong(i32),
    /// Who has the token uses what it guards.
    Use,
    Used,
    /// The first node has not seen the token for a while.
    Lost,
    /// From outside: the node makes the token.
    Begin,
    /// From outside: the node shall use the token once.
    Want,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    wanted: u32,
    /// The token that it uses now.
    holds: Option<i32>,
    /// The number of the last marker that it saw.
    last: i32,
}

#[derive(Clone)]
pub struct Token {
    actors: Vec<ActorId>,
    nodes: Vec<ActorId>,
    guarded: ActorId,
    times_out: bool,
}

impl Token {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let (nodes, guarded) = (group(names, "node", 4), names.id("guarded"));
        let actors = nodes.iter().copied().chain([guarded]).collect();
        Token { actors, nodes, guarded, times_out: on(scenario, "times_out") }
    }

    fn next(&self, of: ActorId) -> ActorId {
        let at = self.nodes.iter().position(|&node| node == of).unwrap_or(0);
        self.nodes[(at + 1) % self.nodes.len()]
    }

    fn pass(&self, number: i32, ctx: &mut Ctx<'_, Msg>) {
        let next = self.next(ctx.me());
        ctx.send(next, Msg::Ping(number));
        if self.times_out && ctx.me() == self.nodes[0] {
            ctx.set_timer("lost", Msg::Lost);
        }
    }

    fn take(&self, number: i32, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        ctx.cancel_timer("lost");
        if state.wanted == 0 {
            return self.pass(number, ctx);
        }
        state.wanted -= 1;
        state.holds = Some(number);
        ctx.send(self.guarded, Msg::Use);
    }
}

impl Model for Token {
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
            Msg::Want => state.wanted += 1,
            Msg::Begin => {
                if !self.times_out {
                    let next = self.next(ctx.me());
                    ctx.send(next, Msg::Pong(-1));
                }
                state.last = 1;
                self.pass(1, ctx);
            }
            Msg::Use => {
                let from = ctx.sender();
                ctx.send(from, Msg::Used);
            }
            Msg::Ping(number) => {
                let mut number = number;
                if !self.times_out && state.last == number {
                    // No second marker came by since: it is lost.
                    number += 1;
                    let next = self.next(ctx.me());
                    ctx.send(next, Msg::Pong(-number));
                }
                state.last = number;
                self.take(number, state, ctx);
            }
            Msg::Pong(number) => {
                let mut number = number;
                if let Some(held) = &mut state.holds {
                    // They meet: both are there.
                    *held += 1;
                    number = -*held;
                    state.last = *held;
                } else if state.last == number {
                    number -= 1;
                    state.last = -number;
                    self.take(-number, state, ctx);
                } else {
                    state.last = number;
                }
                let next = self.next(ctx.me());
                ctx.send(next, Msg::Pong(number));
            }
            Msg::Used => {
                if let Some(number) = state.holds.take() {
                    self.pass(number, ctx);
                }
            }
            Msg::Lost => {
                if state.holds.is_none() {
                    self.take(0, state, ctx);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let holds = |node: &&ActorId| view.state(**node).is_some_and(|state| state.holds.is_some());
        let holders: Vec<ActorId> = self.nodes.iter().filter(holds).copied().collect();
        if holders.len() > 1 {
            found.push(Violation { fingerprint: "OneToken".into(), affected: holders });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Token {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Ping(_) => "Ping",
            Msg::Pong(_) => "Pong",
            Msg::Use => "Use",
            Msg::Used => "Used",
            Msg::Lost => "Lost",
            Msg::Begin => "Begin",
            Msg::Want => "Want",
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

impl Workload<State, Msg> for Token {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        vec![Proposal::new(self.nodes[0], Msg::Begin)]
    }

    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(Proposal::new(self.nodes[(choice % 4) as usize], Msg::Want))
    }
}
