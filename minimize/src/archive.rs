//! What was found: every solution, what was proven, and the yields; and from these the incumbent and the Pareto front.

use demi_replay::Model;
use demi_schemas::certificate::Shortest;

use crate::problem::size::{Objective, Size};
use crate::scheduler::{Purse, Site};
use crate::solution::Solution;

/// All results so far.
pub struct Archive<'a, M: Model> {
    /// The problem, and whoever watches.
    pub site: Site<'a, M>,
    /// What the jobs came to, in their order.
    pub results: Vec<Solution>,
    /// A solution over whose external events nothing is shorter, with the proof.
    pub proven: Option<(Solution, Shortest)>,
    /// The budget, and what of it was spent before the first job.
    pub purse: Purse,
    last: usize,
}

impl<'a, M: Model> Archive<'a, M> {
    /// An empty archive.
    pub fn new(site: Site<'a, M>, purse: Purse) -> Self {
        Archive { site, results: Vec::new(), proven: None, purse, last: 0 }
    }

    /// What counts as smaller.
    pub fn objective(&self) -> Objective {
        self.site.problem.options.objective
    }

    /// Takes in what a batch came to.
    pub fn add(&mut self, found: Vec<Solution>) {
        self.last = self.results.len();
        self.results.extend(found);
    }

    /// What the last batch came to.
    pub fn last(&self) -> &[Solution] {
        &self.results[self.last..]
    }

    /// The smallest of the results, the first of equals.
    pub fn incumbent(&self) -> Option<&Solution> {
        best(self.objective(), &self.results)
    }

    /// The budget, and what of it was spent.
    pub fn purse(&self) -> Purse {
        let replays = self.purse.replays + self.results.iter().map(Solution::replays).sum::<u64>();
        let executed = self.purse.executed + self.results.iter().map(Solution::executed).sum::<u64>();
        Purse { replays, executed, ..self.purse }
    }
}

/// The smallest of some solutions, the first of equals.
pub fn best(objective: Objective, solutions: &[Solution]) -> Option<&Solution> {
    objective.choose(solutions.iter().map(|s| s.size)).map(|at| &solutions[at])
}

/// The solutions that no other beats in both figures, the first of equals.
pub fn pareto(mut solutions: Vec<Solution>) -> Vec<Solution> {
    let sizes: Vec<Size> = solutions.iter().map(|s| s.size).collect();
    let mut seen = Vec::new();
    solutions.retain(|s| {
        let kept = !sizes.iter().any(|o| o.dominates(s.size)) && !seen.contains(&s.size);
        seen.push(s.size);
        kept
    });
    solutions
}
