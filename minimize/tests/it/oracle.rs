//! What else can be asked: which violations count, systems that must not break, repeated runs, smaller contents.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use demi_akka_raft::AkkaRaft;
use demi_check::verify;
use demi_minimize::Meter;
use demi_minimize::{
    Budget, Criteria, MinimizeError, Objective, Options, Outcome, Phases, StopFlag, minimize_with,
};
use demi_minimize::{Contents, Match, Repeat};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::model::Smaller;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Ctx, ExternalMessage, Guidance, Logs, Model, Names, Simulator, View, Violation};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario};
use serde_json::Value;

fn scenario(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../replay/scenarios/{name}.toml"));
    Scenario::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn raft(scenario: &Scenario) -> Simulator<AkkaRaft> {
    let mut names = Names::default();
    let model = AkkaRaft::new(scenario, &mut names).unwrap();
    Simulator::new(model, names, scenario).unwrap()
}

fn fuzzed(scenario: &Scenario, seed: u64, deliveries: u64) -> Schedule {
    let limits = FuzzOptions::new(seed, 20_000, deliveries);
    fuzz(&mut raft(scenario), scenario, &limits, &mut |_| true).unwrap().unwrap().schedule
}

fn options(rule: NetworkRule, replays: u64) -> Options {
    let (budget, stop) = (Budget::Replays(replays), StopFlag::default());
    Options { rule, budget, jobs: 1, phases: Phases::All, objective: Objective::Steps, stop }
}

fn asked<M: Model>(
    sim: &Simulator<M>,
    input: &Schedule,
    replays: u64,
    oracle: &Criteria<M>,
) -> Result<Outcome, MinimizeError> {
    let rule = input.header.network.unwrap_or(NetworkRule::Fifo);
    minimize_with(sim, input, None, &options(rule, replays), oracle, &|_| ())
}

#[test]
fn another_violation_of_the_same_invariant_may_count() {
    let scenario = scenario("raft-45");
    let mut input = fuzzed(&scenario, 2, 600);
    // Nobody ever saw these two lead together.
    input.header.violation = vec!["ElectionSafety:raft-member-8:raft-member-9".into()];
    let sim = raft(&scenario);
    let with = |matching| asked(&sim, &input, 40_000, &Criteria { matching, ..Criteria::default() });
    assert!(matches!(with(Match::Fingerprint), Err(MinimizeError::NoViolation { .. })));
    for matching in [Match::Invariant, Match::Any] {
        let outcome = with(matching).unwrap();
        assert!(outcome.summary.violation[0].starts_with("ElectionSafety:raft-member-"));
        assert_eq!(outcome.certificate.violation, outcome.summary.violation);
        assert!(outcome.summary.deliveries < 60, "{}", outcome.summary.deliveries);
        // What is proven is proven of the violation that the result ends in, and holds when it is checked.
        let shortest = outcome.certificate.shortest.as_ref().unwrap();
        assert!(shortest.at_least > 1 && shortest.at_least <= outcome.summary.deliveries, "{shortest:?}");
        assert_eq!(shortest.optimal, shortest.at_least == outcome.summary.deliveries);
        let mut meter = Meter::new(Budget::Seconds(1e6), StopFlag::default());
        let lines = verify(&sim, &outcome.schedule, &outcome.certificate, &mut meter).unwrap();
        assert!(
            lines.last().unwrap().contains("no violating execution with these external events has fewer"),
            "{lines:?}"
        );
    }
}

#[test]
fn what_must_not_break_does_not_break() {
    // Both deviations on: a run may break by either. The second system lacks one of them.
    let both = scenario("raft-42");
    let mut mended = both.clone();
    assert_eq!(mended.switches.insert("raft42_mode_quorum".into(), false), Some(true));
    let (sim, also) = (raft(&both), raft(&mended));
    let strict = |sim: &Simulator<AkkaRaft>, schedule: &Schedule| {
        let rule = ReplayOptions { rule: both.network, strict: false, interval: 1 };
        replay(&mut sim.clone(), schedule, &rule).unwrap().verdict
    };
    let oracle = Criteria { also: vec![also.clone()], ..Criteria::default() };
    let (mut minimized, mut refused) = (0, 0);
    for seed in 1..=6 {
        let input = fuzzed(&both, seed, 400);
        match asked(&sim, &input, 3_000, &oracle) {
            Ok(outcome) => {
                minimized += 1;
                assert_eq!(strict(&sim, &outcome.schedule), Verdict::Violates);
                // A step that is not possible there is left out, so it may diverge.
                assert_ne!(strict(&also, &outcome.schedule), Verdict::Violates, "seed {seed}");
                let wrong = outcome.certificate.removals.iter().find(|r| r.violates && !r.breaks_others);
                assert_eq!(wrong, None, "seed {seed}");
            }
            Err(MinimizeError::NoViolation { .. }) => {
                refused += 1;
                assert_eq!(strict(&also, &input), Verdict::Violates, "seed {seed}");
            }
            Err(other) => assert_eq!(other.to_string(), "", "seed {seed}"),
        }
    }
    assert!(minimized > 0, "{minimized} minimized, {refused} refused");
}

/// Counts what it is told. The invariant that the count stays below three is seen to be broken only sometimes.
#[derive(Clone)]
struct Flaky {
    actors: Vec<ActorId>,
    checks: Arc<AtomicU32>,
    /// Of so many checks one sees nothing.
    blind: u32,
}

impl Model for Flaky {
    type State = u32;
    type Msg = u32;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }
    fn initial(&self, _: ActorId) -> u32 {
        0
    }
    fn deliver(&self, state: &mut u32, _: &u32, _: &mut Ctx<'_, u32>) {
        *state += 1;
    }
    fn check(&self, view: &View<'_, u32>, (): &mut (), found: &mut Vec<Violation>) {
        let three = self.actors.iter().any(|a| view.state(*a).is_some_and(|n| *n >= 3));
        if three && !self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.blind) {
            found.push(Violation { fingerprint: "Three".into(), affected: self.actors.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<u32, u32> {
        self
    }
}

impl Logs<u32, u32> for Flaky {
    fn type_name(&self, _: &u32) -> String {
        "Add".to_owned()
    }

    fn payload(&self, msg: &u32, _: &Names) -> String {
        format!("Add({msg})")
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<u32, String> {
        let number = message.payload.strip_prefix("Add(").and_then(|p| p.strip_suffix(')'));
        number.and_then(|n| n.parse().ok()).ok_or_else(|| "no number".to_owned())
    }

    fn describe(&self, state: &u32, _: &Names) -> Value {
        (*state).into()
    }
}

#[test]
fn of_a_flaky_model_enough_runs_must_violate() {
    let scenario = Scenario::parse("model = \"flaky\"\nnetwork = \"fifo\"").unwrap();
    let add = |n: u32| {
        let mut step = Step::new(StepKind::Deliver, "counter");
        step.from = Some(DEAD_LETTERS.into());
        (step.type_, step.payload) = (Some("Add".into()), Some(format!("Add({n})")));
        step.external = Some(true);
        step
    };
    let mut steps = vec![Step::new(StepKind::Start, "counter")];
    steps.extend((0..9).map(add));
    let mut input = Schedule::new(steps);
    input.header.violation = vec!["Three".into()];
    let with = |blind: u32, repeat: &str| {
        let mut names = Names::default();
        let actors = vec![names.id("counter")];
        let model = Flaky { actors, checks: Arc::default(), blind };
        let sim = Simulator::new(model, names, &scenario).unwrap();
        let oracle = Criteria { repeat: repeat.parse::<Repeat>().unwrap(), ..Criteria::default() };
        asked(&sim, &input, 2_000, &oracle)
    };
    // Three of four checks see it: two of five runs do, for sure, and the result is as small as it can be.
    let outcome = with(4, "2-of-5").unwrap();
    assert_eq!((outcome.summary.deliveries, outcome.summary.externals), (3, 4));
    // Every second one sees it: nine of nine never do.
    assert!(with(2, "9-of-9").is_err());
}

#[test]
fn contents_shrink_in_a_further_result_or_in_the_result() {
    let scenario = scenario("raft-58b");
    let sim = raft(&scenario);
    let input = fuzzed(&scenario, 2, 700);
    let with = |contents| asked(&sim, &input, 60_000, &Criteria { contents, ..Criteria::default() }).unwrap();
    let listed = |schedule: &Schedule| -> Vec<usize> {
        let members = |s: &Step| Some(s.fields.as_ref()?.get("members")?.as_array()?.len());
        schedule.steps.iter().filter_map(members).collect()
    };
    let (keep, other, shrink) = (with(Contents::Keep), with(Contents::Other), with(Contents::Shrink));
    assert!(keep.others.iter().all(|(o, _)| o.without.is_empty()));
    assert!(listed(&keep.schedule).iter().all(|n| *n == 4));
    assert_eq!(other.schedule, keep.schedule, "the result itself keeps its contents");
    let (smaller, schedule) = other.others.iter().find(|(o, _)| !o.without.is_empty()).unwrap();
    for (result, deliveries, externals) in [
        (schedule, smaller.deliveries, smaller.externals),
        (&shrink.schedule, shrink.summary.deliveries, shrink.summary.externals),
    ] {
        let kept = (keep.summary.deliveries, keep.summary.externals);
        assert!(deliveries <= kept.0 && externals <= kept.1, "{deliveries} ({externals}), {kept:?}");
        assert!(listed(result).iter().all(|n| *n < 4), "{:?}", listed(result));
        let strict = ReplayOptions { rule: scenario.network, strict: true, interval: 1 };
        assert_eq!(replay(&mut sim.clone(), result, &strict).unwrap().verdict, Verdict::Violates);
        // Every actor that lists name is one that starts.
        let started = result.steps.iter().filter(|s| s.kind == StepKind::Start).count();
        assert!(listed(result).iter().all(|n| *n >= started), "{started} start");
    }
}

/// A store that keeps numbers. It breaks when it has both of two.
#[derive(Clone)]
struct Batches {
    actors: Vec<ActorId>,
}

/// Numbers that come in one message.
type Batch = Vec<u32>;

impl Model for Batches {
    type State = BTreeSet<u32>;
    type Msg = Batch;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }
    fn initial(&self, _: ActorId) -> BTreeSet<u32> {
        BTreeSet::new()
    }
    fn deliver(&self, state: &mut BTreeSet<u32>, batch: &Batch, _: &mut Ctx<'_, Batch>) {
        state.extend(batch);
    }
    fn check(&self, view: &View<'_, BTreeSet<u32>>, (): &mut (), found: &mut Vec<Violation>) {
        let both = |s: &BTreeSet<u32>| s.contains(&3) && s.contains(&7);
        if self.actors.iter().any(|a| view.state(*a).is_some_and(both)) {
            found.push(Violation { fingerprint: "Both".into(), affected: self.actors.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<BTreeSet<u32>, Batch> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<BTreeSet<u32>, Batch> {
        self
    }
}

impl Logs<BTreeSet<u32>, Batch> for Batches {
    fn type_name(&self, _: &Batch) -> String {
        "Put".to_owned()
    }

    fn payload(&self, batch: &Batch, _: &Names) -> String {
        format!("Put{batch:?}")
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Batch, String> {
        let numbers = message.payload.strip_prefix("Put").ok_or("no batch")?;
        serde_json::from_str(numbers).map_err(|e| e.to_string())
    }

    fn describe(&self, state: &BTreeSet<u32>, _: &Names) -> Value {
        serde_json::json!(state)
    }
}

impl Guidance<BTreeSet<u32>, Batch> for Batches {
    fn smaller(&self, batch: &Batch, _: &Names) -> Vec<Smaller<Batch>> {
        let without = |gone: &u32| {
            let msg: Batch = batch.iter().filter(|n| *n != gone).copied().collect();
            Smaller { without: format!("command {gone}"), fields: serde_json::json!({"batch": msg}), msg }
        };
        batch.iter().filter(|_| batch.len() > 1).map(without).collect()
    }
}

#[test]
fn commands_that_nobody_needs_leave_their_batches() {
    let scenario = Scenario::parse("model = \"batches\"\nnetwork = \"fifo\"").unwrap();
    let mut steps = vec![Step::new(StepKind::Start, "store")];
    for batch in ["[1, 2, 3, 4]", "[5]", "[8, 6, 7, 1]", "[7, 9]"] {
        let mut step = Step::new(StepKind::Deliver, "store");
        (step.from, step.external) = (Some(DEAD_LETTERS.into()), Some(true));
        (step.type_, step.payload) = (Some("Put".into()), Some(format!("Put{batch}")));
        steps.push(step);
    }
    let mut input = Schedule::new(steps);
    input.header.violation = vec!["Both".into()];
    let mut names = Names::default();
    let actors = vec![names.id("store")];
    let sim = Simulator::new(Batches { actors }, names, &scenario).unwrap();
    let oracle = Criteria { contents: Contents::Shrink, ..Criteria::default() };
    let outcome = asked(&sim, &input, 20_000, &oracle).unwrap();
    let taken: Vec<&str> = outcome.schedule.steps.iter().filter_map(|s| s.payload.as_deref()).collect();
    assert_eq!(taken, ["Put[3]", "Put[7]"]);
    // The file has what a model needs to make the message again.
    assert_eq!(outcome.schedule.steps[1].fields, Some(serde_json::json!({"batch": [3]})));
}
