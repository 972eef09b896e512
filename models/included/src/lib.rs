//! The models that come with the tool, by the name a scenario gives them.

pub use demi_replay::Visitor;
use demi_replay::{Models, Registry};
use demi_schemas::{Scenario, ScenarioError};

/// Names of the models that [`with_model`] knows.
pub const MODELS: [&str; 3] = ["akka-raft", "spark", "two-phase"];

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
            .with("akka-raft", demi_akka_raft::AkkaRaft::new)
            .with(demi_spark::config::MODEL, demi_spark::Spark::new)
            .with("two-phase", demi_two_phase::TwoPhase::new)
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
