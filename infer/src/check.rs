//! Whether a predicate holds of an execution.

use demi_predicate::Predicate;

use crate::Execution;
use crate::classes::matches;

/// Where a predicate first fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The state, by its number in the execution's records, with which it fails.
    pub at: usize,
    /// The actor or the group that fails; empty where the predicate is about all actors.
    pub of: String,
}

/// Where a predicate about a class of actors first fails.
///
/// # Errors
/// When values cannot be compared or counted with.
pub fn broken(predicate: &Predicate, class: &str, execution: &Execution) -> Result<Option<Broken>, String> {
    let mut checker = predicate.checker();
    for (at, record) in execution.records.iter().enumerate() {
        if matches(class, &record.actor)
            && let Some(of) = checker.tell(&record.actor, record.incarnation, &record.state)?
        {
            return Ok(Some(Broken { at, of: of.to_owned() }));
        }
    }
    Ok(None)
}
