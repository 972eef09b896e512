//! Random systems whose actors fail, start late, begin anew with a disk, and have timers that look alike: whatever is accepted as smaller
//! passes its strict replay, read from its text by a simulator that knows nothing of the search.

use std::cell::Cell;
use std::sync::Arc;

use demi_minimize::oracle::engine::Engine;
use demi_minimize::{Budget, Objective, Options, Phases, Problem, StopFlag, minimize};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::{Act, Script, Want};
use demi_replay::{
    ActorId, Ctx, ExternalMessage, Logs, Model, Names, PendingKind, Runtime, Simulator, Timer, View,
    Violation,
};
use demi_schemas::schedule::StepKind;
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario, Schedule};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::common::random::RULES;

const ACTORS: u16 = 3;
const STATES: u8 = 3;
const KINDS: u8 = 2;
const HOPS: u8 = 2;
/// Lives that are told apart.
const LIVES: u8 = 3;
const TARGET: &str = "Bad";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Msg {
    kind: u8,
    hops: u8,
    /// In which of its lives the sender sent it.
    life: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    at: u8,
    life: u8,
    disk: u8,
}

/// A timer that a handler sets or cancels.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    name: &'static str,
    key: u64,
    repeats: bool,
    survives: bool,
    /// What it carries; nothing to cancel it.
    kind: Option<u8>,
}

/// What else a handler does.
#[derive(Clone, Copy, Debug)]
enum Life {
    Fail,
    Start(u16),
    Stop(u16),
}

/// What an actor does in one state on one kind.
#[derive(Clone, Debug)]
struct Rule {
    next: u8,
    writes: bool,
    sends: Vec<(u16, u8)>,
    alarm: Option<Alarm>,
    life: Option<Life>,
}

#[derive(Clone, Debug)]
struct Table {
    /// By actor, state and kind.
    rules: Vec<Rule>,
    /// By actor and life.
    starts: Vec<Rule>,
    disk: bool,
    restarts: bool,
    /// States of the first two actors, with their lives.
    bad: ((u8, u8), (u8, u8)),
}

fn rule() -> impl Strategy<Value = Rule> {
    let alarm = (
        prop::sample::select(vec!["tick", "tock"]),
        0..2_u64,
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.3),
        prop::option::weighted(0.8, 0..KINDS),
    )
        .prop_map(|(name, key, repeats, survives, kind)| Alarm { name, key, repeats, survives, kind });
    let life = prop_oneof![
        3 => Just(Life::Fail),
        2 => (1..=ACTORS).prop_map(Life::Start),
        1 => (1..=ACTORS).prop_map(Life::Stop),
    ];
    (
        0..STATES,
        any::<bool>(),
        prop::collection::vec((1..=ACTORS, 0..KINDS), 0..3),
        prop::option::weighted(0.4, alarm),
        prop::option::weighted(0.1, life),
    )
        .prop_map(|(next, writes, sends, alarm, life)| Rule { next, writes, sends, alarm, life })
}

fn table() -> impl Strategy<Value = Table> {
    let of = |count: usize| prop::collection::vec(rule(), count);
    let rules = usize::from(ACTORS) * usize::from(STATES) * usize::from(KINDS);
    let starts = usize::from(ACTORS) * usize::from(LIVES);
    (of(rules), of(starts), prop::bool::weighted(0.7), prop::bool::weighted(0.2)).prop_map(
        |(rules, starts, disk, restarts)| Table { rules, starts, disk, restarts, bad: ((0, 0), (0, 0)) },
    )
}

#[derive(Clone, Debug)]
struct Lives {
    table: Arc<Table>,
    ids: Vec<ActorId>,
}

impl Lives {
    fn apply(&self, rule: &Rule, hops: u8, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.at = rule.next;
        if rule.writes {
            state.disk = rule.next;
        }
        let Some(hops) = hops.checked_sub(1) else { return };
        let life = state.life;
        rule.sends.iter().for_each(|&(to, kind)| ctx.send(ActorId(to), Msg { kind, hops, life }));
        if let Some(alarm) = rule.alarm {
            let mut timer = Timer::named(alarm.name).keyed(alarm.key);
            timer = if alarm.repeats { timer.repeating() } else { timer };
            timer = if alarm.survives { timer.surviving() } else { timer };
            match alarm.kind {
                Some(kind) => ctx.set_timer(timer, Msg { kind, hops, life: 0 }),
                None => ctx.cancel_timer(timer),
            }
        }
        match rule.life {
            Some(Life::Fail) => ctx.crash("it fails"),
            Some(Life::Start(actor)) => ctx.start_actor(ActorId(actor)),
            Some(Life::Stop(actor)) => ctx.stop_actor(ActorId(actor)),
            None => {}
        }
    }
}

