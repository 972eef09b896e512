//! Models by the names that scenarios give them: those that are included, and a user's own.
//!
//! A model is a type, so a registry is one as well: [`Models::with`] gives back a registry that knows one model more.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use demi_common::nearest;
use demi_schemas::summary::ProgramWork;
use demi_schemas::{Scenario, ScenarioError};

use crate::model::Model;
use crate::names::Names;
use crate::sim::Simulator;

/// Something to do with whichever model a scenario names.
pub trait Visitor {
    /// What it gives back.
    type Output;
    /// Does it.
    fn visit<M: Model>(self, simulator: Simulator<M>) -> Self::Output;
}

/// Models by name.
pub trait Registry {
    /// The names that it knows.
    fn names(&self) -> Vec<&str>;

    /// Makes the simulator of the model that the scenario names and hands it to the visitor; gives the visitor back
    /// where there is no such model.
    ///
    /// # Errors
    /// When the model does not know one of the scenario's names.
    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError>;

    /// Why the models cannot go on, where one of them runs elsewhere and failed. What is not known then counts as no
    /// violation.
    fn fault(&self) -> Option<String> {
        None
    }

    /// From now on a model that answers the same question in two ways is no fault: the answer that comes twice of three times counts, or the
    /// first one. Models in this program are left alone.
    fn tolerate(&self) {}

    /// From now on handlers of models in this program run in a process of their own first, with so many bytes of memory: one that ends that
    /// process is a finding. By default nothing runs elsewhere.
    fn in_child(&self, memory: u64) {
        let _ = memory;
    }

    /// How many questions got two answers, where that is tolerated, of how many that were asked twice.
    fn strays(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Whether a model answered the same question in two ways: it is not deterministic.
    fn differs(&self) -> bool {
        false
    }

    /// What processes did so far, where a model is a program that runs as it is.
    fn programs(&self) -> Option<ProgramWork> {
        None
    }

    /// From now on a model that works longer than for one step looks whether this is set, and gives up then.
    fn stop_with(&self, stop: &Arc<AtomicBool>) {
        let _ = stop;
    }

    /// Makes the simulator of the model that the scenario names and hands it to the visitor.
    ///
    /// # Errors
    /// When there is no such model, or the model does not know one of the scenario's names.
    fn visit<V: Visitor>(&self, scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
        self.offer(scenario, visitor)?.map_err(|_| {
            let (other, names) = (scenario.model.as_str(), self.names());
            if names.is_empty() {
                return ScenarioError::Value(format!("there is no model '{other}'; there are none"));
            }
            let near = nearest(other, names.iter().copied());
            ScenarioError::Value(format!(
                "there is no model '{other}'; there are {}{}",
                names.join(", "),
                near.map(|m| format!(" (did you mean '{m}'?)")).unwrap_or_default()
            ))
        })
    }
}

/// A registry without a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModels;

impl Registry for NoModels {
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn offer<V: Visitor>(&self, _: &Scenario, visitor: V) -> Result<Result<V::Output, V>, ScenarioError> {
        Ok(Err(visitor))
    }
}

/// A registry that is put together: models with names, and whatever another registry knows.
///
/// ```
/// use demi_two_phase::TwoPhase;
/// use demi_replay::registry::{Models, Registry};
///
/// let models = Models::new().with("my-commit", TwoPhase::new);
/// assert_eq!(models.names(), ["my-commit"]);
/// ```
#[derive(Clone, Debug)]
pub struct Models<R = NoModels> {
    registry: R,
}

impl Models {
    /// No models yet.
    #[must_use]
    pub fn new() -> Self {
        Models { registry: NoModels }
    }
}

impl Default for Models {
    fn default() -> Self {
        Models::new()
    }
}

impl<R: Registry> Models<R> {
    /// With one model more. `make` reads the scenario and gives the actors their names. Of two models with one name
    /// the later counts.
    #[must_use]
    pub fn with<M, F>(self, name: &'static str, make: F) -> Models<Named<F, R>>
    where
        M: Model,
        F: Fn(&Scenario, &mut Names) -> Result<M, ScenarioError>,
    {
        Models { registry: Named { name, make, rest: self.registry } }
    }

    /// With all models of another registry, such as the included ones.
    #[must_use]
    pub fn and<S: Registry>(self, other: S) -> Models<Both<R, S>> {
        Models { registry: Both(self.registry, other) }
    }
}

impl<R: Registry> Registry for Models<R> {
    fn names(&self) -> Vec<&str> {
        self.registry.names()
    }

    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError> {
        self.registry.offer(scenario, visitor)
    }

    fn fault(&self) -> Option<String> {
        self.registry.fault()
    }

    fn differs(&self) -> bool {
        self.registry.differs()
    }

    fn tolerate(&self) {
        self.registry.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        self.registry.strays()
    }
}

/// One model, and the rest of a registry.
#[derive(Clone, Debug)]
pub struct Named<F, R> {
    name: &'static str,
    make: F,
    rest: R,
}

impl<M, F, R> Registry for Named<F, R>
where
    M: Model,
    F: Fn(&Scenario, &mut Names) -> Result<M, ScenarioError>,
    R: Registry,
{
    fn names(&self) -> Vec<&str> {
        let mut names = self.rest.names();
        names.push(self.name);
        names
    }

    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError> {
        if scenario.model != *self.name {
            return self.rest.offer(scenario, visitor);
        }
        let mut names = Names::default();
        let model = (self.make)(scenario, &mut names)?;
        Ok(Ok(visitor.visit(Simulator::new(model, names, scenario)?)))
    }

    fn fault(&self) -> Option<String> {
        self.rest.fault()
    }

    fn differs(&self) -> bool {
        self.rest.differs()
    }

    fn tolerate(&self) {
        self.rest.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        self.rest.strays()
    }
}

/// Two registries; what the first does not know, the second is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Both<R, S>(pub R, pub S);

impl<R: Registry, S: Registry> Registry for Both<R, S> {
    fn names(&self) -> Vec<&str> {
        let mut names = self.0.names();
        names.extend(self.1.names());
        names
    }

    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError> {
        match self.0.offer(scenario, visitor)? {
            Ok(output) => Ok(Ok(output)),
            Err(visitor) => self.1.offer(scenario, visitor),
        }
    }

    fn fault(&self) -> Option<String> {
        self.0.fault().or_else(|| self.1.fault())
    }

    fn differs(&self) -> bool {
        self.0.differs() || self.1.differs()
    }

    fn tolerate(&self) {
        self.0.tolerate();
        self.1.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        let (one, other) = (self.0.strays(), self.1.strays());
        (one.0 + other.0, one.1 + other.1)
    }
}

/// The error that a model has no such name, with the nearest that it has.
pub fn unknown_name(model: &str, what: &'static str, name: &str, known: &[&str]) -> ScenarioError {
    ScenarioError::UnknownName {
        what,
        name: name.to_owned(),
        model: model.to_owned(),
        nearest: nearest(name, known.iter().copied()).map(str::to_owned),
    }
}

/// Where a name stands among those that a model has.
///
/// # Errors
/// When it is not among them.
pub fn place(model: &str, what: &'static str, name: &str, known: &[&str]) -> Result<usize, ScenarioError> {
    known.iter().position(|k| *k == name).ok_or_else(|| unknown_name(model, what, name, known))
}
