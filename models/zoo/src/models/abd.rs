//! A register on three replicas that one client writes and another reads, each by asking a majority.
//!
//! Bug `no_write_back`: a read ends after its first phase, so the next read may see an older value. Source: Attiya,
//! Bar-Noy, Dolev, "Sharing Memory Robustly in Message-Passing Systems", JACM 42(1), 1995, which adds the second phase
//! for this reason.

use std::collections::BTreeSet;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: to the writer, to the reader.
    Write,
    Read,
    Query(u32),
    Answer(u32, u32),
    /// The number of the operation, and the label of the value, which is the value itself.
    Store(u32, u32),
    Stored(u32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// A replica's label; the label that a client writes or read last.
    label: u32,
    /// Client: what is asked for and not begun, the number of the operation, what it does now.
    waiting: u32,
    op: u32,
    phase: Phase,
    heard: BTreeSet<ActorId>,
    /// Reader: the label that an earlier read returned, and whether a later one was older.
    returned: u32,
    inverted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    Asking,
    Storing,
}

#[derive(Clone)]
pub struct Abd {
    actors: Vec<ActorId>,
    replicas: Vec<ActorId>,
    writer: ActorId,
    reader: ActorId,
    no_write_back: bool,
}

impl Abd {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let replicas = group(names, "replica", 3);
        let (writer, reader) = (names.id("writer"), names.id("reader"));
        let actors = replicas.iter().copied().chain([writer, reader]).collect();
        Abd { actors, replicas, writer, reader, no_write_back: on(scenario, "no_write_back") }
    }

    fn ask(&self, state: &mut State, phase: Phase, ctx: &mut Ctx<'_, Msg>) {
        state.phase = phase;
        state.heard.clear();
        for &to in &self.replicas {
            let storing = phase == Phase::Storing;
            ctx.send(to, if storing { Msg::Store(state.op, state.label) } else { Msg::Query(state.op) });
        }
    }

    fn next(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.phase = Phase::Idle;
        if state.waiting == 0 {
            return;
        }
        state.waiting -= 1;
        state.op += 1;
        if ctx.me() == self.writer {
            state.label += 1;
            self.ask(state, Phase::Storing, ctx);
        } else {
            state.label = 0;
            self.ask(state, Phase::Asking, ctx);
        }
    }

    fn done(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if ctx.me() == self.reader {
            state.inverted |= state.label < state.returned;
            state.returned = state.returned.max(state.label);
        }
        self.next(state, ctx);
    }
}

impl Model for Abd {
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
            Msg::Write | Msg::Read => {
                state.waiting += 1;
                if state.phase == Phase::Idle {
                    self.next(state, ctx);
                }
            }
            Msg::Query(op) => ctx.send(from, Msg::Answer(op, state.label)),
            Msg::Store(op, label) => {
                state.label = state.label.max(label);
                ctx.send(from, Msg::Stored(op));
            }
            Msg::Answer(op, label) if op == state.op && state.phase == Phase::Asking => {
                state.label = state.label.max(label);
                state.heard.insert(from);
                if state.heard.len() == 2 && self.no_write_back {
                    self.done(state, ctx);
                } else if state.heard.len() == 2 {
                    self.ask(state, Phase::Storing, ctx);
                }
            }
            Msg::Stored(op) if op == state.op && state.phase == Phase::Storing => {
                state.heard.insert(from);
                if state.heard.len() == 2 {
                    self.done(state, ctx);
                }
            }
            Msg::Answer(..) | Msg::Stored(_) => {}
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        if view.state(self.reader).is_some_and(|s| s.inverted) {
            found.push(Violation { fingerprint: "NewThenOld".into(), affected: vec![self.reader] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Abd {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Write => "Write",
            Msg::Read => "Read",
            Msg::Query(_) => "Query",
            Msg::Answer(..) => "Answer",
            Msg::Store(..) => "Store",
            Msg::Stored(_) => "Stored",
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

impl Workload<State, Msg> for Abd {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        Some(match choice % 2 {
            0 => Proposal { to: self.writer, msg: Msg::Write, fields: Value::Null },
            _ => Proposal { to: self.reader, msg: Msg::Read, fields: Value::Null },
        })
    }
}
