//! What is inferred from: executions, as the states that their actors told.

use std::sync::Arc;

use demi_predicate::{Predicate, State};
use glob::Pattern;

/// A state that an actor told.
#[derive(Clone, Debug)]
pub struct Record {
    /// The actor's name.
    pub actor: Arc<str>,
    /// Its incarnation.
    pub incarnation: u32,
    /// The state.
    pub state: Arc<State>,
}

/// An execution: its states in an order in which each beginning is a consistent cut.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// What people call it.
    pub name: String,
    /// The states.
    pub records: Vec<Record>,
}

impl Execution {
    /// The same execution, of the actors of a class alone.
    pub(crate) fn among(&self, class: &Pattern) -> Execution {
        let records = self.records.iter().filter(|record| class.matches(&record.actor));
        Execution { name: self.name.clone(), records: records.cloned().collect() }
    }

    /// Whether a predicate holds throughout; not where its values cannot be compared.
    pub(crate) fn fits(&self, predicate: &Predicate) -> bool {
        let mut checker = predicate.checker();
        let mut told = self.records.iter();
        told.all(|r| matches!(checker.tell(&r.actor, r.incarnation, &r.state), Ok(None)))
    }
}
