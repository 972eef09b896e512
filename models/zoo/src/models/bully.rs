//! Election of a master among three nodes as Zen discovery did it: the node with the smallest place of those that can be
//! seen is asked to be master, and is once it has a majority with itself.
//!
//! Bug `joins_twice`: a node that sees one candidate and then another helps both into office in one term. Source:
//! elastic/elasticsearch, issue 2488 (`minimum_master_nodes` does not prevent a split brain if partial partitions
//! intersect). In the repaired protocol a node joins one candidate a term.

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: the master seems to be gone.
    Lost,
    Ping(u32),
    Pong(u32),
    Join(u32),
    Master(u32),
    /// The time for answers to pings is over.
    Decide,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    term: u32,
    seen: BTreeSet<usize>,
    /// Who was joined in each term, and the terms that this node won.
    joined: BTreeMap<u32, usize>,
    joins: BTreeSet<usize>,
    won: BTreeSet<u32>,
}

#[derive(Clone)]
pub struct Bully {
    nodes: Vec<ActorId>,
    joins_twice: bool,
}

impl Bully {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Bully { nodes: group(names, "node", 3), joins_twice: on(scenario, "joins_twice") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.nodes.iter().position(|&n| n == actor).unwrap_or(0)
    }

    fn others(&self, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        self.nodes.iter().filter(|&&n| n != me).for_each(|&to| ctx.send(to, msg.clone()));
    }

    /// Takes up a newer term.
    fn term(state: &mut State, term: u32) {
        if term > state.term {
            state.term = term;
            state.seen.clear();
            state.joins.clear();
        }
    }

    fn join(&self, state: &mut State, from: usize, ctx: &mut Ctx<'_, Msg>) {
        state.joins.insert(from);
        if state.joins.len() == 2 && state.won.insert(state.term) {
            self.others(&Msg::Master(state.term), ctx);
        }
    }
}

impl Model for Bully {
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
        let (me, from) = (self.place(ctx.me()), self.place(ctx.sender()));
        match *msg {
            Msg::Lost => {
                Self::term(state, state.term + 1);
                state.seen.insert(me);
                self.others(&Msg::Ping(state.term), ctx);
                ctx.set_timer("decide", Msg::Decide);
            }
            Msg::Ping(term) => {
                Self::term(state, term);
                if term == state.term {
                    ctx.send(ctx.sender(), Msg::Pong(term));
                }
            }
            Msg::Pong(term) => {
                if term == state.term {
                    state.seen.insert(from);
                }
            }
            Msg::Decide => {
                let Some(&best) = state.seen.first().filter(|_| state.seen.len() >= 2) else { return };
                let free = !state.joined.contains_key(&state.term);
                if free || self.joins_twice {
                    state.joined.insert(state.term, best);
                    if best == me {
                        self.join(state, me, ctx);
                    } else {
                        ctx.send(self.nodes[best], Msg::Join(state.term));
                    }
                }
            }
            Msg::Join(term) => {
                // Whoever is joined by others joins itself, if it may.
                if term == state.term {
                    let mine = *state.joined.entry(term).or_insert(me);
                    if mine == me || self.joins_twice {
                        state.joins.insert(me);
                    }
                    self.join(state, from, ctx);
                }
            }
            Msg::Master(term) => {
                Self::term(state, term);
                if term == state.term {
                    ctx.cancel_timer("decide");
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let won: Vec<_> = self.nodes.iter().filter_map(|&n| Some((n, &view.state(n)?.won))).collect();
        for (at, (a, one)) in won.iter().enumerate() {
            for (b, other) in &won[at + 1..] {
                if !one.is_disjoint(other) {
                    found.push(Violation { fingerprint: "OneMaster".into(), affected: vec![*a, *b] });
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

impl Logs<State, Msg> for Bully {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Lost => "Lost",
            Msg::Ping(_) => "Ping",
            Msg::Pong(_) => "Pong",
            Msg::Join(_) => "Join",
            Msg::Master(_) => "Master",
            Msg::Decide => "Decide",
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

impl Workload<State, Msg> for Bully {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(Proposal { to: self.nodes[(choice % 3) as usize], msg: Msg::Lost, fields: Value::Null })
    }
}
