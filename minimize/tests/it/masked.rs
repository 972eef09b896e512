//! What a mask hides is hidden from logs alone: a handler sees it, so searches and checks tell it apart.

use demi_check::{CertificateError, certify, verify};
use demi_minimize::oracle::engine::Engine;
use demi_minimize::problem::Problem;
use demi_minimize::search::{Query, Root};
use demi_minimize::{Budget, Meter, Objective, StopFlag};
use demi_replay::script::Script;
use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Simulator, View, Violation};
use demi_schemas::certificate::Shortest;
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::scenario::Mask;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Arm(u8),
    Fire(u8),
}

/// One actor with one timer, which carries what it was armed with last. The mask hides that, and the state does not remember it.
#[derive(Clone, Debug)]
struct Carrier {
    ids: Vec<ActorId>,
    /// Whether handlers read what the mask hides.
    reads: bool,
}

impl Model for Carrier {
    /// How often the timer was armed, and whether it fired with what is wrong.
    type State = (u8, bool);
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.ids
    }

    fn initial(&self, _: ActorId) -> (u8, bool) {
        (0, false)
    }

    fn deliver(&self, state: &mut (u8, bool), msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match msg {
            Msg::Arm(with) => {
                state.0 += 1;
                ctx.set_timer("t", Msg::Fire(*with));
            }
            Msg::Fire(with) => state.1 = state.0 == 2 && (*with == 1 || !self.reads),
        }
    }

    fn check(&self, view: &View<'_, (u8, bool)>, (): &mut (), found: &mut Vec<Violation>) {
        if view.state(self.ids[0]).is_some_and(|state| state.1) {
            found.push(Violation { fingerprint: "Bad".into(), affected: self.ids.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<(u8, bool), Msg> {
        self
    }
}

impl Logs<(u8, bool), Msg> for Carrier {
    fn type_name(&self, msg: &Msg) -> String {
        if matches!(msg, Msg::Arm(_)) { "Arm" } else { "Fire" }.to_owned()
    }

    fn masks(&self) -> Vec<Mask> {
        vec![Mask { type_: Some("Fire".into()), pattern: r"\(\d\)".into(), replace: "()".into() }]
    }

    fn read_of_timer(&self, msg: &Msg) -> Option<String> {
        (!self.reads && matches!(msg, Msg::Fire(_))).then(String::new)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        let with = message.payload.trim_start_matches("Arm(").trim_end_matches(')');
        with.parse().map(Msg::Arm).map_err(|_| message.payload.to_owned())
    }
}

fn simulator(reads: bool) -> Simulator<Carrier> {
    let scenario = Scenario::parse("model = 'carrier'\nnetwork = 'unordered'").unwrap();
    let mut names = Names::default();
    let ids = vec![names.id("a")];
    Simulator::new(Carrier { ids, reads }, names, &scenario).unwrap()
}

/// Armed with 2, then with 1, and fired.
fn schedule() -> Schedule {
    let step = |kind, type_: &str, payload: &str| {
        let mut step = Step::new(kind, "a");
        (step.type_, step.payload) = (Some(type_.into()), Some(payload.into()));
        if kind == StepKind::Deliver {
            (step.from, step.external) = (Some(DEAD_LETTERS.into()), Some(true));
        }
        step
    };
    Schedule::new(vec![
        Step::new(StepKind::Start, "a"),
        step(StepKind::Deliver, "Arm", "Arm(2)"),
        step(StepKind::Deliver, "Arm", "Arm(1)"),
        step(StepKind::Timer, "Fire", "Fire(1)"),
    ])
}

#[test]
fn a_search_tells_apart_what_a_mask_hides() {
    // In either order of the events: one of the two comes to the wrong timer first.
    for swapped in [false, true] {
        let mut sim = simulator(true);
        let mut over = schedule();
        if swapped {
            over.steps.swap(1, 2);
        }
        let (script, _) = Script::compile(&mut sim, &over).unwrap();
        let rule = NetworkRule::Unordered;
        let problem = Problem::plain(sim, script.clone(), rule, vec!["Bad".into()], Objective::Steps);
        let mut engine = Engine::new(&problem, Budget::Seconds(1e6));
        let query = Query::from(Root::Started).over(&script.acts).deliveries(4);
        let searched = query.run(&mut engine).unwrap();
        assert_eq!(searched.found.map(|found| found.size.deliveries), Some(3), "swapped: {swapped}");
    }
}

#[test]
fn what_no_handler_reads_makes_no_configurations() {
    let states = |reads| {
        let mut sim = simulator(reads);
        let (script, _) = Script::compile(&mut sim, &schedule()).unwrap();
        let target = vec!["never".to_owned()];
        let problem = Problem::plain(sim, script.clone(), NetworkRule::Unordered, target, Objective::Steps);
        let mut engine = Engine::new(&problem, Budget::Seconds(1e6));
        Query::from(Root::Started).over(&script.acts).deliveries(9).run(&mut engine).unwrap().states
    };
    assert!(states(false) < states(true));
}

#[test]
fn a_bound_that_holds_only_under_the_mask_is_refused() {
    let sim = simulator(true);
    let claimed = |at_least| Shortest {
        at_least,
        optimal: at_least == 3,
        externals: Vec::new(),
        states: 0,
        bounded: false,
        starts_at_any_time: true,
        limited_by: None,
    };
    let target = ["Bad".to_owned()];
    let mut meter = Meter::new(Budget::Seconds(1e6), StopFlag::default());
    let mut verified = |at_least: u64| {
        let (rule, shortest) = (NetworkRule::Unordered, Some(claimed(at_least)));
        let certificate = certify(&sim, &schedule(), rule, &target, ("", false), shortest, &meter).unwrap();
        verify(&sim, &schedule(), &certificate, &mut meter)
    };
    assert!(verified(3).is_ok());
    match verified(4) {
        Err(CertificateError::False(why)) => {
            assert!(why.contains("a violating execution of 3 deliveries"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
