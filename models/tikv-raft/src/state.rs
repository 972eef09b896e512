//! The state of an actor.

use crate::client::Client;
use crate::node::Node;

/// A node or the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// A node.
    Node(Box<Node>),
    /// The client.
    Client(Client),
}

impl State {
    /// The node.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        match self {
            State::Node(node) => Some(node),
            State::Client(_) => None,
        }
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> Option<&Client> {
        match self {
            State::Client(client) => Some(client),
            State::Node(_) => None,
        }
    }
}
