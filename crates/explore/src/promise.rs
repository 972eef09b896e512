//! What is known after an exploration, in words.

use std::fmt;

use demi_schemas::NetworkRule;

use crate::cost::{Bounds, Cost, Spent};
use crate::explored::{Ended, Explored};

/// Where executions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// At the scenario's beginning, with so many client messages, one after the other.
    Beginning(usize),
    /// At so many configurations of a recorded execution.
    Recorded(usize),
}

/// What an exploration promises: no execution within these limits violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// What is counted.
    pub cost: Cost,
    /// Most that an execution spends of it.
    pub bound: u32,
    /// Most faults of an execution.
    pub faults: u32,
    /// Where executions begin.
    pub origin: Origin,
    /// The network rule.
    pub rule: NetworkRule,
    /// Most steps of an execution; nothing where executions of any length were looked at.
    pub steps: Option<u32>,
}

impl Promise {
    /// What is known after an exploration: of the highest cost that is done and had no violation; nothing where there is none.
    #[must_use]
    pub fn of(explored: &Explored, bounds: Bounds, rule: NetworkRule, origin: Origin) -> Option<Promise> {
        let violating = explored.findings.first().map(|finding| finding.spent.cost);
        let done = match (explored.ended, violating) {
            (Ended::Complete, None) => Some(bounds.most.cost),
            (_, Some(cost)) => cost.checked_sub(1),
            // What was begun last is not done.
            (_, None) => (explored.levels.len() as u32).checked_sub(2),
        }?;
        let cut = explored.levels.iter().take(done as usize + 1).any(|level| level.cut > 0);
        let Spent { faults, steps, .. } = bounds.most;
        Some(Promise { cost: bounds.cost, bound: done, faults, origin, rule, steps: cut.then_some(steps) })
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = |n: u64, one: &str| match n {
            0 => format!("no {one}"),
            1 => format!("at most 1 {one}"),
            n => format!("at most {n} {one}s"),
        };
        match self.origin {
            Origin::Beginning(_) => f.write_str("No execution from the scenario's beginning")?,
            Origin::Recorded(1) => f.write_str("No execution from that configuration of the recorded one")?,
            Origin::Recorded(n) => {
                write!(f, "No execution from any of {n} configurations of the recorded one")?
            }
        }
        let deviations = most(self.bound.into(), self.cost.unit());
        write!(f, " with {deviations} from the default order")?;
        if let Origin::Beginning(clients) = self.origin {
            write!(f, ", {}", most(clients as u64, "client message"))?;
        }
        write!(f, " and {} violates an invariant", most(self.faults.into(), "fault"))?;
        match self.steps {
            Some(steps) => write!(f, " within {steps} steps.")?,
            None => f.write_str(", whatever its length.")?,
        }
        write!(f, " The network rule is {}. The default order is", self.rule)?;
        f.write_str(match self.origin {
            Origin::Beginning(_) => ": messages, the oldest first; then the next client message; then timers",
            Origin::Recorded(_) => {
                " the recorded one, and after its end: messages, the oldest first; then timers"
            }
        })?;
        f.write_str(", the one that was armed first")?;
        f.write_str(match self.cost {
            Cost::Preempt => "; of these first what the actor may take that took something last.",
            _ => ".",
        })
    }
}
