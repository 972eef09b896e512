//! The model.

use demi_replay::{ActorId, Ctx, Guidance, Logs, Model, Runtime, View, Violation, Workload};

use crate::client::Client;
use crate::invariants;
use crate::message::Msg;
use crate::node::Node;
use crate::state::State;
use crate::stored::{Disk, Stored};
use crate::system::TikvRaft;

impl Model for TikvRaft {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, actor: ActorId) -> State {
        let Some(at) = self.nodes().iter().position(|&node| node == actor) else {
            return State::Client(Client::default());
        };
        let id = at as u64 + 1;
        let members = self.settings.members;
        let written = if id <= members { Stored::founded(members) } else { Stored::default() };
        State::Node(Box::new(Node { id, disk: Disk { written, synced: None }, ..Node::default() }))
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if let State::Node(node) = state {
            self.begin(node, ctx);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match state {
            State::Node(node) => self.handle(node, msg, ctx),
            State::Client(client) => match *msg {
                Msg::Read { read, node } => {
                    if let Some(node) = self.node(node) {
                        client.ask(read);
                        ctx.send(node, Msg::Ask(read));
                    }
                }
                Msg::Done { write, index, term } => client.done(write, index, term),
                Msg::Value { read, index } => client.value(read, index),
                _ => {}
            },
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        invariants::check((self.nodes(), self.client()), &self.invariants, view, found);
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<State, Msg> {
        self
    }
}
