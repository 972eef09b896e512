//! What one job came to: all that crosses threads or enters the ledger.

use demi_replay::Model;
use demi_schemas::Schedule;
use demi_schemas::summary::{CurvePoint, PhaseSummary};
use serde::{Deserialize, Serialize};

use crate::problem::size::Size;
use crate::reduce::reducer::Reducer;
use crate::reduce::stats::Account;

/// What one job came to. Ids differ between simulators, texts do not, so the schedule is text.
#[derive(Clone, Default)]
pub struct Solution {
    /// The schedule.
    pub schedule: Schedule,
    /// Its size.
    pub size: Size,
    /// What its phases did.
    pub phases: Vec<PhaseSummary>,
    /// How its size fell.
    pub curve: Vec<CurvePoint>,
    /// What each pass won.
    pub account: Account,
    /// Components that its messages from outside lack.
    pub without: Vec<String>,
    /// Whether its share of the budget ended before the work did.
    pub cut: bool,
    /// Whether it was a search that left nothing out.
    pub whole: bool,
}

impl Solution {
    /// What a line of work came to.
    pub fn of<M: Model>(reducer: Reducer<'_, M>) -> Solution {
        let cut = reducer.ended();
        Solution {
            schedule: reducer.engine.to_schedule(&reducer.best.acts),
            size: reducer.best.size,
            phases: reducer.phases,
            curve: reducer.curve,
            account: reducer.account,
            without: Vec::new(),
            cut,
            whole: false,
        }
    }

    /// Schedules tested for it.
    #[must_use]
    pub fn replays(&self) -> u64 {
        self.phases.iter().map(|p| p.replays).sum()
    }

    /// Deliveries executed for it.
    #[must_use]
    pub fn executed(&self) -> u64 {
        self.phases.iter().map(|p| p.executed).sum()
    }
}

/// A solution as the ledger keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    schedule: String,
    steps: usize,
    externals: usize,
    deliveries: usize,
    phases: Vec<PhaseSummary>,
    curve: Vec<CurvePoint>,
    account: Account,
    cut: bool,
    #[serde(default)]
    whole: bool,
}

impl Solution {
    /// The solution as the ledger keeps it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let kept = Kept {
            schedule: self.schedule.to_text(),
            steps: self.size.steps,
            externals: self.size.externals,
            deliveries: self.size.deliveries,
            phases: self.phases.clone(),
            curve: self.curve.clone(),
            account: self.account.clone(),
            cut: self.cut,
            whole: self.whole,
        };
        serde_json::to_string(&kept).unwrap_or_default()
    }

    /// Reads what [`Solution::to_json`] wrote; nothing if it is something else.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Solution> {
        let kept: Kept = serde_json::from_str(text).ok()?;
        Some(Solution {
            schedule: Schedule::parse(&kept.schedule).ok()?,
            size: Size { steps: kept.steps, externals: kept.externals, deliveries: kept.deliveries },
            phases: kept.phases,
            curve: kept.curve,
            account: kept.account,
            without: Vec::new(),
            cut: kept.cut,
            whole: kept.whole,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    #[test]
    fn a_solution_comes_back_as_it_was() {
        let size = Size { steps: 11, externals: 3, deliveries: 9 };
        let solution =
            Solution { schedule: Schedule::new(Vec::new()), size, cut: true, ..Solution::default() };
        let back = Solution::from_json(&solution.to_json()).unwrap();
        assert_eq!((back.size, back.cut, back.schedule), (size, true, solution.schedule));
        assert!(Solution::from_json("{}").is_none());
    }
}
