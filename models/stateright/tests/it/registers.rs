//! The registers: what is found in them, and how short it is.

use crate::common::{minimized, scenario, shortest, simulator, violating};
use crate::{abd, paxos, single_copy};
use demi_stateright::{History, Part};
use stateright::actor::ActorModel;

/// Random runs in which nothing is to be found.
const RUNS: u64 = 2_000;

/// The length of the minimized result for that property, and the least number of Stateright's actions that decide it.
fn lengths<A: Part, H: History>(
    make: impl Fn() -> ActorModel<A, (), H>,
    property: &'static str,
) -> (usize, usize) {
    let scenario = scenario("unordered", &format!("invariants = ['{property}']"));
    let sim = simulator(make(), &scenario);
    let found = violating(&sim, &scenario, 100_000).unwrap();
    assert_eq!(found.violation, [property]);
    let outcome = minimized(&sim, &scenario, &found);
    (outcome.schedule.steps.len(), shortest(make(), property).unwrap())
}

/// Whether random runs break an invariant.
fn breaks<A: Part, H: History>(system: ActorModel<A, (), H>) -> bool {
    let scenario = scenario("unordered", "");
    violating(&simulator(system, &scenario), &scenario, RUNS).is_some()
}

#[test]
fn two_single_copies_are_not_linearizable_after_four_deliveries() {
    assert_eq!(lengths(|| single_copy::system(2), "linearizable"), (4, 4));
    assert!(!breaks(single_copy::system(1)));
}

#[test]
fn a_sound_paxos_chooses_a_value_and_breaks_nothing() {
    let (result, optimum) = lengths(|| paxos::system(3, false), "value chosen");
    assert_eq!(result, optimum);
    assert!(!breaks(paxos::system(3, false)));
}

#[test]
fn a_sound_abd_returns_a_value_and_breaks_nothing() {
    let (result, optimum) = lengths(|| abd::system(2, false), "value chosen");
    assert_eq!(result, optimum);
    assert!(!breaks(abd::system(2, false)));
}

#[test]
fn paxos_with_too_small_a_quorum_is_minimized_to_the_shortest_counterexample() {
    let (result, optimum) = lengths(|| paxos::system(3, true), "linearizable");
    assert_eq!(result, optimum);
}
