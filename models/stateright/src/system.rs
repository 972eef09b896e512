//! A system of actors, and what a scenario says of it.

use std::sync::Arc;

use demi_common::nearest;
use demi_replay::{ActorId, Names};
use demi_schemas::{NetworkRule, Scenario, ScenarioError};
use stateright::actor::{ActorModel, ActorModelState, LossyNetwork, Network};
use stateright::{Expectation, Model as _};

use crate::state::State;
use crate::{History, Part};

/// A system of Stateright actors. Cloning it is cheap.
pub struct System<A: Part, C = (), H = ()>
where
    H: History,
{
    pub(crate) system: Arc<ActorModel<A, C, H>>,
    /// The state in which it begins.
    pub(crate) first: Arc<ActorModelState<A, H>>,
    pub(crate) actors: Arc<[ActorId]>,
    /// Which of the properties are invariants, or targets.
    pub(crate) asked: Arc<[usize]>,
    /// Whether the scenario's network loses what a later message overtakes.
    pub(crate) loses: bool,
}

impl<A: Part, C, H: History> Clone for System<A, C, H> {
    fn clone(&self) -> Self {
        System {
            system: Arc::clone(&self.system),
            first: Arc::clone(&self.first),
            actors: Arc::clone(&self.actors),
            asked: Arc::clone(&self.asked),
            loses: self.loses,
        }
    }
}

impl<A, C, H> System<A, C, H>
where
    A: Part,
    C: Send + Sync + 'static,
    H: History,
{
    /// The model of a system. Its `always` properties are invariants. With `invariants`, the scenario picks properties by
    /// name; a `sometimes` property that it names is a target: a state in which it holds counts as a violation.
    ///
    /// # Errors
    /// When the scenario names a property that is not there or is an `eventually` property, asks for repeated messages, or
    /// has a network that does what the system's own never does.
    pub fn new(
        system: ActorModel<A, C, H>,
        scenario: &Scenario,
        names: &mut Names,
    ) -> Result<Self, ScenarioError> {
        let asked = asked(&system, scenario)?;
        let ordered = matches!(system.init_network, Network::Ordered(_));
        let lossy = system.lossy_network == LossyNetwork::Yes;
        let none = |why: &str| ScenarioError::Value(why.to_owned());
        let wrong = |why: &str| Err(none(why));
        match scenario.network {
            NetworkRule::Unordered if ordered => {
                return wrong("the system's network is ordered: its scenario needs network = 'fifo'");
            }
            NetworkRule::FifoLoss if ordered && !lossy => {
                return wrong("the system's network loses nothing: its scenario needs network = 'fifo'");
            }
            _ => {}
        }
        if scenario.duplicates {
            return wrong(
                "whether messages are repeated is what the system's own network says: leave 'duplicates' out",
            );
        }
        let actors = system.actors.iter().enumerate().map(|(index, actor)| {
            let name = actor.name();
            let name = if name.is_empty() { "actor" } else { name.as_str() };
            names.id(&format!("{name}-{index}"))
        });
        let actors = actors.collect();
        let first = system.init_states().pop().ok_or_else(|| none("the system has no first state"))?;
        let loses = scenario.network == NetworkRule::FifoLoss;
        Ok(System { system: Arc::new(system), first: Arc::new(first), actors, asked, loses })
    }

    /// The system.
    #[must_use]
    pub fn system(&self) -> &ActorModel<A, C, H> {
        &self.system
    }

    /// An actor's number in the system.
    pub(crate) fn id(&self, actor: ActorId) -> Option<(usize, &A)> {
        let index = self.actors.iter().position(|&a| a == actor)?;
        Some((index, &self.system.actors[index]))
    }

    pub(crate) fn set(&self, state: &mut State<A, H>, next: ActorModelState<A, H>) {
        state.inside = (self.system.within_boundary)(&self.system.cfg, &next);
        state.system = Arc::new(next);
    }
}

/// The properties that are invariants or targets.
fn asked<A: Part, C, H: History>(
    system: &ActorModel<A, C, H>,
    scenario: &Scenario,
) -> Result<Arc<[usize]>, ScenarioError> {
    let all = || system.properties.iter().enumerate();
    let Some(named) = &scenario.invariants else {
        return Ok(all().filter(|(_, p)| p.expectation == Expectation::Always).map(|(at, _)| at).collect());
    };
    let find = |name: &String| {
        let (at, property) =
            all().find(|(_, p)| p.name == name).ok_or_else(|| ScenarioError::UnknownName {
                what: "property",
                name: name.clone(),
                model: scenario.model.as_str().to_owned(),
                nearest: nearest(name, all().map(|(_, p)| p.name)).map(str::to_owned),
            })?;
        match property.expectation {
            Expectation::Always | Expectation::Sometimes => Ok(at),
            Expectation::Eventually => Err(ScenarioError::Value(format!(
                "'{name}' says what happens eventually, which no execution that ends can break"
            ))),
        }
    };
    named.iter().map(find).collect()
}
