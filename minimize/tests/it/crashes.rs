//! Handlers that panic: violations that are minimized, proven and told apart like others.

use demi_check::verify;
use demi_minimize::{Budget, Meter, MinimizeError, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Runtime, Simulator, View, Violation};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};

/// It writes the numbers that it takes to its disk, and passes them on.
#[derive(Clone, Debug)]
struct Fragile(Vec<ActorId>);

impl Model for Fragile {
    type State = Vec<u8>;
    type Msg = u8;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> Vec<u8> {
        Vec::new()
    }

    fn start(&self, state: &mut Vec<u8>, _: &mut Ctx<'_, u8>) {
        assert!(!state.contains(&7), "there is a seven on the disk");
    }

    fn deliver(&self, state: &mut Vec<u8>, msg: &u8, ctx: &mut Ctx<'_, u8>) {
        // Half of it is done before it fails.
        state.push(*msg);
        assert!(*msg != 9 || state.contains(&5), "nine before five, at {:p}", state);
        assert!(*msg != 9 || state.contains(&6), "nine before six");
        if ctx.me() == self.0[0] {
            ctx.send(self.0[1], *msg);
        }
    }

    fn check(&self, _: &View<'_, Vec<u8>>, (): &mut (), _: &mut Vec<Violation>) {}

    fn logs(&self) -> &dyn Logs<Vec<u8>, u8> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<Vec<u8>, u8> {
        self
    }
}

impl Logs<Vec<u8>, u8> for Fragile {
    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<u8, String> {
        message.payload.parse().map_err(|_| "no number".to_owned())
    }
}

impl Runtime<Vec<u8>, u8> for Fragile {
    fn recovered(&self, _: ActorId, failed: &Vec<u8>) -> Option<Vec<u8>> {
        Some(failed.clone())
    }
}

fn simulator(more: &str) -> Simulator<Fragile> {
    let scenario = Scenario::parse(&format!("model = 'fragile'\nnetwork = 'fifo'\n{more}")).unwrap();
    let mut names = Names::default();
    let ids = vec![names.id("a"), names.id("b")];
    Simulator::new(Fragile(ids), names, &scenario).unwrap()
}

fn step(kind: StepKind, to: &str, number: u8) -> Step {
    let mut step = Step::new(kind, to);
    if kind == StepKind::Deliver {
        step.payload = Some(number.to_string());
        step.from = Some(if to == "a" { DEAD_LETTERS } else { "a" }.to_owned());
        step.external = Some(to == "a");
    }
    step
}

/// What comes from outside to `a`, and then the last step, after which `crash` is found.
fn recorded(numbers: &[u8], last: &[Step], crash: &str) -> Schedule {
    let mut steps = vec![step(StepKind::Start, "a", 0), step(StepKind::Start, "b", 0)];
    steps.extend(numbers.iter().map(|number| step(StepKind::Deliver, "a", *number)));
    steps.extend_from_slice(last);
    let mut schedule = Schedule::new(steps);
    let run = replay(&mut simulator(""), &schedule, &STRICT).unwrap();
    assert!(run.violation.len() == 1 && run.violation[0].starts_with(crash), "{run:?}");
    assert!(run.violation[0].contains("crashes.rs:"), "{run:?}");
    schedule.header.violation = run.violation;
    schedule
}

const STRICT: ReplayOptions = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };

fn minimized(sim: &Simulator<Fragile>, schedule: &Schedule) -> Result<Outcome, MinimizeError> {
    let options = Options {
        rule: NetworkRule::Fifo,
        budget: Budget::Replays(3_000),
        jobs: 1,
        phases: Phases::All,
        objective: Objective::Steps,
        stop: StopFlag::default(),
    };
    minimize(sim, schedule, None, &options, &|_| {})
}

fn steps(outcome: &Outcome) -> Vec<String> {
    let told =
        |step: &Step| format!("{:?} {} {}", step.kind, step.to, step.payload.clone().unwrap_or_default());
    outcome.schedule.steps.iter().map(|step| told(step).trim_end().to_owned()).collect()
}

#[test]
fn crashes_are_minimized_and_told_apart_by_text_and_place() {
    let all = [1, 2, 3, 7];
    let sent = |numbers: &[u8]| numbers.iter().map(|n| step(StepKind::Deliver, "b", *n)).collect::<Vec<_>>();
    let first = recorded(&[&all[..], &[9]].concat(), &[], "crash: a, nine before five, at 0x… (");
    let second = recorded(&[&all[..], &[5, 4, 9]].concat(), &[], "crash: a, nine before six (");
    let disk = [step(StepKind::Crash, "a", 0), step(StepKind::Restart, "a", 0)];
    let third = recorded(
        &all,
        &[sent(&all[..2]), disk.to_vec()].concat(),
        "crash: a, there is a seven on the disk (",
    );
    for (recorded, expected) in [
        (&first, &["Start a", "Deliver a 9"][..]),
        (&second, &["Start a", "Deliver a 5", "Deliver a 9"]),
        (&third, &["Start a", "Deliver a 7", "Restart a"]),
    ] {
        let sim = simulator("");
        let done = minimized(&sim, recorded).unwrap();
        assert_eq!(steps(&done), expected);
        assert_eq!((&done.summary.violation, done.summary.refused), (&recorded.header.violation, 0));
        let mut meter = Meter::new(Budget::Seconds(1e6), StopFlag::default());
        verify(&sim, &done.schedule, &done.certificate, &mut meter).unwrap();
        let shortest = done.certificate.shortest.clone().unwrap();
        assert!(shortest.optimal, "{shortest:?}");
        let mut more = done.certificate.clone();
        let claimed = more.shortest.as_mut().unwrap();
        (claimed.at_least, claimed.optimal) = (claimed.at_least + 1, false);
        assert!(verify(&sim, &done.schedule, &more, &mut meter).is_err(), "it claims too much");
    }
}

#[test]
fn a_crash_at_another_actor_is_another_one() {
    let mut recorded_at_b =
        recorded(&[7, 5, 6], &[step(StepKind::Restart, "a", 0)], "crash: a, there is a seven");
    assert!(recorded_at_b.header.violation[0].starts_with("crash: a, "));
    recorded_at_b.steps.truncate(5);
    let last = [step(StepKind::Deliver, "b", 7), step(StepKind::Restart, "b", 0)];
    recorded_at_b.steps.extend(last);
    recorded_at_b.header.violation.clear();
    let done = minimized(&simulator(""), &recorded_at_b).unwrap();
    assert!(
        done.summary.violation[0].starts_with("crash: b, there is a seven"),
        "{:?}",
        done.summary.violation
    );
    assert_eq!(steps(&done).len(), 5, "{:?}", steps(&done));
}

#[test]
fn where_crashes_do_not_count_there_is_nothing_to_minimize() {
    let schedule = recorded(&[1, 9], &[], "crash: a, nine before five");
    let refused = minimized(&simulator("no_crash = true"), &schedule);
    assert!(matches!(refused, Err(MinimizeError::NoViolation { .. })), "{refused:?}");
}
