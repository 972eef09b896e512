//! Where a predicate over the states of all actors first fails.
//!
//! The states are gone through in the linear extension, in which each beginning is a consistent cut: one global state a state record,
//! and not the lattice of all cuts (R. Cooper and K. Marzullo, "Consistent detection of global predicates", 1991), whose size is
//! exponential. So a failure found is one that can have been; a failure of cuts that this order does not pass is not found.

use std::sync::{Arc, OnceLock};

use demi_predicate::{Class, Gather, Predicate, Scope, State, stands_for};
use demi_schemas::Kind;
use serde::Serialize;

use super::{Delivery, GlobalState, Query};
use crate::error::LineageError;

/// A run of global states at which a predicate fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The state record with which it begins.
    pub from: String,
    /// The state record with which it ends; absent where it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The actor or the group that fails; empty where the predicate is about all actors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
}

/// The outcome of checking a predicate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckAnswer {
    /// The predicate.
    pub predicate: String,
    /// Whether it holds of every global state looked at.
    pub holds: bool,
    /// A variable that no state of the actors in question has, or messages that nobody received, so that nothing could be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// Global states looked at, one a state record; messages or chains, where the predicate is about these.
    pub checked: u64,
    /// Whether there are more than were looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// How many of them it fails of.
    pub failing: u64,
    /// The runs of global states that it fails of, in their order.
    pub failures: Vec<Failure>,
    /// The smallest consistent cut with the states of the first failure, and these states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<GlobalState>,
    /// Whether this is about pairs of states, and not about the global states of one order.
    #[serde(skip)]
    pub of_pairs: bool,
}

/// The states in the records of an execution, in the order of its linear extension. Each text is read once.
#[derive(Debug, Default)]
pub struct StateHistory {
    states: Vec<Arc<State>>,
    records: Vec<Record>,
    pub(super) delivered: OnceLock<Vec<Delivery>>,
}

impl StateHistory {
    /// The states, each text once.
    pub(super) fn states(&self) -> &[Arc<State>] {
        &self.states
    }

    /// The records with a state, in their order.
    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }
}

/// A state record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) event: u32,
    /// Its place in the linear extension.
    pub(super) order: u32,
    actor: usize,
    incarnation: u32,
    pub(super) state: usize,
}

impl CheckAnswer {
    /// The answer before anything was looked at.
    pub(super) fn new(predicate: &Predicate, absent: Option<String>) -> CheckAnswer {
        CheckAnswer {
            predicate: predicate.text().to_owned(),
            holds: true,
            absent,
            checked: 0,
            unfinished: false,
            failing: 0,
            failures: Vec::new(),
            first: None,
            of_pairs: false,
        }
    }
}

impl Query {
    /// Goes through the global states of the actors of a class, in the order of the linear extension, and says where the predicate fails.
    /// Where a variable is absent from all of their states the answer names it: nothing was checked then.
    ///
    /// Time is linear in state records times actors with a state.
    ///
    /// # Errors
    /// When values cannot be compared as the predicate does, or a file cannot be read.
    pub fn check_history(
        &self,
        told: &StateHistory,
        predicate: &Predicate,
        class: &Class,
    ) -> Result<CheckAnswer, LineageError> {
        let actors = &self.index.header().actors;
        if predicate.scope().is_of_messages() {
            return self.check_messages(told, predicate, class);
        }
        let among: Vec<bool> = actors.iter().map(|a| class.has(&a.name, 0)).collect();
        let exchanged: &[Delivery] = match predicate.scope() {
            Scope::Neighbours(..) => told.deliveries(self)?,
            _ => &[],
        };
        let mut exchanged = exchanged.iter().peekable();
        let is_among = |d: &Delivery| {
            let known = |name: &str| actors.iter().position(|a| a.name == name).is_some_and(|a| among[a]);
            d.delivered.links.iter().take(2).all(|(name, _)| known(name))
        };
        let mut checker = predicate.checker();
        let mut now: Vec<Option<u32>> = vec![None; actors.len()];
        let mut answer = CheckAnswer::new(predicate, told.absent(predicate, &among).map(str::to_owned));
        if answer.absent.is_some() {
            return Ok(answer);
        }
        let (mut failing, mut first) = (None::<String>, Vec::new());
        for (number, record) in told.records.iter().enumerate() {
            let Record { event, actor, incarnation, state, .. } = *record;
            let mut met = Vec::new();
            while let Some(next) = exchanged.next_if(|d| d.after() <= number + 1) {
                met.extend(is_among(next).then_some(next));
            }
            if !among[actor] && met.is_empty() {
                continue;
            }
            if among[actor] {
                answer.checked += 1;
                now[actor] = Some(event);
            }
            let at = |reason| match self.index.name(event) {
                Ok(name) => LineageError::Question(format!("at {name}: {reason}")),
                Err(error) => error,
            };
            if among[actor] {
                checker.tell(&actors[actor].name, incarnation, &told.states[state]).map_err(at)?;
            }
            for delivery in met {
                checker.deliver(&delivery.delivered).map_err(at)?;
            }
            let found = checker.failure();
            if found != failing.as_deref() {
                let name = self.index.name(event)?.to_string();
                if let (Some(_), Some(last)) = (&failing, answer.failures.last_mut()) {
                    last.until = Some(name.clone());
                }
                if let Some(of) = found {
                    if first.is_empty() {
                        first = now.iter().flatten().copied().collect();
                    }
                    answer.failures.push(Failure { from: name, until: None, of: of.to_owned() });
                }
                failing = found.map(str::to_owned);
            }
            answer.failing += u64::from(among[actor] && failing.is_some());
        }
        answer.holds = answer.failures.is_empty();
        if !first.is_empty() {
            answer.first = Some(self.state_of(&super::CutSpec::default(), &first)?);
        }
        Ok(answer)
    }

