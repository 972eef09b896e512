//! What is known after an exploration, in words.

use std::fmt;

use demi_schemas::NetworkRule;

use crate::cost::{Bounds, Cost, Spent};
use crate::search::{Ended, Explored};

/// What an exploration promises: no execution within these limits violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// What is counted.
    pub cost: Cost,
    /// Most that an execution spends of it.
    pub bound: u32,
    /// Most faults of an execution.
    pub faults: u32,
    /// Messages from outside, one after the other.
    pub clients: usize,
    /// The network rule.
    pub rule: NetworkRule,
    /// Most steps of an execution; nothing where executions of any length were looked at.
    pub steps: Option<u32>,
}

impl Promise {
    /// What is known after an exploration: of the highest cost that is done and had no violation; nothing where there is none.
    #[must_use]
    pub fn of(explored: &Explored, bounds: Bounds, rule: NetworkRule, clients: usize) -> Option<Promise> {
        let violating = explored.findings.first().map(|finding| finding.spent.cost);
        let done = match (explored.ended, violating) {
            (Ended::Complete, None) => Some(bounds.most.cost),
            (_, Some(cost)) => cost.checked_sub(1),
            // What was begun last is not done.
            (_, None) => (explored.levels.len() as u32).checked_sub(2),
        }?;
        let cut = explored.levels.iter().take(done as usize + 1).any(|level| level.cut > 0);
        let Spent { faults, steps, .. } = bounds.most;
        Some(Promise { cost: bounds.cost, bound: done, faults, clients, rule, steps: cut.then_some(steps) })
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = |n: u64, one: &str| match n {
            0 => format!("no {one}"),
            1 => format!("at most 1 {one}"),
            n => format!("at most {n} {one}s"),
        };
        write!(
            f,
            "No execution from the scenario's beginning with {} from the default order, {} and {} violates an invariant",
            most(self.bound.into(), self.cost.unit()),
            most(self.faults.into(), "fault"),
            most(self.clients as u64, "client message"),
        )?;
        match self.steps {
            Some(steps) => write!(f, " within {steps} steps.")?,
            None => f.write_str(", whatever its length.")?,
        }
        write!(
            f,
            " The network rule is {}. The default order is: messages, the oldest first; then the next client message; then timers, the one \
             that was armed first{}.",
            self.rule,
            match self.cost {
                Cost::Preempt => "; of these first what the actor may take that took something last",
                _ => "",
            }
        )
    }
}