impl Model for Lives {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.ids
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        let at = usize::from(ctx.me().0 - 1) * usize::from(LIVES) + usize::from(state.life);
        let rule = Rule { next: state.at, life: None, ..self.table.starts[at].clone() };
        self.apply(&rule, HOPS, state, ctx);
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let at = usize::from(ctx.me().0 - 1) * usize::from(STATES) + usize::from(state.at);
        // The life of the sender counts like another kind.
        let kind = (msg.kind + msg.life) % KINDS;
        let rule = self.table.rules[at * usize::from(KINDS) + usize::from(kind)].clone();
        self.apply(&rule, msg.hops, state, ctx);
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        if pair(view, &self.ids) == Some(self.table.bad) {
            found.push(Violation { fingerprint: TARGET.into(), affected: self.ids[..2].to_vec() });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }
}

type Pair = ((u8, u8), (u8, u8));

fn pair(view: &View<'_, State>, ids: &[ActorId]) -> Option<Pair> {
    let of = |at: usize| view.state(ids[at]).map(|state| (state.at, state.life));
    Some((of(0)?, of(1)?))
}

impl Logs<State, Msg> for Lives {
    fn type_name(&self, msg: &Msg) -> String {
        format!("M{}", msg.kind)
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        format!("M{}/{}/{}", msg.kind, msg.hops, msg.life)
    }

    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Msg, String> {
        let all = (0..KINDS).map(|kind| Msg { kind, hops: HOPS, life: 0 });
        all.into_iter()
            .find(|msg| self.payload(msg, names) == message.payload)
            .ok_or("no such message".into())
    }
}

impl Runtime<State, Msg> for Lives {
    fn recovered(&self, _: ActorId, failed: &State) -> Option<State> {
        let (at, life) = (failed.disk, (failed.life + 1).min(LIVES - 1));
        self.table.disk.then_some(State { at, life, disk: failed.disk })
    }

    fn restarts_by_itself(&self) -> bool {
        self.table.restarts
    }
}

fn simulator(table: &Table) -> Simulator<Lives> {
    let mut names = Names::default();
    let ids = (1..=ACTORS).map(|n| names.id(&format!("a{n}"))).collect();
    let scenario = Scenario::parse("model = 'lives'\nnetwork = 'fifo'").unwrap();
    Simulator::new(Lives { table: Arc::new(table.clone()), ids }, names, &scenario).unwrap()
}

/// A random execution: its steps as a schedule, and the pair of the first two actors' states that came last of all for the first time.
fn execution(table: &mut Table, choices: &[(u8, usize)], rule: NetworkRule) -> Option<Schedule> {
    let problem =
        Problem::plain(simulator(table), Script::default(), rule, vec![TARGET.into()], Objective::Steps);
    let mut engine = Engine::new(&problem, Budget::Seconds(1e6));
    let mut world = engine.sim.empty_world();
    let (mut acts, mut cut, mut seen): (Vec<Act>, usize, Vec<Pair>) = (Vec::new(), 0, Vec::new());
    for &(what, which) in choices {
        let actor = ActorId(1 + (which % usize::from(ACTORS)) as u16);
        let act = match what {
            0 => Act::Start(actor),
            1 => Act::Crash(actor),
            2 => Act::Restart(actor),
            3 => [Act::Isolate(actor), Act::Heal(actor), Act::Stop(actor)][which / 3 % 3],
            4 => {
                let message = |p: &&demi_replay::Pending| p.kind == PendingKind::Message;
                let Some(entry) = world.pending().iter().find(message).copied() else { continue };
                Act::Duplicate(Want::of(&engine.sim, &world, &entry))
            }
            5 => {
                let kind = (which / 3) as u8 % KINDS;
                let msg = engine.sim.intern(Msg { kind, hops: HOPS, life: 0 });
                let Some(index) = engine.sim.inject(&mut world, actor, msg) else { continue };
                if !engine.deliverable(&world, index) {
                    // It stays where it is and may be taken later.
                    continue;
                }
                Act::Deliver(Want::of(&engine.sim, &world, &world.pending()[index]))
            }
            _ => {
                let ready: Vec<usize> =
                    (0..world.pending().len()).filter(|&at| engine.deliverable(&world, at)).collect();
                if ready.is_empty() {
                    continue;
                }
                Act::Deliver(Want::of(&engine.sim, &world, &world.pending()[ready[which % ready.len()]]))
            }
        };
        if !engine.follow(&mut world, &act) {
            continue;
        }
        acts.push(act);
        let pair = pair(&engine.sim.view(&world), &engine.sim.model().ids);
        if let Some(pair) = pair.filter(|pair| !seen.contains(pair)) {
            seen.push(pair);
            (table.bad, cut) = (pair, acts.len());
        }
    }
    let mut schedule = engine.to_schedule(&acts[..cut]);
    // Logs often leave out that everybody starts; which failures they only tell is not known of them.
    let first = schedule.steps.iter().take_while(|step| step.kind == StepKind::Start).count();
    let names: Vec<&str> = schedule.steps[..first].iter().map(|step| &step.to[..]).collect();
    let all =
        names == ["a1", "a2", "a3"] && schedule.steps[first..].iter().all(|s| s.kind != StepKind::Start);
    let fails = acts.iter().any(|act| matches!(act, Act::Crash(_) | Act::Restart(_)));
    if all && !fails && choices.len().is_multiple_of(2) {
        schedule.steps.drain(..first);
        schedule.header.exact = false;
    }
    (cut > 0).then_some(schedule)
}

