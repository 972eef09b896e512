//! A system here and in Stateright's checker.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault};

use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Names, Simulator};
use demi_schemas::Scenario;
use demi_stateright::{History, Part, System};
use stateright::actor::ActorModel;
use stateright::{Expectation, Model};

/// A scenario of that network; `rest` is the rest of its text.
pub fn scenario(network: &str, rest: &str) -> Scenario {
    let text = format!("model = \"system\"\nnetwork = \"{network}\"\n{rest}\n[fuzz]\nclient_messages = 0\n");
    Scenario::parse(&text).unwrap()
}

/// The simulator of a system.
pub fn simulator<A: Part, H: History>(
    system: ActorModel<A, (), H>,
    scenario: &Scenario,
) -> Simulator<System<A, (), H>> {
    let mut names = Names::default();
    let model = System::new(system, scenario, &mut names).unwrap();
    Simulator::new(model, names, scenario).unwrap()
}

/// A violating run out of so many.
pub fn violating<A: Part, H: History>(
    sim: &Simulator<System<A, (), H>>,
    scenario: &Scenario,
    runs: u64,
) -> Option<Found> {
    fuzz(&mut sim.clone(), scenario, &FuzzOptions::new(1, runs, 300), &mut |_| true).unwrap()
}

/// The result of minimizing a run, which was replayed strictly.
pub fn minimized<A: Part, H: History>(
    sim: &Simulator<System<A, (), H>>,
    scenario: &Scenario,
    found: &Found,
) -> Outcome {
    let options = Options {
        rule: scenario.network,
        budget: Budget::States(3_000_000),
        jobs: 2,
        phases: Phases::All,
        objective: Objective::default(),
        stop: StopFlag::default(),
    };
    let outcome = minimize(sim, &found.schedule, None, &options, &|_| {}).unwrap();
    let strictly = ReplayOptions { rule: scenario.network, strict: true, interval: 1 };
    let replayed = replay(&mut sim.clone(), &outcome.schedule, &strictly).unwrap();
    assert_eq!(replayed.divergences, 0, "{}", outcome.schedule.to_text());
    assert!(replayed.violation.iter().any(|v| found.violation.contains(v)));
    outcome
}

/// The least number of actions after which that property is decided: an `always` one broken, a `sometimes` one met. Stateright's own checker
/// tells a path, which is not always the shortest, since it takes states in blocks; this goes breadth first over the same system, one layer
/// at a time.
pub fn shortest<A: Part, H: History>(system: ActorModel<A, (), H>, property: &'static str) -> Option<usize> {
    let wanted = Model::property(&system, property);
    let decided = |state: &_| {
        let holds = (wanted.condition)(&system, state);
        holds == matches!(wanted.expectation, Expectation::Sometimes)
    };
    let mut layer = Model::init_states(&system);
    let hashes = BuildHasherDefault::<DefaultHasher>::default();
    let mut seen: HashSet<u64> = layer.iter().map(|state| hashes.hash_one(state)).collect();
    for length in 0.. {
        if layer.iter().any(&decided) {
            return Some(length);
        }
        let steps = layer.iter().flat_map(|state| system.next_steps(state));
        let inside = steps.map(|(_, state)| state).filter(|state| Model::within_boundary(&system, state));
        layer = inside.filter(|state| seen.insert(hashes.hash_one(state))).collect();
        if layer.is_empty() {
            return None;
        }
    }
    None
}
