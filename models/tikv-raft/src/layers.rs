//! The layers of the model besides its core.

use std::hash::{Hash, Hasher};

use demi_replay::{
    ActorId, Duplicates, ExternalMessage, Guidance, Logs, Names, Proposal, Runtime, View, Workload,
};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::message::Msg;
use crate::state::State;
use crate::system::TikvRaft;
use crate::{requests, text};

impl Logs<State, Msg> for TikvRaft {
    fn type_name(&self, msg: &Msg) -> String {
        text::tag(msg)
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        text::payload(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        requests::parse(message.payload).map_err(|why| why.to_string())
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        text::state(state)
    }
}

impl Runtime<State, Msg> for TikvRaft {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn recovered(&self, _: ActorId, failed: &State) -> Option<State> {
        Some(match failed {
            State::Node(node) => State::Node(Box::new(node.recovered())),
            State::Client(client) => State::Client(client.clone()),
        })
    }

    fn duplicates(&self, msg: &Msg) -> Duplicates {
        match msg {
            Msg::Raft(_) => Duplicates::Any,
            _ => Duplicates::Never,
        }
    }
}

impl Workload<State, Msg> for TikvRaft {
    fn client_message(&self, n: u64, choice: u64, names: &Names) -> Option<Proposal<Msg>> {
        self.request(n, choice, names)
    }

    fn condition(&self, name: &str, view: &View<'_, State>) -> Result<bool, String> {
        match name {
            "leader" => {
                let leads = |&actor: &ActorId| {
                    view.state(actor).and_then(State::node).is_some_and(crate::Node::leads)
                };
                Ok(self.nodes().iter().any(leads))
            }
            _ => Err(format!("'{name}' is no condition: expected leader")),
        }
    }
}

impl Guidance<State, Msg> for TikvRaft {
    fn clock(&self, msg: &Msg) -> Option<i64> {
        text::clock(msg)
    }

    fn actor_clock(&self, state: &State) -> Option<i64> {
        i64::try_from(state.node()?.disk.written.hard.term).ok()
    }

    /// Of a node, invariants read whether it leads, its term, its log, what it applied and whether it died; of the client
    /// all but the reads that are open. What is delivered to a node that died is always checked: it may have died as it started.
    fn watch(&self, state: &State) -> Option<u64> {
        let mut hasher = Xxh3::new();
        match state {
            State::Node(node) => {
                if node.died.is_some() {
                    return None;
                }
                let stored = &node.disk.written;
                (node.leads(), stored.hard.term, &stored.entries).hash(&mut hasher);
                (stored.application.index(), stored.application.last()).hash(&mut hasher);
            }
            State::Client(client) => {
                (&client.acknowledged, client.stale, client.twice).hash(&mut hasher);
            }
        }
        Some(hasher.finish())
    }
}
