//! Whatever the budget is, there is a result that is not far off; more budget never makes it longer.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_included::{Visitor, with_model};
use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::Verdict;
use demi_schemas::{Scenario, Schedule};

/// Deliveries that may be executed, from far too few to some.
const BUDGETS: [u64; 5] = [3_000, 30_000, 300_000, 1_000_000, 3_000_000];
/// The place in that list at which the size is near the last.
const ENOUGH: usize = 2;

/// A scenario, the seed of an execution, and deliveries that it has at least.
struct WithEach<'a>(&'a Scenario, u64, u64);

impl Visitor for WithEach<'_> {
    type Output = Vec<Outcome>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let WithEach(scenario, seed, at_least) = self;
        let with = |seed| {
            let limits = FuzzOptions { at_least, ..FuzzOptions::new(seed, 3_000, 4_000) };
            fuzz(&mut sim.clone(), scenario, &limits, &mut |_| true).unwrap()
        };
        let found = (seed..seed + 30).find_map(with).unwrap();
        let done = |budget| {
            let options = Options {
                rule: scenario.network,
                budget: Budget::States(budget),
                jobs: 1,
                phases: Phases::All,
                objective: Objective::Steps,
                stop: StopFlag::default(),
            };
            let done = minimize(&sim, &found.schedule, None, &options, &|_| {}).unwrap();
            let strict = ReplayOptions { rule: scenario.network, strict: true, interval: 1 };
            let violates = |schedule: &Schedule| replay(&mut sim.clone(), schedule, &strict).unwrap().verdict;
            assert_eq!(violates(&done.schedule), Verdict::Violates);
            assert_eq!(violates(done.reduced.as_ref().unwrap()), Verdict::Violates);
            done
        };
        BUDGETS.into_iter().map(done).collect()
    }
}

#[test]
fn more_budget_never_makes_a_result_longer() {
    let scenarios = [
        (include_str!("../../../replay/scenarios/raft-45.toml"), 6, 300),
        (include_str!("../../../replay/scenarios/raft-56.toml"), 1, 300),
        (include_str!("../../../replay/scenarios/raft-58b.toml"), 2, 300),
        (include_str!("../../../replay/scenarios/raft-66.toml"), 1, 300),
        (include_str!("../../../replay/scenarios/two-phase.toml"), 1, 0),
    ];
    for (text, seed, at_least) in scenarios {
        let scenario = Scenario::parse(text).unwrap();
        let all = with_model(&scenario, WithEach(&scenario, seed, at_least)).unwrap();
        let sizes: Vec<usize> = all.iter().map(|done| done.schedule.steps.len()).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{}: {sizes:?}", scenario.model);
        let last = sizes[sizes.len() - 1];
        assert!(sizes[ENOUGH] <= 2 * last, "{}: {sizes:?}", scenario.model);
        for done in &all {
            let summary = &done.summary;
            let reduced = summary.reduced.as_ref().unwrap();
            assert!(reduced.steps >= summary.steps);
            // A result is locally minimal, or what was not checked is named.
            assert!(summary.one_minimal || !summary.left_out.is_empty(), "{summary:?}");
        }
        // What is reduced once is the same with more budget.
        let whole = all.iter().filter(|done| done.summary.reduced.as_ref().unwrap().one_minimal);
        let reduced: Vec<_> = whole.map(|done| &done.reduced.as_ref().unwrap().steps).collect();
        assert!(!reduced.is_empty() && reduced.windows(2).all(|two| two[0] == two[1]), "{}", scenario.model);
    }
}
