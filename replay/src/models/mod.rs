//! The models that come with the tool, by the name a scenario gives them.

pub mod akka_raft;
pub mod spark;
pub mod two_phase;

use demi_common::nearest;
use demi_schemas::{Scenario, ScenarioError};

pub use crate::registry::Visitor;
use crate::registry::{Models, Registry};

/// Names of the models that [`with_model`] knows.
pub const MODELS: [&str; 3] = ["akka-raft", "spark", "two-phase"];

/// The error that a model has no such name, with the nearest that it has.
fn unknown_name(model: &str, what: &'static str, name: &str, known: &[&str]) -> ScenarioError {
    ScenarioError::UnknownName {
        what,
        name: name.to_owned(),
        model: model.to_owned(),
        nearest: nearest(name, known.iter().copied()).map(str::to_owned),
    }
}

/// Where a name stands among those that a model has; an error says that it has no such name.
fn place(model: &str, what: &'static str, name: &str, known: &[&str]) -> Result<usize, ScenarioError> {
    known.iter().position(|k| *k == name).ok_or_else(|| unknown_name(model, what, name, known))
}

/// The included models as a registry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Included;

impl Registry for Included {
    fn names(&self) -> Vec<&str> {
        MODELS.to_vec()
    }

    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError> {
        Models::new()
            .with("akka-raft", akka_raft::AkkaRaft::new)
            .with(spark::config::MODEL, spark::Spark::new)
            .with("two-phase", two_phase::TwoPhase::new)
            .offer(scenario, visitor)
    }
}

/// Makes the simulator of the included model that the scenario names and hands it to the visitor.
///
/// # Errors
/// When there is no such model, or the model does not know one of the scenario's names.
pub fn with_model<V: Visitor>(scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
    Included.visit(scenario, visitor)
}
