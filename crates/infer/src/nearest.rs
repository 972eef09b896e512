//! What came nearest to breaking an invariant that held: the rows to look at before it is believed.

use demi_predicate::{Checker, NearMiss, Predicate};
use glob::Pattern;

use crate::Execution;
use crate::execution::is_between;

/// States, and messages, of each execution that are looked at: looking costs several times what checking does.
const LOOKED: usize = 100_000;
/// How many rows are told of an invariant.
const TOLD: usize = 2;

/// A row, or a group of rows, of an execution that came near to breaking an invariant.
#[derive(Clone, Debug, PartialEq)]
pub struct NearFailure {
    /// The execution, by its number.
    pub execution: usize,
    /// The record of a state, or the message, with which it came, by its number in the execution.
    pub at: usize,
    /// Whether that is a message.
    pub is_message: bool,
    /// How far it was from failing, and what it was.
    pub near: NearMiss,
}

/// The nearest of what is asked, without those that read the same values.
#[derive(Default)]
struct Nearest(Vec<NearFailure>);

impl Nearest {
    fn take(&mut self, checker: &mut Checker<'_>, (execution, at, is_message): (usize, usize, bool)) {
        let Some(near) = checker.take_nearest() else { return };
        let close = NearFailure { execution, at, is_message, near };
        match self.0.iter_mut().find(|known| known.near.values == close.near.values) {
            Some(known) if close.near.is_nearer(&known.near) => *known = close,
            Some(_) => return,
            None => self.0.push(close),
        }
        // The first of those that are as near as each other stays first.
        self.0.sort_by(|a, b| a.near.slack.total_cmp(&b.near.slack).then(b.near.rows.cmp(&a.near.rows)));
        self.0.truncate(TOLD);
        if let Some(last) = self.0.get(TOLD - 1) {
            checker.only_nearer(&last.near);
        }
    }
}

/// What came nearest to breaking a predicate, of the actors of a class, or of one class for each place of a message or chain.
pub(crate) fn nearest(
    executions: &[Execution],
    predicate: &Predicate,
    places: &[Pattern],
) -> Vec<NearFailure> {
    let mut nearest = Nearest::default();
    for (number, execution) in executions.iter().enumerate() {
        let mut checker = predicate.checker().watching();
        if let Some(last) = nearest.0.get(TOLD - 1) {
            checker.only_nearer(&last.near);
        }
        if predicate.scope().is_of_messages() {
            for (at, delivered) in execution.messages.iter().take(LOOKED).enumerate() {
                if is_between(delivered, places) && checker.deliver(delivered).is_ok() {
                    nearest.take(&mut checker, (number, at, true));
                }
            }
            continue;
        }
        for (at, record) in execution.records.iter().take(LOOKED).enumerate() {
            let is_among = places.first().is_none_or(|place| place.matches(&record.actor));
            if is_among && checker.tell(&record.actor, record.incarnation, &record.state).is_ok() {
                nearest.take(&mut checker, (number, at, false));
            }
        }
    }
    nearest.0
}