/// How many systems are tried: more where somebody asks for it.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}

#[test]
fn whatever_is_accepted_passes_its_strict_replay() {
    let config = ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_global_rejects: 1_000_000,
        ..ProptestConfig::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    // Most begin with all starts, as systems do.
    let begun = prop::collection::vec(Just(0_u8), 0..2);
    let what = prop_oneof![1 => Just(0_u8), 2 => 1..5_u8, 3 => Just(5_u8), 9 => Just(6_u8)];
    let choices = prop::collection::vec((what, 0..1_000_usize), 6..50);
    let phases = prop_oneof![
        4 => Just(Phases::All),
        2 => Just(Phases::Ddmin),
        1 => Just(Phases::Sts),
        1 => Just(Phases::NoDiverge),
        1 => Just(Phases::ProbDd),
    ];
    let all = (table(), begun, choices, 0..RULES.len(), phases, any::<bool>());
    let (smaller, faulty) = (Cell::new(0), Cell::new(0));
    TestRunner::new_with_rng(config, rng)
        .run(&all, |(mut table, begun, mut choices, rule, phases, externals)| {
            let rule = RULES[rule];
            if !begun.is_empty() {
                choices.splice(0..0, (0..usize::from(ACTORS)).map(|at| (0, at)));
            }
            let Some(recorded) = execution(&mut table, &choices, rule) else {
                return Err(TestCaseError::reject("nothing happens"));
            };
            let sim = simulator(&table);
            let strict = ReplayOptions { rule, strict: true, interval: 1 };
            let follow = |schedule: &Schedule| {
                let read = Schedule::parse(&schedule.to_text()).unwrap();
                replay(&mut sim.clone(), &read, &strict).unwrap()
            };
            let run = follow(&recorded);
            prop_assert_eq!(run.verdict, Verdict::Violates, "{:?}\n{}", run, recorded.to_text());
            let objective = if externals { Objective::Externals } else { Objective::Steps };
            let (budget, stop) = (Budget::Replays(300), StopFlag::default());
            let options = Options { rule, budget, jobs: 1, phases, objective, stop };
            let result = minimize(&sim, &recorded, None, &options, &|_| {});
            let result = match result {
                Ok(result) => result,
                Err(error) => return Err(TestCaseError::fail(format!("{error}\n{}", recorded.to_text()))),
            };
            let why = || format!("{:?}\n{}", result.summary.refused_because, recorded.to_text());
            prop_assert_eq!(result.summary.refused, 0, "{}", why());
            for schedule in std::iter::once(&result.schedule).chain(result.others.iter().map(|(_, s)| s)) {
                let run = follow(schedule);
                prop_assert_eq!(
                    (run.verdict, run.divergences),
                    (Verdict::Violates, 0),
                    "{}",
                    schedule.to_text()
                );
            }
            smaller.set(smaller.get() + u32::from(result.schedule.steps.len() < recorded.steps.len()));
            let fault = |s: &demi_schemas::Step| matches!(s.kind, StepKind::Crash | StepKind::Restart);
            faulty.set(faulty.get() + u32::from(result.schedule.steps.iter().any(fault)));
            Ok(())
        })
        .unwrap();
    let (smaller, faulty) = (smaller.get(), faulty.get());
    assert!(smaller > cases() / 2 && faulty > cases() / 20, "{smaller} smaller, {faulty} with a fault");
}
