//! Chain replication on three servers with a master that removes a suspected tail, and a client that reads what it wrote.
//!
//! Bug `no_seal`: the master tells the others of the shorter chain without waiting until the removed tail has stopped; if
//! the suspicion was wrong, it goes on answering. Source: van Renesse and Schneider, "Chain Replication for Supporting High
//! Throughput and Availability", OSDI 2004, sections 2 and 3: the protocol is right for fail-stop servers only, whose halt
//! is never suspected wrongly.

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// The client's user writes the next value, or reads.
    Write,
    Read,
    /// Something makes the master suspect the tail.
    Suspect,
    Update(u32),
    Query,
    Done(u32),
    Value(u32),
    /// The master to a removed tail, and its answer.
    Stop,
    Stopped,
    /// The number of servers that are left in the chain.
    Length(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Server: the value, and whether it still takes part. Client: the last value that it wrote.
    value: u32,
    stopped: bool,
    length: usize,
    /// Client: what its user asked for and has no answer yet.
    busy: Option<bool>,
    waiting: Vec<bool>,
    /// Client: the last value it knows to be stored, and whether it read an older one.
    known: u32,
    stale: bool,
}

#[derive(Clone)]
pub struct Chain {
    actors: Vec<ActorId>,
    servers: Vec<ActorId>,
    master: ActorId,
    client: ActorId,
    no_seal: bool,
}

impl Chain {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let servers = group(names, "server", 3);
        let (master, client) = (names.id("master"), names.id("client"));
        let actors = servers.iter().copied().chain([master, client]).collect();
        Chain { actors, servers, master, client, no_seal: on(scenario, "no_seal") }
    }

    fn shorten(&self, length: usize, ctx: &mut Ctx<'_, Msg>) {
        for &to in self.servers[..length].iter().chain([&self.client]) {
            ctx.send(to, Msg::Length(length));
        }
    }

    /// The client does what its user asked for next.
    fn next(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.busy = (!state.waiting.is_empty()).then(|| state.waiting.remove(0));
        match state.busy {
            Some(true) => {
                state.value += 1;
                ctx.send(self.servers[0], Msg::Update(state.value));
            }
            Some(false) => ctx.send(self.servers[state.length - 1], Msg::Query),
            None => {}
        }
    }
}

impl Model for Chain {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> State {
        State { value: 0, stopped: false, length: 3, busy: None, waiting: Vec::new(), known: 0, stale: false }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let at = self.servers.iter().position(|&s| s == ctx.me());
        match *msg {
            Msg::Write | Msg::Read => {
                state.waiting.push(*msg == Msg::Write);
                if state.busy.is_none() {
                    self.next(state, ctx);
                }
            }
            Msg::Suspect => {
                if state.length > 1 {
                    state.length -= 1;
                    ctx.send(self.servers[state.length], Msg::Stop);
                    if self.no_seal {
                        self.shorten(state.length, ctx);
                    }
                }
            }
            Msg::Stopped => {
                if !self.no_seal {
                    self.shorten(state.length, ctx);
                }
            }
            Msg::Stop => {
                state.stopped = true;
                ctx.send(self.master, Msg::Stopped);
            }
            Msg::Length(length) => {
                let shorter = length < state.length;
                state.length = state.length.min(length);
                match at {
                    // What the old tail may not have answered is answered by the new one.
                    Some(at) if shorter && at + 1 == length => ctx.send(self.client, Msg::Done(state.value)),
                    None if shorter && state.busy == Some(false) => ctx.send(self.servers[length - 1], Msg::Query),
                    _ => {}
                }
            }
            Msg::Update(_) | Msg::Query if state.stopped => {}
            Msg::Update(value) => {
                state.value = state.value.max(value);
                match at {
                    Some(at) if at + 1 < state.length => ctx.send(self.servers[at + 1], Msg::Update(value)),
                    _ => ctx.send(self.client, Msg::Done(value)),
                }
            }
            Msg::Query => ctx.send(self.client, Msg::Value(state.value)),
            Msg::Done(value) => {
                state.known = state.known.max(value);
                if state.busy == Some(true) && value >= state.value {
                    self.next(state, ctx);
                }
            }
            Msg::Value(value) => {
                if state.busy == Some(false) {
                    state.stale |= value < state.known;
                    state.known = state.known.max(value);
                    self.next(state, ctx);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        if view.state(self.client).is_some_and(|s| s.stale) {
            found.push(Violation { fingerprint: "StaleRead".into(), affected: vec![self.client] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Chain {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Write => "Write",
            Msg::Read => "Read",
            Msg::Suspect => "Suspect",
            Msg::Update(_) => "Update",
            Msg::Query => "Query",
            Msg::Done(_) => "Done",
            Msg::Value(_) => "Value",
            Msg::Stop => "Stop",
            Msg::Stopped => "Stopped",
            Msg::Length(_) => "Length",
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

impl Workload<State, Msg> for Chain {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(match choice % 50 {
            0 => Proposal { to: self.master, msg: Msg::Suspect, fields: Value::Null },
            n if n % 2 == 0 => Proposal { to: self.client, msg: Msg::Write, fields: Value::Null },
            _ => Proposal { to: self.client, msg: Msg::Read, fields: Value::Null },
        })
    }
}
