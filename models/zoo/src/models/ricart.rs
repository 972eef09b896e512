//! Mutual exclusion after Ricart and Agrawala: who wants the critical section asks all others, who answer late if they come first.
//!
//! Bug `own_numbers`: a request is numbered after the last own one, not after the highest that was seen. Source: G. Ricart and
//! A. K. Agrawala, CACM 24(1), 1981, section 3: a sequence number is one more than the highest sent or received, for else a
//! request can overtake one that is being served.

use std::collections::BTreeSet;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: the node shall enter the critical section.
    Want,
    Request(u32),
    Reply,
    /// The node leaves the critical section.
    Leave,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// How often it shall still enter.
    wanted: u32,
    requesting: bool,
    inside: bool,
    number: u32,
    highest: u32,
    replies: BTreeSet<ActorId>,
    deferred: BTreeSet<ActorId>,
}

#[derive(Clone)]
pub struct Ricart {
    nodes: Vec<ActorId>,
    own_numbers: bool,
}

impl Ricart {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Ricart { nodes: group(names, "node", 3), own_numbers: on(scenario, "own_numbers") }
    }

    fn request(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.wanted == 0 || state.requesting {
            return;
        }
        state.wanted -= 1;
        state.requesting = true;
        state.number = 1 + if self.own_numbers { state.number } else { state.highest };
        state.highest = state.highest.max(state.number);
        state.replies.clear();
        let me = ctx.me();
        self.nodes.iter().filter(|&&node| node != me).for_each(|&node| ctx.send(node, Msg::Request(state.number)));
    }
}

impl Model for Ricart {
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
        let (me, from) = (ctx.me(), ctx.sender());
        match *msg {
            Msg::Want => {
                state.wanted += 1;
                self.request(state, ctx);
            }
            Msg::Request(number) => {
                state.highest = state.highest.max(number);
                if state.requesting && (state.number, me) < (number, from) {
                    state.deferred.insert(from);
                } else {
                    ctx.send(from, Msg::Reply);
                }
            }
            Msg::Reply => {
                state.replies.insert(from);
                if state.requesting && state.replies.len() + 1 == self.nodes.len() {
                    state.inside = true;
                    ctx.set_timer("leave", Msg::Leave);
                }
            }
            Msg::Leave => {
                (state.inside, state.requesting) = (false, false);
                for node in std::mem::take(&mut state.deferred) {
                    ctx.send(node, Msg::Reply);
                }
                self.request(state, ctx);
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let inside = |node: &&ActorId| view.state(**node).is_some_and(|state| state.inside);
        let inside: Vec<ActorId> = self.nodes.iter().filter(inside).copied().collect();
        if inside.len() > 1 {
            found.push(Violation { fingerprint: "MutualExclusion".into(), affected: inside });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Ricart {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Want => "Want",
            Msg::Request(_) => "Request",
            Msg::Reply => "Reply",
            Msg::Leave => "Leave",
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

impl Workload<State, Msg> for Ricart {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(Proposal::new(self.nodes[(choice % 3) as usize], Msg::Want))
    }
}
