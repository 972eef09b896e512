//! A violation that is there after the starts: no delivery leads to it, and none is claimed to be needed.

use demi_check::{CertificateError, verify, verify_settled};
use demi_minimize::{Budget, Meter, Objective, Options, Phases, StopFlag, minimize};
use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Simulator, View, Violation};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};

/// Both lead from the beginning; a message ends that, or begins it again.
#[derive(Clone, Debug)]
struct Leaders(Vec<ActorId>);

impl Model for Leaders {
    type State = bool;
    type Msg = u8;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> bool {
        true
    }

    fn deliver(&self, leads: &mut bool, _: &u8, _: &mut Ctx<'_, u8>) {
        *leads = !*leads;
    }

    fn check(&self, view: &View<'_, bool>, (): &mut (), found: &mut Vec<Violation>) {
        if self.0.iter().all(|actor| view.state(*actor) == Some(&true)) {
            found.push(Violation { fingerprint: "TwoLeaders".to_owned(), affected: self.0.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<bool, u8> {
        self
    }
}

impl Logs<bool, u8> for Leaders {
    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<u8, String> {
        message.payload.parse().map_err(|_| "no number".to_owned())
    }
}

#[test]
fn no_delivery_is_needed_and_none_is_claimed() {
    let scenario = Scenario::parse("model = 'leaders'\nnetwork = 'unordered'").unwrap();
    let mut names = Names::default();
    let ids = vec![names.id("a"), names.id("b")];
    let sim = Simulator::new(Leaders(ids), names, &scenario).unwrap();
    let mut steps = vec![Step::new(StepKind::Start, "a"), Step::new(StepKind::Start, "b")];
    for number in ["1", "2"] {
        let mut step = Step::new(StepKind::Deliver, "a");
        step.payload = Some(number.to_owned());
        (step.from, step.external) = (Some(DEAD_LETTERS.to_owned()), Some(true));
        steps.push(step);
    }
    let mut recorded = Schedule::new(steps);
    recorded.header.violation = vec!["TwoLeaders".to_owned()];
    let options = Options {
        rule: NetworkRule::Unordered,
        budget: Budget::Replays(3_000),
        jobs: 1,
        phases: Phases::All,
        objective: Objective::Steps,
        stop: StopFlag::default(),
    };
    let found = minimize(&sim, &recorded, None, &options, &|_| {}).unwrap();
    assert_eq!((found.schedule.deliveries(), found.schedule.steps.len()), (0, 2));
    let mut meter = Meter::new(Budget::Seconds(1e6), StopFlag::default());
    let mut certificate = found.certificate;
    verify(&sim, &found.schedule, &certificate, &mut meter).unwrap();
    verify_settled(&sim, &recorded, &certificate, &mut meter).unwrap();
    let shortest = certificate.shortest.as_mut().unwrap();
    assert_eq!((shortest.at_least, shortest.optimal), (0, true));
    // One is claimed, as before.
    (shortest.at_least, shortest.optimal) = (1, false);
    shortest.limited_by = Some("late start".to_owned());
    let refused = verify(&sim, &found.schedule, &certificate, &mut meter).unwrap_err();
    assert!(matches!(&refused, CertificateError::False(why) if why.contains("has fewer")), "{refused}");
}