    /// The states of all actors, in the order of the linear extension.
    ///
    /// # Errors
    /// When no record tells a state, or a file cannot be read.
    pub fn state_history(&self) -> Result<StateHistory, LineageError> {
        if self.index.header().states == 0 {
            return Err(LineageError::Question(
                "no record tells a state: nothing can be said of the actors' states".into(),
            ));
        }
        self.state_history_or_empty()
    }

    /// As [`told`](Self::told), and nothing where no record tells a state.
    pub(super) fn state_history_or_empty(&self) -> Result<StateHistory, LineageError> {
        let header = self.index.header();
        let events = (0..header.states).map(|i| self.index.states().get(i)).collect::<Result<Vec<_>, _>>()?;
        let mut gather = Gather::default();
        let mut told = StateHistory::default();
        let mut placed = Vec::with_capacity(events.len());
        self.each_state(&events, &mut |event, text| placed.push((event, gather.add(text))))?;
        told.states = gather.finish();
        let place = |(event, state): (u32, usize)| {
            let actor = self.index.actor_of(event);
            let incarnation = self.index.name(event)?.incarnation;
            let order = self.index.order(event)?;
            Ok::<_, LineageError>(Record { event, order, actor, incarnation, state })
        };
        told.records = placed.into_iter().map(place).collect::<Result<Vec<_>, _>>()?;
        told.records.sort_unstable_by_key(|record| (record.order, record.event));
        Ok(told)
    }

    /// The records that say that an invariant was broken.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn violations(&self) -> Result<Vec<String>, LineageError> {
        let all = 0..self.index.header().events;
        let mut found = Vec::new();
        self.each_text("kind", std::slice::from_ref(&all), &mut |event, kind| {
            if kind == Kind::Violation.as_str() {
                found.push(event);
            }
        })?;
        found.sort_unstable();
        found.into_iter().map(|event| Ok(self.index.name(event)?.to_string())).collect()
    }

    /// Calls `f` with each state, in the order of the linear extension: whose it is, in which incarnation, and the state.
    pub fn each_recorded_state(&self, told: &StateHistory, f: &mut dyn FnMut(&str, u32, &Arc<State>)) {
        for record in &told.records {
            f(&self.index.header().actors[record.actor].name, record.incarnation, &told.states[record.state]);
        }
    }
}

impl StateHistory {
    /// The event with which a state was told, by the number of the record.
    #[must_use]
    pub fn event(&self, record: usize) -> Option<u32> {
        self.records.get(record).map(|record| record.event)
    }

    /// The first variable of a predicate that no state of these actors has.
    pub(super) fn absent<'p>(&self, predicate: &'p Predicate, among: &[bool]) -> Option<&'p str> {
        let mut absent = predicate.variables();
        for record in self.records.iter().filter(|record| among[record.actor]) {
            if absent.is_empty() {
                break;
            }
            self.states[record.state].variables().for_each(|name| {
                absent.retain(|wanted| !stands_for(wanted, name));
            });
        }
        absent.into_iter().next()
    }

    /// The names of all variables.
    pub(super) fn variables(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.states.iter().flat_map(|s| s.variables()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
