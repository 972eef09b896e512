//! The system: its nodes, its client, and how it is configured.

use std::sync::Arc;

use demi_replay::{ActorId, Names};
use demi_schemas::{Scenario, ScenarioError};
use slog::{Discard, Logger, o};

use crate::settings::{Invariant, Settings};

/// A cluster of nodes and a client. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct TikvRaft {
    pub(crate) settings: Settings,
    /// What the library logs is dropped.
    pub(crate) logger: Logger,
    /// The nodes in the order of their numbers, then the client.
    pub(crate) actors: Arc<[ActorId]>,
    pub(crate) invariants: Arc<[Invariant]>,
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
