//! Where a predicate over the states of all actors first fails.
//!
//! The states are gone through in the linear extension, in which each beginning is a consistent cut: one global state a state record,
//! and not the lattice of all cuts (R. Cooper and K. Marzullo, "Consistent detection of global predicates", 1991), whose size is
//! exponential. So a failure found is one that can have been; a failure of cuts that this order does not pass is not found.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::predicate::{Predicate, Row, State};
use super::{GlobalState, Query};
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

/// What became of a predicate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckAnswer {
    /// The predicate.
    pub predicate: String,
    /// Whether it holds of every global state looked at.
    pub holds: bool,
    /// Global states looked at: one a state record.
    pub checked: u64,
    /// How many of them it fails of.
    pub failing: u64,
    /// The runs of global states that it fails of, in their order.
    pub failures: Vec<Failure>,
    /// The smallest consistent cut with the states of the first failure, and these states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<GlobalState>,
}

/// All states, each text once.
struct Told {
    states: Vec<State>,
    /// By state record, in the order of the linear extension: its event, its actor, its state.
    records: Vec<(u32, usize, usize)>,
}

impl Query {
    /// Goes through the global states of all actors and says where the predicate fails.
    ///
    /// Time is linear in state records times actors with a state.
    ///
    /// # Errors
    /// When no record tells a state, no state has a variable of that name, values cannot be compared as the predicate does, or a
    /// file cannot be read.
    pub fn check(&self, predicate: &Predicate) -> Result<CheckAnswer, LineageError> {
        let told = self.told()?;
        known_variables(predicate, &told.states)?;
        let names: Vec<&str> = self.index.header().actors.iter().map(|a| a.name.as_str()).collect();
        let mut now: Vec<Option<(u32, usize)>> = vec![None; names.len()];
        let mut answer = CheckAnswer {
            predicate: predicate.text().to_owned(),
            holds: true,
            checked: told.records.len() as u64,
            failing: 0,
            failures: Vec::new(),
            first: None,
        };
        let (mut failing, mut first) = (None::<String>, Vec::new());
        for &(event, actor, state) in &told.records {
            let same = now[actor].is_some_and(|(_, before)| before == state);
            now[actor] = Some((event, state));
            if !same {
                let told_by = now.iter().enumerate().filter_map(|(a, now)| now.map(|(_, state)| (a, state)));
                let rows: Vec<Row<'_>> =
                    told_by.map(|(a, s)| Row { actor: names[a], state: &told.states[s] }).collect();
                let at = |reason| match self.index.name(event) {
                    Ok(name) => LineageError::Question(format!("at {name}: {reason}")),
                    Err(error) => error,
                };
                let found = predicate.failure(&rows).map_err(at)?;
                if found != failing {
                    let name = self.index.name(event)?.to_string();
                    if let (Some(_), Some(last)) = (&failing, answer.failures.last_mut()) {
                        last.until = Some(name.clone());
                    }
                    if let Some(of) = &found {
                        if first.is_empty() {
                            first = now.iter().flatten().map(|(event, _)| *event).collect();
                        }
                        answer.failures.push(Failure { from: name, until: None, of: of.clone() });
                    }
                    failing = found;
                }
            }
            answer.failing += u64::from(failing.is_some());
        }
        answer.holds = answer.failures.is_empty();
        if !first.is_empty() {
            answer.first = Some(self.state_of(&super::CutSpec::default(), &first)?);
        }
        Ok(answer)
    }

    fn told(&self) -> Result<Told, LineageError> {
        let header = self.index.header();
        let events = (0..header.states).map(|i| self.index.states.get(i)).collect::<Result<Vec<_>, _>>()?;
        if events.is_empty() {
            return Err(LineageError::Question(
                "no record tells a state: nothing can be said of the actors' states".into(),
            ));
        }
        let mut known: FxHashMap<String, usize> = FxHashMap::default();
        let mut states = Vec::new();
        let mut records = Vec::with_capacity(events.len());
        self.each_state(&events, &mut |event, text| {
            let state = match known.get(text) {
                Some(&state) => state,
                None => {
                    states.push(State::parse(text));
                    known.insert(text.to_owned(), states.len() - 1);
                    states.len() - 1
                }
            };
            records.push((event, self.index.actor_of(event), state));
        })?;
        let mut placed = Vec::with_capacity(records.len());
        for record in records {
            placed.push((self.index.order(record.0)?, record));
        }
        placed.sort_unstable();
        Ok(Told { states, records: placed.into_iter().map(|(_, record)| record).collect() })
    }
}

/// A variable that no state has is a slip of the pen.
fn known_variables(predicate: &Predicate, states: &[State]) -> Result<(), LineageError> {
    for name in predicate.variables() {
        if states.iter().any(|s| s.variables().any(|v| v == name)) {
            continue;
        }
        let mut all: Vec<&str> = states.iter().flat_map(State::variables).collect();
        all.sort_unstable();
        all.dedup();
        let near = demi_common::nearest(name, all.iter().copied());
        let near = near.map_or(String::new(), |n| format!("; '{n}' is near"));
        let all = all.join(", ");
        return Err(LineageError::Question(format!(
            "no state has a variable '{name}'{near} (there are: {all})"
        )));
    }
    Ok(())
}
