//! A lock service with leases, a storage that the lock protects, and two clients.
//!
//! Bug `no_fencing`: the storage takes a write of a client whose lease has ended meanwhile. Source: Kleppmann, "How to do
//! distributed locking", 2016, after HBase's bugs of that sort. In the repaired system the storage refuses fencing tokens
//! that are older than one it has seen.

use std::collections::VecDeque;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: a client shall add one to what is stored.
    Add,
    Acquire,
    Granted(u32),
    Release(u32),
    /// The lease ends.
    Expire,
    Read(u32),
    Content(u32, u32),
    Write(u32, u32),
    Written(u32, bool),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Lock: the last token, whether it is held, and who waits.
    token: u32,
    held: bool,
    queue: VecDeque<ActorId>,
    /// Storage: its content, the highest token seen, and whether an older one wrote after it.
    content: u32,
    highest: u32,
    overtaken: bool,
    /// Client: what is asked for, and the token of what it does now.
    waiting: u32,
    busy: bool,
}

#[derive(Clone)]
pub struct Lease {
    actors: Vec<ActorId>,
    lock: ActorId,
    storage: ActorId,
    clients: Vec<ActorId>,
    no_fencing: bool,
}

impl Lease {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let (lock, storage) = (names.id("lock"), names.id("storage"));
        let clients = group(names, "client", 2);
        let actors = [lock, storage].into_iter().chain(clients.iter().copied()).collect();
        Lease { actors, lock, storage, clients, no_fencing: on(scenario, "no_fencing") }
    }

    fn grant(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.held = false;
        ctx.cancel_timer("lease");
        if let Some(to) = state.queue.pop_front() {
            state.held = true;
            state.token += 1;
            ctx.send(to, Msg::Granted(state.token));
            ctx.set_timer("lease", Msg::Expire);
        }
    }

    fn acquire(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.busy = state.waiting > 0;
        if state.busy {
            state.waiting -= 1;
            ctx.send(self.lock, Msg::Acquire);
        }
    }
}

impl Model for Lease {
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
            Msg::Add => {
                state.waiting += 1;
                if !state.busy {
                    self.acquire(state, ctx);
                }
            }
            Msg::Acquire => {
                state.queue.push_back(from);
                if !state.held {
                    self.grant(state, ctx);
                }
            }
            Msg::Release(token) => {
                if state.held && token == state.token {
                    self.grant(state, ctx);
                }
            }
            Msg::Expire => self.grant(state, ctx),
            Msg::Granted(token) => ctx.send(self.storage, Msg::Read(token)),
            Msg::Read(token) => {
                state.highest = state.highest.max(token);
                ctx.send(from, Msg::Content(token, state.content));
            }
            Msg::Content(token, content) => ctx.send(self.storage, Msg::Write(token, content + 1)),
            Msg::Write(token, content) => {
                let late = token < state.highest;
                if !late || self.no_fencing {
                    state.overtaken |= late;
                    state.highest = state.highest.max(token);
                    state.content = content;
                }
                ctx.send(from, Msg::Written(token, !late));
            }
            Msg::Written(token, _) => {
                ctx.send(self.lock, Msg::Release(token));
                self.acquire(state, ctx);
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        if view.state(self.storage).is_some_and(|s| s.overtaken) {
            found.push(Violation { fingerprint: "LateWrite".into(), affected: vec![self.storage] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Lease {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Add => "Add",
            Msg::Acquire => "Acquire",
            Msg::Granted(_) => "Granted",
            Msg::Release(_) => "Release",
            Msg::Expire => "Expire",
            Msg::Read(_) => "Read",
            Msg::Content(..) => "Content",
            Msg::Write(..) => "Write",
            Msg::Written(..) => "Written",
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

impl Workload<State, Msg> for Lease {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(Proposal { to: self.clients[(choice % 2) as usize], msg: Msg::Add, fields: Value::Null })
    }
}
