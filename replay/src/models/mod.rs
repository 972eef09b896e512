//! The models that come with the tool, by the name a scenario gives them.

pub mod akka_raft;
pub mod spark;
pub mod two_phase;

use demi_common::nearest;
use demi_schemas::{Scenario, ScenarioError};

use crate::model::Model;
use crate::names::Names;
use crate::sim::Simulator;

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

/// Something to do with whichever model a scenario names.
pub trait Visitor {
    /// What it gives back.
    type Output;
    /// Does it.
    fn visit<M: Model>(self, simulator: Simulator<M>) -> Self::Output;
}

/// Makes the simulator of the model that the scenario names and hands it to the visitor.
///
/// # Errors
/// When there is no such model, or the model does not know one of the scenario's names.
pub fn with_model<V: Visitor>(scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
    let mut names = Names::default();
    match scenario.model.as_str() {
        "akka-raft" => {
            let model = akka_raft::AkkaRaft::new(scenario, &mut names)?;
            Ok(visitor.visit(Simulator::new(model, names, scenario)?))
        }
        spark::config::MODEL => {
            let model = spark::Spark::new(scenario, &mut names)?;
            Ok(visitor.visit(Simulator::new(model, names, scenario)?))
        }
        "two-phase" => {
            let model = two_phase::TwoPhase::new(scenario, &mut names)?;
            Ok(visitor.visit(Simulator::new(model, names, scenario)?))
        }
        other => Err(ScenarioError::Value(format!(
            "there is no model '{other}'; there are {}{}",
            MODELS.join(", "),
            nearest(other, MODELS).map(|m| format!(" (did you mean '{m}'?)")).unwrap_or_default()
        ))),
    }
}
