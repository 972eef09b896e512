//! Transactions over a key-value store with snapshot isolation: two servers run them for their clients, a store checks at
//! commit that nobody wrote what was read since.
//!
//! Bug `blind_retry`: a server that meets a conflict commits the same writes again as of a newer snapshot, without reading
//! anew, so that an update is lost. Source: Jepsen, "TiDB 2.1.7", 2019 (automatic retries of transactions).

use std::collections::BTreeMap;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: add one to the value of a key.
    Add(u8),
    Get(u8),
    Value { key: u8, value: u32, version: u32 },
    Commit { key: u8, value: u32, version: u32 },
    Committed,
    Conflict { key: u8, version: u32 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Store: value, version and the number of additions that were committed, of each key.
    keys: BTreeMap<u8, (u32, u32, u32)>,
    /// Server: what it has to do, and what it wants to write now.
    waiting: Vec<u8>,
    busy: bool,
    write: u32,
}

#[derive(Clone)]
pub struct Transactions {
    actors: Vec<ActorId>,
    store: ActorId,
    servers: Vec<ActorId>,
    blind_retry: bool,
}

impl Transactions {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let store = names.id("store");
        let servers = group(names, "server", 2);
        let actors = [store].into_iter().chain(servers.iter().copied()).collect();
        Transactions { actors, store, servers, blind_retry: on(scenario, "blind_retry") }
    }

    fn next(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.busy = !state.waiting.is_empty();
        if state.busy {
            ctx.send(self.store, Msg::Get(state.waiting.remove(0)));
        }
    }
}

impl Model for Transactions {
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
            Msg::Add(key) => {
                state.waiting.push(key);
                if !state.busy {
                    self.next(state, ctx);
                }
            }
            Msg::Get(key) => {
                let (value, version, _) = state.keys.get(&key).copied().unwrap_or_default();
                ctx.send(from, Msg::Value { key, value, version });
            }
            Msg::Value { key, value, version } => {
                state.write = value + 1;
                ctx.send(self.store, Msg::Commit { key, value: state.write, version });
            }
            Msg::Commit { key, value, version } => {
                let entry = state.keys.entry(key).or_default();
                if entry.1 == version {
                    *entry = (value, version + 1, entry.2 + 1);
                    ctx.send(from, Msg::Committed);
                } else {
                    ctx.send(from, Msg::Conflict { key, version: entry.1 });
                }
            }
            Msg::Committed => self.next(state, ctx),
            Msg::Conflict { key, version } => {
                if self.blind_retry {
                    ctx.send(self.store, Msg::Commit { key, value: state.write, version });
                } else {
                    ctx.send(self.store, Msg::Get(key));
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let Some(store) = view.state(self.store) else { return };
        if store.keys.values().any(|(value, _, additions)| value != additions) {
            found.push(Violation { fingerprint: "LostUpdate".into(), affected: vec![self.store] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Transactions {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Add(_) => "Add",
            Msg::Get(_) => "Get",
            Msg::Value { .. } => "Value",
            Msg::Commit { .. } => "Commit",
            Msg::Committed => "Committed",
            Msg::Conflict { .. } => "Conflict",
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

impl Workload<State, Msg> for Transactions {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let to = self.servers[(choice % 2) as usize];
        Some(Proposal { to, msg: Msg::Add((choice / 2 % 8) as u8), fields: Value::Null })
    }
}
