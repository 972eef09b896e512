//! What is inferred from: executions, as the states that their actors told.

use std::sync::Arc;

use demi_predicate::State;

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
