//! Budgets of minimizations of programs: they count what the program has to do, hold, and do not depend on threads.

use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_programs::WithPrograms;
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{Scenario, Schedule};

use crate::citizens::python;
use crate::workloads::{NODE, broadcast, scenario};

/// A register of each node's own, whose nodes tell each other again and again how long they live.
fn beating() -> String {
    let rest = r#"
values, beats = {}, [0]
def handle(message, body, kind):
    if kind == "beat":
        beats.append(body["n"])
        send(message["src"], {"type": "heard", "sum": sum(beats)})
    elif kind == "write":
        values[str(body["key"])] = body["value"]
        reply(message, {"type": "write_ok"})
    elif kind == "read" and str(body["key"]) in values:
        reply(message, {"type": "read_ok", "value": values[str(body["key"])]})
    elif kind == "cas" and values.get(str(body["key"])) == body["from"]:
        values[str(body["key"])] = body["to"]
        reply(message, {"type": "cas_ok"})
    elif kind in ("read", "cas"):
        reply(message, {"type": "error", "code": 22 if str(body["key"]) in values else 20, "text": ""})
def tick():
    beats[0] += 1
    for other in others:
        send(other, {"type": "beat", "n": beats[0]})
run(handle, 0.5, tick)"#;
    format!("{NODE}{rest}")
}

struct Find<'a>(&'a Scenario);

impl Visitor for Find<'_> {
    type Output = Found;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        // Long ones, so that there is something to leave out.
        let options = FuzzOptions { at_least: 30, ..FuzzOptions::new(1, 400, 60) };
        fuzz(&mut simulator, self.0, &options, &mut |_| true).unwrap().expect("a violation")
    }
}

struct Minimize<'a>(&'a Scenario, &'a Schedule, Budget, usize);

impl Visitor for Minimize<'_> {
    type Output = Outcome;

    fn visit<M: Model>(self, simulator: Simulator<M>) -> Self::Output {
        let Minimize(scenario, schedule, budget, jobs) = self;
        let (rule, objective) = (scenario.network, Objective::Steps);
        let options =
            Options { rule, budget, jobs, phases: Phases::All, objective, stop: StopFlag::default() };
        minimize(&simulator, schedule, None, &options, &|_| {}).unwrap()
    }
}

/// What a budget comes to, and how many steps processes had to make that none had made before.
fn minimized(scenario: &Scenario, schedule: &Schedule, budget: Budget, jobs: usize) -> (Outcome, u64) {
    let registry = WithPrograms::new(NoModels);
    let outcome = registry.visit(scenario, Minimize(scenario, schedule, budget, jobs)).unwrap();
    assert_eq!(registry.fault(), None);
    let done = registry.programs().unwrap();
    (outcome, (done.steps as f64 * (1.0 - done.from_memory)).round() as u64)
}

/// Budgets hold, are used, and give the same with any number of threads; what is given is never worse than what local passes gave.
fn holds(scenario: &Scenario) {
    let registry = WithPrograms::new(NoModels);
    let found = registry.visit(scenario, Find(scenario)).unwrap();
    let recorded = found.schedule.steps.len() as u64;
    let mut last = usize::MAX;
    for budget in [Budget::Replays(20), Budget::States(400), Budget::States(2_000)] {
        let (outcome, made) = minimized(scenario, &found.schedule, budget, 1);
        let most = match budget {
            Budget::Replays(n) => n * recorded,
            Budget::States(n) => n,
            Budget::Seconds(_) => u64::MAX,
        };
        // The recording is run before anything is counted, and the result after.
        let fixed = 3 * (recorded + 10);
        assert!(made <= most + fixed, "{budget:?}: {made} steps, and {recorded} were recorded");
        let steps = outcome.schedule.steps.len();
        let reduced = outcome.reduced.as_ref().map_or(usize::MAX, |reduced| reduced.steps.len());
        assert!(steps <= reduced, "{budget:?}: {steps} of {reduced}");
        if let Budget::States(_) = budget {
            assert!(steps <= last, "{budget:?}: {steps}, and with less {last}");
            last = steps;
        }
        let (again, _) = minimized(scenario, &found.schedule, budget, 4);
        assert_eq!(again.schedule.to_text(), outcome.schedule.to_text(), "{budget:?}");
        let text = |outcome: &Outcome| outcome.reduced.as_ref().map(Schedule::to_text);
        assert_eq!(text(&again), text(&outcome), "{budget:?}");
    }
}

#[test]
fn budgets_of_programs_that_do_something_by_themselves_hold() {
    if python() {
        let folder = tempfile::tempdir().unwrap();
        holds(&scenario(folder.path(), &beating(), "lin-kv", "unordered", ""));
    }
}

/// What is there in the end takes steps of its own.
#[test]
fn what_is_looked_at_in_the_end_is_counted() {
    if python() {
        let folder = tempfile::tempdir().unwrap();
        let more = "settle_seconds = 2\n";
        holds(&scenario(folder.path(), &broadcast(false), "broadcast", "fifo-loss", more));
    }
}
