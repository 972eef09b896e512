//! Invariants that the scenario gives as predicates over the actors' states.
//!
//! A state is described and projected to the variables in question once, however often it is met: describing costs many times what
//! a delivery does.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use demi_common::hint::did_you_mean;
use demi_predicate::{Predicate, ReportedState, Row, Scope, State, meant, stands_for};
use demi_schemas::{Scenario, ScenarioError};
use rustc_hash::{FxBuildHasher, FxHasher};
use serde_json::{Map, Value};

use super::Simulator;
use crate::guard;
use crate::model::{Model, View, Violation};
use crate::names::{ActorId, Names};

/// Most states whose projection is kept.
const KEPT: usize = 200_000;

struct Assertion {
    name: String,
    predicate: Predicate,
    same_as: Option<String>,
}

/// The variables in question of a state, and a number that changes when one of them does.
struct Projected {
    state: State,
    hash: u64,
}

type Memo<S> = RwLock<HashMap<S, Arc<Projected>, FxBuildHasher>>;

/// The invariants of a scenario. Copies share what they know of states.
pub struct Asserted<M: Model> {
    all: Arc<[Assertion]>,
    /// The variables that any of them reads.
    variables: Arc<BTreeSet<String>>,
    memo: Arc<Memo<M::State>>,
    /// Whether no invariant of the model is asked besides.
    alone: bool,
}

impl<M: Model> Clone for Asserted<M> {
    fn clone(&self) -> Self {
        Asserted {
            all: self.all.clone(),
            variables: self.variables.clone(),
            memo: self.memo.clone(),
            alone: self.alone,
        }
    }
}

impl<M: Model> Simulator<M> {
    /// Starts all actors once, to see which variables their states have.
    pub(super) fn first_variables(&self) -> Result<(), ScenarioError> {
        let mut sim = self.clone();
        let mut world = sim.empty_world();
        for actor in sim.model.actors().to_vec() {
            sim.start(&mut world, actor);
        }
        let states: Vec<&M::State> = world.cells().iter().flatten().map(|cell| &**cell).collect();
        sim.asserted.known_variables(&sim.model, &sim.names, &states)
    }
}

