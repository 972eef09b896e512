//! Timers that look alike: what tells them apart decides what comes next.

use demi_check::{CertificateError, certify, verify};
use demi_minimize::{Budget, Meter, StopFlag};
use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Simulator, Timer, View, Violation};
use demi_schemas::certificate::Shortest;
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};

/// What the two timers differ in, besides that they are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    /// The keys of one name.
    Keys,
    /// The names.
    Names,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Fire,
    Cancel,
    Slow,
}

/// One actor with two timers. What it cancels is the timer that was armed last.
#[derive(Clone, Debug)]
struct Clocks {
    ids: Vec<ActorId>,
    apart: Apart,
}

impl Clocks {
    fn timers(&self) -> [Timer; 2] {
        match self.apart {
            Apart::Keys => [Timer::named("t").keyed(2), Timer::named("t").keyed(1)],
            Apart::Names => [Timer::named("t"), Timer::named("u")],
        }
    }
}

impl Model for Clocks {
    /// Fired, and what else came.
    type State = (u8, u8);
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.ids
    }

    fn initial(&self, _: ActorId) -> (u8, u8) {
        (0, 0)
    }

    fn start(&self, _: &mut (u8, u8), ctx: &mut Ctx<'_, Msg>) {
        self.timers().into_iter().for_each(|timer| ctx.set_timer(timer, Msg::Fire));
    }

    fn deliver(&self, state: &mut (u8, u8), msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match (msg, &state) {
            (Msg::Fire, _) => state.0 += 1,
            (Msg::Cancel, (1, 0)) => {
                ctx.cancel_timer(self.timers()[1]);
                *state = (0, 10);
            }
            (Msg::Cancel, _) => *state = (0, 20),
            (Msg::Slow, _) => state.1 += 1,
        }
    }

    fn check(&self, view: &View<'_, (u8, u8)>, (): &mut (), found: &mut Vec<Violation>) {
        let state = view.state(self.ids[0]).copied();
        // Three deliveries along the short way, and four along the other.
        if state == Some((1, 10)) || state == Some((1, 22)) {
            found.push(Violation { fingerprint: "Bad".into(), affected: self.ids.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<(u8, u8), Msg> {
        self
    }
}

impl Logs<(u8, u8), Msg> for Clocks {
    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        match message.payload {
            "Cancel" => Ok(Msg::Cancel),
            "Slow" => Ok(Msg::Slow),
            other => Err(format!("no message {other}")),
        }
    }
}

fn simulator(apart: Apart) -> Simulator<Clocks> {
    let scenario = Scenario::parse("model = 'clocks'\nnetwork = 'fifo'").unwrap();
    let mut names = Names::default();
    let ids = vec![names.id("a")];
    Simulator::new(Clocks { ids, apart }, names, &scenario).unwrap()
}

fn step(kind: StepKind, payload: &str) -> Step {
    let mut step = Step::new(kind, "a");
    (step.type_, step.payload) = (Some(payload.into()), Some(payload.into()));
    if kind == StepKind::Deliver {
        (step.from, step.external) = (Some(DEAD_LETTERS.into()), Some(true));
    }
    step
}

#[test]
fn a_bound_that_holds_only_if_timers_are_mixed_up_is_refused() {
    for apart in [Apart::Keys, Apart::Names] {
        let sim = simulator(apart);
        let steps = vec![
            Step::new(StepKind::Start, "a"),
            step(StepKind::Deliver, "Cancel"),
            step(StepKind::Deliver, "Slow"),
            step(StepKind::Deliver, "Slow"),
            step(StepKind::Timer, "Fire"),
        ];
        let schedule = Schedule::new(steps);
        let claimed = |at_least: u64| Shortest {
            at_least,
            optimal: at_least == 4,
            externals: Vec::new(),
            states: 0,
            bounded: false,
            starts_at_any_time: true,
            limited_by: None,
        };
        let target = ["Bad".to_owned()];
        let mut meter = Meter::new(Budget::Seconds(1e6), StopFlag::default());
        let mut verified = |at_least| {
            let shortest = Some(claimed(at_least));
            let rule = NetworkRule::Fifo;
            let certificate = certify(&sim, &schedule, rule, &target, ("", false), shortest, &meter).unwrap();
            verify(&sim, &schedule, &certificate, &mut meter)
        };
        assert!(verified(3).is_ok(), "{apart:?}");
        match verified(4) {
            Err(CertificateError::False(why)) => {
                assert!(why.contains("a violating execution of 3 deliveries"), "{why}");
            }
            other => panic!("{apart:?}: {other:?}"),
        }
    }
}
