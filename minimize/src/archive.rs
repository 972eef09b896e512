//! What was found: every solution, what was proven, and the yields; and from these the incumbent and the Pareto front.

use demi_replay::Model;
use demi_schemas::certificate::Shortest;

use crate::plan::{LEAST_REPLAYS, LEAST_SECONDS, LEAST_STATES};
use crate::problem::budget::Budget;
use crate::problem::size::{Objective, Size};
use crate::scheduler::{Purse, Share, Site};
use crate::solution::Solution;

/// All results so far.
pub struct Archive<'a, M: Model> {
    /// The problem, and whoever watches.
    pub site: Site<'a, M>,
    /// What the jobs came to, in their order.
    pub results: Vec<Solution>,
    /// A solution with whose external events no execution is shorter, with the proof.
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
        if let Some(best) = self.incumbent() {
            self.site.problem.deadline.keep_to_load(best.size.steps);
        }
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

impl<M: Model> Archive<'_, M> {
    /// Whether enough is left, of a part of what strategies may use, for another batch to do anything with.
    pub fn left(&self, until: f64) -> bool {
        match self.purse().within(until).share(Share { part: 1.0, of: 1 }, 1, &self.site.problem.deadline) {
            Budget::Seconds(seconds) => seconds > LEAST_SECONDS,
            Budget::Replays(replays) => replays > LEAST_REPLAYS,
            Budget::States(states) => states > LEAST_STATES,
        }
    }
}

/// The smallest of some solutions, the first of equals.
pub fn best(objective: Objective, solutions: &[Solution]) -> Option<&Solution> {
    objective.least(solutions.iter().map(|s| s.size)).map(|at| &solutions[at])
}

/// The solution to go on with: the smallest. What is proven only decides between equals, to spare another proof.
pub fn result<'s>(
    objective: Objective,
    solutions: &'s [Solution],
    proven: Option<&'s Solution>,
) -> Option<&'s Solution> {
    let best = best(objective, solutions);
    match (best, proven) {
        (Some(best), Some(proven)) if objective.smaller(best.size, proven.size) => Some(best),
        (best, proven) => proven.or(best),
    }
}

/// The Pareto front over steps and external events, the first of equals.
pub fn pareto(mut solutions: Vec<Solution>) -> Vec<Solution> {
    let sizes: Vec<Size> = solutions.iter().map(|s| s.size).collect();
    let mut seen = Vec::new();
    solutions.retain(|s| {
        let kept =
            !sizes.iter().any(|o| o.dominates(s.size)) && !seen.contains(&(s.size.steps, s.size.externals));
        seen.push((s.size.steps, s.size.externals));
        kept
    });
    solutions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn solution((steps, externals, deliveries): (usize, usize, usize)) -> Solution {
        Solution { size: Size { steps, externals, deliveries }, ..Solution::default() }
    }

    /// The documented order, in words of its own.
    fn before(objective: Objective, a: Size, b: Size) -> bool {
        let (first, second) = match objective {
            Objective::Steps => (a.steps.cmp(&b.steps), a.externals.cmp(&b.externals)),
            Objective::Externals => (a.externals.cmp(&b.externals), a.steps.cmp(&b.steps)),
        };
        first.then(second).then(a.deliveries.cmp(&b.deliveries)).is_lt()
    }

    proptest! {
        #[test]
        fn the_result_is_the_least_whatever_was_proven(
            sizes in prop::collection::vec((10..40_usize, 1..12_usize, 5..30_usize), 1..12),
            proven in prop::option::of(any::<prop::sample::Index>()),
            externals in any::<bool>(),
        ) {
            let objective = if externals { Objective::Externals } else { Objective::Steps };
            let all: Vec<Solution> = sizes.into_iter().map(solution).collect();
            let proven = proven.map(|at| &all[at.index(all.len())]);
            let taken = result(objective, &all, proven).map(|s| s.size).unwrap_or_default();
            prop_assert!(all.iter().any(|s| s.size == taken));
            prop_assert!(!all.iter().any(|s| before(objective, s.size, taken)));
        }

        #[test]
        fn the_front_holds_what_nothing_dominates(
            sizes in prop::collection::vec((10..20_usize, 1..8_usize, 5..30_usize), 0..12),
        ) {
            let all: Vec<Solution> = sizes.into_iter().map(solution).collect();
            let front = pareto(all.clone());
            for s in &all {
                let beaten = all.iter().any(|o| {
                    o.size.steps <= s.size.steps
                        && o.size.externals <= s.size.externals
                        && (o.size.steps, o.size.externals) != (s.size.steps, s.size.externals)
                });
                let there = front.iter().filter(|f| {
                    (f.size.steps, f.size.externals) == (s.size.steps, s.size.externals)
                });
                prop_assert_eq!(there.count(), usize::from(!beaten));
            }
        }
    }
}