impl<M: Model> Asserted<M> {
    /// The invariants of a scenario.
    ///
    /// # Errors
    /// When one is no predicate, or is about history or messages.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let mut all = Vec::new();
        let mut variables = BTreeSet::new();
        for assertion in scenario.invariant.all() {
            let wrong =
                |reason: String| ScenarioError::Value(format!("invariant '{}': {reason}", assertion.name));
            let predicate = Predicate::parse(&assertion.holds).map_err(|e| wrong(e.to_string()))?;
            if predicate.scope().is_of_messages() || matches!(predicate.scope(), Scope::Neighbours(..)) {
                return Err(wrong(
                    "it speaks of messages that were delivered, and a configuration is judged by its states: leave out \
                     MESSAGES, CHAIN and NEIGHBOURS"
                        .to_owned(),
                ));
            }
            if predicate.scope().is_history() || predicate.reads_before() {
                return Err(wrong(
                    "it speaks of the past, and a configuration is judged by itself: leave out EVER and prev. What two \
                     actors must never both have been is seen where both are it at once, as in \
                     WHERE role = 'Leader' GROUP BY term HAVING count(*) <= 1"
                        .to_owned(),
                ));
            }
            variables.extend(predicate.variables().into_iter().map(str::to_owned));
            all.push(Assertion { name: assertion.name, predicate, same_as: assertion.same_as });
        }
        Ok(Asserted {
            all: all.into(),
            variables: Arc::new(variables),
            memo: Arc::new(Memo::default()),
            alone: scenario.invariants.as_ref().is_some_and(Vec::is_empty),
        })
    }

    /// A variable that no actor's state has once all have started is a slip of the pen.
    pub(crate) fn known_variables(
        &self,
        model: &M,
        names: &Names,
        states: &[&M::State],
    ) -> Result<(), ScenarioError> {
        let described: Vec<Value> = states.iter().map(|state| describe(model, names, state)).collect();
        let known: BTreeSet<&str> = described
            .iter()
            .filter_map(Value::as_object)
            .flat_map(|o| o.keys().map(String::as_str))
            .collect();
        if known.is_empty() && !described.is_empty() {
            let reason = "invariant: no actor's state has variables: in Rust, give the model's Logs a 'describe' that returns an \
                          object; in other languages, make states objects";
            return Err(ScenarioError::Value(reason.to_owned()));
        }
        match self.variables.iter().find(|v| !known.iter().any(|known| stands_for(v, known))) {
            Some(absent) if !described.is_empty() => {
                let (hint, known) =
                    (did_you_mean(absent, known.iter().copied()), Vec::from_iter(known).join(", "));
                let reason =
                    format!("invariant: no actor has a variable '{absent}'{hint} (there are: {known})");
                Err(ScenarioError::Value(reason))
            }
            _ => Ok(()),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a fingerprint can be of one of them, or of an invariant of the model that is asked besides.
    #[must_use]
    pub fn can_be(&self, fingerprint: &str) -> bool {
        let name = fingerprint.split(':').next();
        self.all.is_empty() || !self.alone || self.all.iter().any(|a| Some(a.name.as_str()) == name)
    }

    /// Whether each says what an invariant of the model says, so that what the model knows of that one leads searches.
    pub(crate) fn all_known_to_model(&self) -> bool {
        self.all.iter().all(|a| a.same_as.is_some())
    }

    /// Whether they stay true when actors take each other's places.
    pub(crate) fn names_nobody(&self, names: &Names) -> bool {
        let is_actor = |text: &str| names.find(text).is_some();
        self.all.iter().all(|a| a.predicate.names_nobody(&is_actor))
    }

    /// The number that changes when a variable in question does, the model's own `watch` included where its invariants are asked too.
    pub(crate) fn watch(&self, model: &M, names: &Names, state: &M::State, own: Option<u64>) -> Option<u64> {
        let number = self.projected(model, names, state).hash;
        if self.alone { Some(number) } else { Some(number ^ own?.rotate_left(17)) }
    }

    /// Adds what a configuration breaks. Where an invariant of the model is said to say the same, that one is asked, and the
    /// predicate must agree.
    ///
    /// # Errors
    /// When values cannot be compared, or a predicate and the model's invariant do not agree.
    pub fn check(
        &self,
        model: &M,
        view: &View<'_, M::State>,
        found: &mut Vec<Violation>,
    ) -> Result<(), String> {
        // A predicate that stands for an invariant of the model is asked where that one is broken: at each witness.
        let asked = |a: &&Assertion| match &a.same_as {
            None => true,
            Some(own) => found.iter().any(|v| v.fingerprint.split(':').next() == Some(own)),
        };
        let asked: Vec<&Assertion> = self.all.iter().filter(asked).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let projected: Vec<(ActorId, Arc<Projected>)> = view
            .actors()
            .filter_map(|actor| Some((actor, self.projected(model, view.names, view.state(actor)?))))
            .collect();
        let told = |(actor, projected)| {
            let (actor, projected): (&ActorId, &Arc<Projected>) = (actor, projected);
            ReportedState { actor: view.names.get(*actor), state: &projected.state }
        };
        let told: Vec<ReportedState<'_>> = projected.iter().map(|(a, p)| told((a, p))).collect();
        for assertion in asked {
            let failing = match assertion.predicate.scope() {
                Scope::Pairs(..) => {
                    let others = |i: usize| (0..told.len()).filter(move |j| *j != i).map(move |j| (i, j));
                    let pairs: Vec<(usize, usize)> = (0..told.len()).flat_map(others).collect();
                    let rows: Vec<Row<'_>> =
                        pairs.iter().map(|(i, j)| Row::pair(told[*i], told[*j])).collect();
                    let failing = assertion.predicate.failing(&rows)?;
                    let both = |row: usize| [pairs[row].0, pairs[row].1];
                    failing.into_iter().map(|f| f.rows.into_iter().flat_map(both).collect()).collect()
                }
                _ => {
                    let rows: Vec<Row<'_>> = told.iter().map(|told| Row::one(*told)).collect();
                    let failing = assertion.predicate.failing(&rows)?;
                    failing.into_iter().map(|f| f.rows).collect::<Vec<_>>()
                }
            };
            let affected: BTreeSet<Vec<ActorId>> = failing
                .into_iter()
                .map(|rows: Vec<usize>| {
                    let mut actors: Vec<ActorId> = rows.into_iter().map(|row| projected[row].0).collect();
                    actors.sort_unstable_by(|a, b| view.names.get(*a).cmp(view.names.get(*b)));
                    actors.dedup();
                    actors
                })
                .collect();
            match &assertion.same_as {
                Some(own) => self.agree(model, view, (assertion, own), !affected.is_empty())?,
                None => found.extend(affected.into_iter().map(|actors| {
                    let names: Vec<&str> = actors.iter().map(|actor| view.names.get(*actor)).collect();
                    let fingerprint = format!("{}:{}", assertion.name, names.join(":"));
                    Violation { fingerprint, affected: actors }
                })),
            }
        }
        Ok(())
    }

    /// Whether the model's own invariant, asked without memory of earlier configurations, says what the predicate says.
    fn agree(
        &self,
        model: &M,
        view: &View<'_, M::State>,
        (assertion, own): (&Assertion, &str),
        broken: bool,
    ) -> Result<(), String> {
        let mut found = Vec::new();
        model.check(view, &mut M::History::default(), &mut found);
        let theirs = found.iter().any(|v| v.fingerprint.split(':').next() == Some(own));
        if theirs == broken {
            return Ok(());
        }
        let (says, said) = if broken { ("is broken", "holds") } else { ("holds", "is broken") };
        Err(format!("'{}' {says} where '{own}', which it is said to be the same as, {said}", assertion.name))
    }

    fn projected(&self, model: &M, names: &Names, state: &M::State) -> Arc<Projected> {
        if let Some(known) = self.memo.read().unwrap_or_else(PoisonError::into_inner).get(state) {
            return known.clone();
        }
        let mut kept = Map::new();
        if let Value::Object(all) = describe(model, names, state) {
            for name in self.variables.iter() {
                let meant = meant(name, all.keys().map(String::as_str));
                kept.extend(meant.and_then(|own| all.get(own)).map(|value| (name.clone(), value.clone())));
            }
        }
        let mut hasher: FxHasher = FxBuildHasher.build_hasher();
        hasher.write(Value::Object(kept.clone()).to_string().as_bytes());
        let projected = Arc::new(Projected { hash: hasher.finish(), state: State::new(Value::Object(kept)) });
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        if memo.len() >= KEPT {
            memo.clear();
        }
        memo.insert(state.clone(), projected.clone());
        projected
    }
}

fn describe<M: Model>(model: &M, names: &Names, state: &M::State) -> Value {
    guard::or(Value::Null, || model.logs().describe(state, names))
}
