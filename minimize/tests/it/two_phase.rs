//! Minimization of random runs of two-phase commit, with and without failures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]
#![allow(dead_code, reason = "the tiny systems of the common module are for another test")]

use std::cell::Cell;

use crate::common::{key, options, superfluous};
use demi_minimize::{MinimizeError, Objective, minimize};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::Want;
use demi_replay::{Model, Names, Simulator, Status};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario};
use demi_two_phase::TwoPhase;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];

fn simulator(members: u32) -> Simulator<TwoPhase> {
    let text = format!("model = \"two-phase\"\nmembers = {members}\nnetwork = \"fifo\"\n");
    let scenario = Scenario::parse(&format!("{text}[switches]\ncommit_on_timeout = true\n")).unwrap();
    let mut names = Names::default();
    let model = TwoPhase::new(&scenario, &mut names).unwrap();
    Simulator::new(model, names, &scenario).unwrap()
}

/// The step that delivers what `want` asks for.
fn deliver(sim: &Simulator<TwoPhase>, want: &Want) -> Step {
    let kind = if want.timer { StepKind::Timer } else { StepKind::Deliver };
    let mut step = Step::new(kind, sim.names().get(want.to));
    step.from = Some(sim.names().get(want.from).to_owned());
    step.type_ = Some(sim.text(want.type_).to_owned());
    step.payload = Some(sim.text(want.payload).to_owned());
    step.external = want.external.map(|_| true);
    step
}

fn begin(tx: usize, refuses: Option<String>) -> Step {
    let mut step = Step::new(StepKind::Deliver, "coordinator");
    step.from = Some(DEAD_LETTERS.into());
    step.type_ = Some("Begin".into());
    step.payload = Some(format!("Begin(tx{tx}{})", refuses.map(|r| format!(",{r}")).unwrap_or_default()));
    step.external = Some(true);
    step
}

/// A random run up to its first violation.
fn run(members: u32, choices: &[(u8, usize)], faults: bool, rule: NetworkRule) -> Option<Schedule> {
    let mut sim = simulator(members);
    let mut world = sim.empty_world();
    let actors = sim.model().actors().to_vec();
    let name = |sim: &Simulator<TwoPhase>, n: usize| sim.names().get(actors[n % actors.len()]).to_owned();
    let mut steps: Vec<Step> = Vec::new();
    for &actor in &actors {
        sim.start(&mut world, actor);
        steps.push(Step::new(StepKind::Start, sim.names().get(actor)));
    }
    for (number, &(what, choice)) in choices.iter().enumerate() {
        let actor = actors[choice % actors.len()];
        let may: Vec<usize> =
            (0..world.pending().len()).filter(|&i| sim.deliverable(&world, i, rule)).collect();
        match what {
            0 if faults && world.status(actor) == Status::Running => {
                let kind =
                    [StepKind::Crash, StepKind::Isolate, StepKind::Restart, StepKind::Stop][choice / 7 % 4];
                match kind {
                    StepKind::Crash => sim.crash(&mut world, actor),
                    StepKind::Isolate => sim.isolate(&mut world, actor),
                    StepKind::Restart => sim.restart(&mut world, actor),
                    _ => sim.stop(&mut world, actor),
                }
                steps.push(Step::new(kind, sim.names().get(actor)));
            }
            1 | 2 if world.status(actors[0]) == Status::Running => {
                let refuses = (choice % 3 > 0).then(|| name(&sim, 1 + choice % members as usize));
                let step = begin(number, refuses);
                let payload = step.payload.as_deref().unwrap();
                let message = demi_replay::ExternalMessage { type_: "Begin", payload, fields: None };
                let msg = sim.model().clone().logs().external(message, sim.names_mut()).unwrap();
                let msg = sim.intern(msg);
                let at = sim.inject(&mut world, actors[0], msg).unwrap();
                sim.deliver(&mut world, at, rule);
                steps.push(step);
            }
            _ if may.is_empty() => continue,
            _ => {
                let at = may[choice % may.len()];
                let want = Want::of(&sim, &world, &world.pending()[at]);
                steps.push(deliver(&sim, &want));
                sim.deliver(&mut world, at, rule);
            }
        }
        let mut found = Vec::new();
        sim.check(&world, &mut (), &mut found);
        if steps.last().is_some_and(|s| s.kind.is_delivery()) && !found.is_empty() {
            return Some(Schedule::new(steps));
        }
    }
    None
}

#[test]
fn results_violate_and_no_step_is_superfluous() {
    let (runs, minimal) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig {
        cases: 120,
        max_global_rejects: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let input = (
        2..4u32,
        prop::collection::vec((0..12u8, any::<usize>()), 60..140),
        any::<bool>(),
        prop::sample::select(RULES.to_vec()),
        any::<bool>(),
    );
    let test = |(members, choices, faults, rule, steps): (u32, Vec<(u8, usize)>, bool, _, bool)| {
        let Some(schedule) = run(members, &choices, faults, rule) else {
            return Err(TestCaseError::reject("it does not violate"));
        };
        let sim = simulator(members);
        let objective = if steps { Objective::Steps } else { Objective::Externals };
        let mut options = options(rule, objective, 3_000);
        let result = minimize(&sim, &schedule, None, &options, &|_| {}).unwrap();
        let strict = ReplayOptions { rule, strict: true, interval: 1 };
        for found in std::iter::once(&result.schedule).chain(result.others.iter().map(|(_, s)| s)) {
            let replayed = replay(&mut sim.clone(), found, &strict).unwrap();
            prop_assert_eq!((replayed.verdict, replayed.divergences), (Verdict::Violates, 0));
            prop_assert_eq!(replayed.violation_at, Some(found.deliveries() as u64));
        }
        prop_assert!(key(&result.schedule, objective) <= key(&schedule, objective));
        let target = result.schedule.header.violation.clone();
        prop_assert!(!target.is_empty());
        if result.summary.one_minimal {
            let superfluous = superfluous(&sim, &result.schedule, rule, &target);
            prop_assert_eq!(superfluous, None, "{}", result.schedule.to_text());
        }
        runs.set(runs.get() + 1);
        minimal.set(minimal.get() + i32::from(result.summary.one_minimal));
        options.jobs = 2;
        let again = minimize(&sim, &schedule, None, &options, &|_| {}).unwrap();
        prop_assert_eq!(again.schedule, result.schedule);
        Ok(())
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng).run(&input, test).unwrap();
    // As measured: all of them.
    assert!(minimal.get() * 100 >= runs.get() * 95, "{} of {}", minimal.get(), runs.get());
}

/// A repaired program has nothing to minimize, and says so.
#[test]
fn a_run_that_does_not_violate_is_refused() {
    let sim = simulator(2);
    let steps = vec![Step::new(StepKind::Start, "coordinator"), begin(1, None)];
    for rule in RULES {
        let options = options(rule, Objective::Steps, 100);
        let error = minimize(&sim, &Schedule::new(steps.clone()), None, &options, &|_| {}).unwrap_err();
        assert!(matches!(error, MinimizeError::NoViolation { .. }), "{error}");
    }
}
