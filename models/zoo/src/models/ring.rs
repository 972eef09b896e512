//! Leader election on a ring of four nodes, after Chang and Roberts, with identities that need not be unique.
//!
//! Bug `no_hops`: a node that sees its own identity takes the message for its own, though it comes from another node with
//! the same identity. Source: Fokkink and Pang, "Variations on Itai-Rodeh Leader Election for Anonymous Rings", JUCS 12(8),
//! 2006, sections 2 and 3: why the algorithm of Itai and Rodeh, which builds on that of Chang and Roberts, counts hops. In the
//! repaired protocol equal identities are noticed by the count, and their owners go on with other ones.

use std::collections::BTreeSet;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

const NODES: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: take part in the election that is on, with this identity.
    Join(u32),
    /// An identity, how far it came, and whether somebody else has it.
    Candidate { election: u32, round: u32, identity: u32, hops: usize, twin: bool },
    Elected { election: u32, hops: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The election that is on, and what this node runs with, if it takes part and was not beaten.
    election: u32,
    candidate: Option<(u32, u32)>,
    joined: bool,
    /// The elections that this node won.
    won: BTreeSet<u32>,
}

#[derive(Clone)]
pub struct Ring {
    nodes: Vec<ActorId>,
    no_hops: bool,
}

impl Ring {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Ring { nodes: group(names, "node", NODES), no_hops: on(scenario, "no_hops") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.nodes.iter().position(|&n| n == actor).unwrap_or(0)
    }

    fn pass(&self, msg: Msg, ctx: &mut Ctx<'_, Msg>) {
        let next = self.nodes[(self.place(ctx.me()) + 1) % NODES];
        ctx.send(next, msg);
    }

    fn run(&self, state: &mut State, round: u32, identity: u32, ctx: &mut Ctx<'_, Msg>) {
        state.joined = true;
        state.candidate = Some((round, identity));
        self.pass(Msg::Candidate { election: state.election, round, identity, hops: 1, twin: false }, ctx);
    }
}

impl Model for Ring {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.nodes
    }

    fn initial(&self, _: ActorId) -> State {
        State { election: 1, candidate: None, joined: false, won: BTreeSet::new() }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match *msg {
            Msg::Join(identity) => {
                if !state.joined {
                    self.run(state, 0, identity, ctx);
                }
            }
            Msg::Candidate { election, round, identity, hops, twin } => {
                if election != state.election {
                    return;
                }
                let home = state.candidate == Some((round, identity)) && (self.no_hops || hops == NODES);
                if home && twin {
                    // Another has the same identity: the next round decides, by place.
                    self.run(state, round + 1, self.place(ctx.me()) as u32, ctx);
                } else if home {
                    state.won.insert(election);
                    state.election += 1;
                    (state.candidate, state.joined) = (None, false);
                    self.pass(Msg::Elected { election, hops: 1 }, ctx);
                } else if hops < NODES && state.candidate.is_none_or(|own| own <= (round, identity)) {
                    let twin = twin || state.candidate == Some((round, identity));
                    // Who is beaten, or passes anything on, no longer joins this election.
                    state.joined = true;
                    if state.candidate != Some((round, identity)) {
                        state.candidate = None;
                    }
                    self.pass(Msg::Candidate { election, round, identity, hops: hops + 1, twin }, ctx);
                }
            }
            Msg::Elected { election, hops } => {
                if election == state.election {
                    state.election += 1;
                    (state.candidate, state.joined) = (None, false);
                }
                if hops + 1 < NODES {
                    self.pass(Msg::Elected { election, hops: hops + 1 }, ctx);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let won: Vec<_> = self.nodes.iter().filter_map(|&n| Some((n, &view.state(n)?.won))).collect();
        for (at, (a, one)) in won.iter().enumerate() {
            for (b, other) in &won[at + 1..] {
                if !one.is_disjoint(other) {
                    found.push(Violation { fingerprint: "OneLeader".into(), affected: vec![*a, *b] });
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

impl Logs<State, Msg> for Ring {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Join(_) => "Join",
            Msg::Candidate { .. } => "Candidate",
            Msg::Elected { .. } => "Elected",
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

impl Workload<State, Msg> for Ring {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        // Each identity is half as frequent as the one before.
        let identity = 1 + ((choice / 4) | 64).trailing_zeros();
        Some(Proposal { to: self.nodes[(choice % 4) as usize], msg: Msg::Join(identity), fields: Value::Null })
    }
}
