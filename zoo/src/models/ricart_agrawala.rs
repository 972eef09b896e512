//! Mutual exclusion of three nodes after Ricart and Agrawala: who wants to enter asks all others, and waits for all.
//!
//! Bug `own_numbers`: a node does not take up the sequence numbers that it sees, so that a later request may come before
//! one that was already answered. Source: Ricart and Agrawala, "An Optimal Algorithm for Mutual Exclusion in Computer
//! Networks", CACM 24(1), 1981, whose proof rests on a new number being larger than all that were received.

use std::collections::BTreeSet;

use demi_replay::{ActorId, Ctx, ExternalMessage, Model, Names, Proposal, View, Violation};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: the node wants to enter once more.
    Want,
    Request(u32),
    Reply,
    /// The node is done with what it does inside.
    Leave,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    highest: u32,
    /// The number of the request that is open, who answered it, and whether the node is inside.
    request: Option<u32>,
    replies: BTreeSet<ActorId>,
    inside: bool,
    deferred: BTreeSet<ActorId>,
    waiting: u32,
}

#[derive(Clone)]
pub struct RicartAgrawala {
    nodes: Vec<ActorId>,
    own_numbers: bool,
}

impl RicartAgrawala {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        RicartAgrawala { nodes: group(names, "node", 3), own_numbers: on(scenario, "own_numbers") }
    }

    fn ask(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.request.is_some() || state.waiting == 0 {
            return;
        }
        state.waiting -= 1;
        state.highest += 1;
        state.request = Some(state.highest);
        let me = ctx.me();
        self.nodes.iter().filter(|&&n| n != me).for_each(|&to| ctx.send(to, Msg::Request(state.highest)));
    }
}

impl Model for RicartAgrawala {
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
        let from = ctx.sender();
        match *msg {
            Msg::Want => {
                state.waiting += 1;
                self.ask(state, ctx);
            }
            Msg::Request(number) => {
                if !self.own_numbers {
                    state.highest = state.highest.max(number);
                }
                let first = state.request.is_some_and(|own| (own, ctx.me()) < (number, from));
                if state.inside || first {
                    state.deferred.insert(from);
                } else {
                    ctx.send(from, Msg::Reply);
                }
            }
            Msg::Reply => {
                state.replies.insert(from);
                if state.replies.len() == 2 {
                    state.inside = true;
                    ctx.set_timer("leave", Msg::Leave, false);
                }
            }
            Msg::Leave => {
                (state.inside, state.request) = (false, None);
                state.replies.clear();
                std::mem::take(&mut state.deferred).into_iter().for_each(|to| ctx.send(to, Msg::Reply));
                self.ask(state, ctx);
            }
        }
    }

    fn type_name(&self, msg: &Msg) -> &'static str {
        match msg {
            Msg::Want => "Want",
            Msg::Request(_) => "Request",
            Msg::Reply => "Reply",
            Msg::Leave => "Leave",
        }
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    fn check(&self, view: &View<'_, Self>, (): &mut (), found: &mut Vec<Violation>) {
        let inside = |n: &ActorId| view.state(*n).is_some_and(|s| s.inside);
        let affected: Vec<ActorId> = self.nodes.iter().copied().filter(inside).collect();
        if affected.len() > 1 {
            found.push(Violation { fingerprint: "MutualExclusion".into(), affected });
        }
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }

    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        // The nodes want to enter about as often, so that their numbers stay close.
        Some(Proposal { to: self.nodes[(choice % 3) as usize], msg: Msg::Want, fields: Value::Null })
    }
}
