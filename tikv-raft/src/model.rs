//! The model.

use std::sync::Arc;

use demi_replay::{ActorId, Ctx, Guidance, Logs, Model, Names, Runtime, View, Violation, Workload};
use demi_schemas::{Scenario, ScenarioError};
use slog::{Discard, Logger, o};

use crate::client::Client;
use crate::invariants::{self, Invariant};
use crate::message::Msg;
use crate::node::Node;
use crate::settings::Settings;
use crate::state::State;
use crate::stored::{Disk, Stored};

/// A cluster of nodes and a client. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct TikvRaft {
    pub(crate) settings: Settings,
    /// What the library logs is dropped.
    pub(crate) logger: Logger,
    /// The nodes in the order of their numbers, then the client.
    actors: Arc<[ActorId]>,
    invariants: Arc<[Invariant]>,
}

impl TikvRaft {
    /// The model as the scenario configures it.
    ///
    /// # Errors
    /// When the scenario has a name that the model does not know, or a value out of range.
    pub fn new(scenario: &Scenario, names: &mut Names) -> Result<Self, ScenarioError> {
        let settings = Settings::new(scenario)?;
        let nodes = (1..=settings.members + settings.spares).map(|id| format!("node-{id}"));
        let actors = nodes.chain(["client".to_owned()]).map(|name| names.id(&name)).collect();
        let invariants = Invariant::asked(scenario).into();
        Ok(TikvRaft { settings, logger: Logger::root(Discard, o!()), actors, invariants })
    }

    /// The actors that are nodes.
    #[must_use]
    pub fn nodes(&self) -> &[ActorId] {
        self.actors.split_last().map_or(&[], |(_, nodes)| nodes)
    }

    /// The actor that is the client.
    #[must_use]
    pub fn client(&self) -> ActorId {
        self.actors.last().copied().unwrap_or(demi_replay::OUTSIDE)
    }

    /// The actor of a node's number.
    pub(crate) fn node(&self, id: u64) -> Option<ActorId> {
        let at = usize::try_from(id.checked_sub(1)?).ok()?;
        self.nodes().get(at).copied()
    }
}

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
        invariants::check(self, &self.invariants, view, found);
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
