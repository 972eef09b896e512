//! Two actors change places after a stretch that decided who plays which part.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::{EXACT, Policy};
use demi_minimize::problem::Problem;
use demi_minimize::reduce::reducer::Reducer;
use demi_minimize::reduce::registry::Pass;
use demi_minimize::{Budget, Objective};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::Script;
use demi_replay::{ActorId, Ctx, Logs, Model, Names, Simulator, View, Violation};
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario};

/// What two actors tell each other to find a leader: who has more, or as much and the greater name, leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Msg {
    /// A timer: ask the other one.
    Look,
    /// So much has the sender.
    Vote(u8),
    /// The sender follows.
    Joined,
    /// A timer: act as a leader, which is the bug.
    Act,
}

/// Who follows has more from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Voter {
    has: u8,
    led: bool,
    acted: bool,
}

#[derive(Clone, Debug)]
struct Pair(Vec<ActorId>);

impl Model for Pair {
    type State = Voter;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> Voter {
        Voter::default()
    }

    fn start(&self, _: &mut Voter, ctx: &mut Ctx<'_, Msg>) {
        ctx.set_timer("look", Msg::Look);
        ctx.set_timer("act", Msg::Act);
    }

    fn deliver(&self, state: &mut Voter, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let other = if ctx.me() == self.0[0] { self.0[1] } else { self.0[0] };
        match msg {
            Msg::Look => ctx.send(other, Msg::Vote(state.has)),
            Msg::Vote(has) if (*has, other) > (state.has, ctx.me()) => {
                state.has += 2;
                ctx.send(other, Msg::Joined);
            }
            Msg::Vote(_) => {}
            Msg::Joined => state.led = true,
            Msg::Act => state.acted = state.led,
        }
    }

    fn check(&self, view: &View<'_, Voter>, (): &mut (), found: &mut Vec<Violation>) {
        if self.0.iter().any(|actor| view.state(*actor).is_some_and(|voter| voter.acted)) {
            found.push(Violation { fingerprint: "Acted".into(), affected: self.0.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<Voter, Msg> {
        self
    }
}

impl Logs<Voter, Msg> for Pair {}

fn simulator() -> Simulator<Pair> {
    let scenario = Scenario::parse("model = 'pair'\nnetwork = 'unordered'").unwrap();
    let mut names = Names::default();
    let ids = vec![names.id("a"), names.id("b")];
    Simulator::new(Pair(ids), names, &scenario).unwrap()
}

fn step(kind: StepKind, to: &str, from: Option<&str>, payload: &str) -> Step {
    let type_ = payload.split('(').next().map(str::to_owned);
    Step { type_, payload: Some(payload.to_owned()), from: from.map(str::to_owned), ..Step::new(kind, to) }
}

#[test]
fn the_rest_is_possible_with_the_parts_exchanged() {
    use StepKind::{Deliver, Start, Timer};
    let rule = NetworkRule::Unordered;
    // `a` leads only because it followed before.
    let recorded = Schedule::new(vec![
        Step { external: Some(true), ..Step::new(Start, "a") },
        Step { external: Some(true), ..Step::new(Start, "b") },
        step(Timer, "b", None, "Look"),
        step(Deliver, "a", Some("b"), "Vote(0)"),
        step(Timer, "a", None, "Look"),
        step(Deliver, "b", Some("a"), "Vote(2)"),
        step(Deliver, "a", Some("b"), "Joined"),
        step(Timer, "a", None, "Act"),
    ]);
    let mut with = simulator();
    let (script, _) = Script::compile(&mut with, &recorded).unwrap();
    let problem = Problem::plain(with, script.clone(), rule, vec!["Acted".into()], Objective::Steps);
    let mut engine = Engine::new(&problem, Budget::Replays(10_000));
    let witness = engine.first_witness(&script.acts, EXACT).unwrap();
    assert_eq!(witness.size.steps, 8);
    let mut reducer = Reducer::new(engine, witness, &|_| ());
    let policies = Policy::portfolio(rule);
    reducer.sweep(&policies);
    assert_eq!(reducer.best.size.steps, 8, "nothing can be left out as it stands");
    Pass::Renamings.step(&mut reducer, &policies);
    assert_eq!(reducer.best.size.steps, 6, "b leads at once");
    let schedule = reducer.engine.to_schedule(&reducer.best.acts);
    let told: Vec<(StepKind, &str)> = schedule.steps.iter().map(|s| (s.kind, s.to.as_str())).collect();
    assert_eq!(told[2..], [(Timer, "b"), (Deliver, "a"), (Deliver, "b"), (Timer, "b")]);
    let strict = ReplayOptions { rule, strict: true, interval: 1 };
    assert_eq!(replay(&mut simulator(), &schedule, &strict).unwrap().verdict, Verdict::Violates);
}
