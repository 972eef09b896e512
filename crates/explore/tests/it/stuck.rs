//! Deadlock and lost wake-up: found by random runs and by exploration, named, and minimized.

use demi_explore::{Bounds, Cost, ExploreOptions, Scene, Spent, explore};
use demi_minimize::{Budget, Objective, Options, Phases, StopFlag, minimize};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Ctx, Model, Names, Runtime, Simulator, View, Violation};
use demi_schemas::{NetworkRule, Scenario, Schedule};

/// Philosophers around a table, a fork between each two. Each takes the fork on the left, then that on the right, eats, and lays both back.
/// With `one_is_left_handed` the last one begins on the right, which is the repair.
#[derive(Clone)]
struct Table {
    /// The philosophers, then the forks.
    actors: Vec<ActorId>,
    repaired: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Hungry,
    Ask,
    Given,
    Back,
}

/// A philosopher: how many forks it has. A fork: who has it, and who waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    waits: Option<ActorId>,
    has: u8,
    holder: Option<ActorId>,
    queue: Vec<ActorId>,
}

impl Table {
    fn new(philosophers: usize, repaired: bool, names: &mut Names) -> Self {
        let philosopher = (0..philosophers).map(|n| format!("philosopher-{n}"));
        let fork = (0..philosophers).map(|n| format!("fork-{n}"));
        Table { actors: philosopher.chain(fork).map(|name| names.id(&name)).collect(), repaired }
    }

    fn count(&self) -> usize {
        self.actors.len() / 2
    }

    /// The fork that a philosopher takes first or second.
    fn fork(&self, philosopher: ActorId, second: bool) -> ActorId {
        let n = self.count();
        let at = self.actors.iter().position(|&actor| actor == philosopher).unwrap();
        let turned = self.repaired && at == n - 1;
        self.actors[n + (at + usize::from(second != turned)) % n]
    }
}

impl Model for Table {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn start(&self, _: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if self.actors[..self.count()].contains(&ctx.me()) {
            ctx.set_timer("hungry", Msg::Hungry);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        match msg {
            Msg::Hungry => {
                state.waits = Some(self.fork(me, false));
                ctx.send(self.fork(me, false), Msg::Ask);
            }
            Msg::Given => {
                state.has += 1;
                state.waits = None;
                if state.has == 2 {
                    state.has = 0;
                    ctx.send(self.fork(me, false), Msg::Back);
                    ctx.send(self.fork(me, true), Msg::Back);
                    ctx.set_timer("hungry", Msg::Hungry);
                } else {
                    state.waits = Some(self.fork(me, true));
                    ctx.send(self.fork(me, true), Msg::Ask);
                }
            }
            Msg::Ask if state.holder.is_none() => {
                state.holder = Some(ctx.sender());
                ctx.send(ctx.sender(), Msg::Given);
            }
            Msg::Ask => state.queue.push(ctx.sender()),
            Msg::Back => {
                state.holder = (!state.queue.is_empty()).then(|| state.queue.remove(0));
                if let Some(next) = state.holder {
                    ctx.send(next, Msg::Given);
                }
            }
        }
    }

    fn check(&self, _: &View<'_, State>, (): &mut (), _: &mut Vec<Violation>) {}

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }
}

impl Runtime<State, Msg> for Table {
    fn waits_for(&self, state: &State, _: ActorId) -> Vec<ActorId> {
        // A fork that somebody waits for waits to be laid back.
        let laid_back = state.holder.filter(|_| !state.queue.is_empty());
        state.waits.into_iter().chain(laid_back).collect()
    }
}

const SCENARIO: &str = "model = 'm'\nnetwork = 'fifo'\ndeadlock = true\n[fuzz]\nclient_messages = 0";

fn table(philosophers: usize, repaired: bool) -> (Scenario, Simulator<Table>) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut names = Names::default();
    let table = Table::new(philosophers, repaired, &mut names);
    let sim = Simulator::new(table, names, &scenario).unwrap();
    (scenario, sim)
}

/// What random runs find.
fn random<M: Model>(scenario: &Scenario, sim: &mut Simulator<M>) -> Option<(Vec<String>, Schedule)> {
    let options = FuzzOptions::new(1, 300, 200);
    fuzz(sim, scenario, &options, &mut |_| true).unwrap().map(|found| (found.violation, found.schedule))
}

/// What is found within a bound: fingerprints and deviations.
fn least<M: Model>(scenario: &Scenario, sim: &mut Simulator<M>) -> Option<(Vec<String>, u32)> {
    let (scene, first) = Scene::of(sim, scenario, None, 1).unwrap();
    let bounds = Bounds { cost: Cost::Deviation, most: Spent { cost: 3, faults: 0, steps: 30 } };
    let explored = explore(sim, (&scene, first), bounds, ExploreOptions::default(), &mut |_| true).unwrap();
    let finding = explored.findings.into_iter().next()?;
    Some((finding.violations.into_iter().map(|v| v.fingerprint).collect(), finding.spent.cost))
}

/// The shortest schedule that ends in it: its steps, which can be followed.
fn shortest<M: Model>(scenario: &Scenario, sim: &Simulator<M>, schedule: &Schedule) -> usize {
    let options = Options {
        rule: scenario.network,
        budget: Budget::Replays(3_000),
        jobs: 1,
        phases: Phases::All,
        objective: Objective::Steps,
        stop: StopFlag::default(),
    };
    let done = minimize(sim, schedule, None, &options, &|_| {}).unwrap();
    let strict = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };
    let again = replay(&mut sim.clone(), &done.schedule, &strict).unwrap();
    assert_eq!((again.violation, again.divergences), (schedule.header.violation.clone(), 0));
    assert!(done.summary.one_minimal);
    // Searches do not see what is pending, so nothing is proven of what is shorter.
    assert!(done.certificate.settled.is_none() && done.certificate.shortest.is_none_or(|s| !s.optimal));
    done.schedule.steps.len()
}

#[test]
fn philosophers_who_all_take_the_left_fork_wait_for_each_other() {
    for philosophers in [2, 3] {
        let (scenario, mut sim) = table(philosophers, false);
        // Each waits for a fork, and that fork for the next one to lay it back.
        let circle = match philosophers {
            2 => "Deadlock:philosopher-0:fork-1:philosopher-1:fork-0",
            _ => "Deadlock:philosopher-0:fork-1:philosopher-1:fork-2:philosopher-2:fork-0",
        };
        let (violation, schedule) = random(&scenario, &mut sim).unwrap();
        assert_eq!(violation, [circle]);
        assert_eq!(least(&scenario, &mut sim).unwrap().0, [circle]);
        // All start, get hungry, ask for a fork, get it, and ask for the other.
        assert_eq!(shortest(&scenario, &sim, &schedule), 2 * philosophers + 4 * philosophers);
        let (scenario, mut sim) = table(philosophers, true);
        assert_eq!((random(&scenario, &mut sim), least(&scenario, &mut sim)), (None, None));
    }
}

/// A consumer that looks and then sleeps, and a producer that wakes it up: the wake-up may come in between.
#[derive(Clone)]
struct Sleeper(Vec<ActorId>, bool);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Call {
    Look,
    Sleep,
    Produce,
    WakeUp,
}

/// Whether it sleeps, and whether there is something for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Mind {
    sleeps: bool,
    something: bool,
}

impl Model for Sleeper {
    type State = Mind;
    type Msg = Call;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> Mind {
        Mind::default()
    }

    fn start(&self, _: &mut Mind, ctx: &mut Ctx<'_, Call>) {
        let what = if ctx.me() == self.0[0] { Call::Look } else { Call::Produce };
        ctx.set_timer("begin", what);
    }

    fn deliver(&self, mind: &mut Mind, call: &Call, ctx: &mut Ctx<'_, Call>) {
        match call {
            Call::Look if !mind.something => ctx.set_timer("sleep", Call::Sleep),
            // The bug: nobody looks again.
            Call::Sleep => mind.sleeps = !(self.1 && mind.something),
            Call::Produce => ctx.send(self.0[0], Call::WakeUp),
            Call::WakeUp => (mind.something, mind.sleeps) = (true, false),
            Call::Look => {}
        }
    }

    fn check(&self, _: &View<'_, Mind>, (): &mut (), _: &mut Vec<Violation>) {}

    fn runtime(&self) -> &dyn Runtime<Mind, Call> {
        self
    }
}

impl Runtime<Mind, Call> for Sleeper {
    fn waits_for(&self, mind: &Mind, _: ActorId) -> Vec<ActorId> {
        if mind.sleeps { vec![self.0[1]] } else { Vec::new() }
    }
}

fn sleeper(repaired: bool, counts: bool) -> (Scenario, Simulator<Sleeper>) {
    let scenario = Scenario::parse(&SCENARIO.replace("true", &counts.to_string())).unwrap();
    let mut names = Names::default();
    let actors = ["consumer", "producer"].map(|name| names.id(name)).to_vec();
    let sim = Simulator::new(Sleeper(actors, repaired), names, &scenario).unwrap();
    (scenario, sim)
}

#[test]
fn a_lost_wake_up_leaves_the_sleeper_stuck() {
    let (scenario, mut sim) = sleeper(false, true);
    let (violation, schedule) = random(&scenario, &mut sim).unwrap();
    assert_eq!(violation, ["Stuck:consumer"]);
    assert_eq!(least(&scenario, &mut sim).unwrap().0, ["Stuck:consumer"]);
    // Both start; the consumer looks, the producer produces, it wakes up whom nobody has to, who then sleeps.
    assert!(shortest(&scenario, &sim, &schedule) <= 6);
    let (scenario, mut sim) = sleeper(true, true);
    assert_eq!((random(&scenario, &mut sim), least(&scenario, &mut sim)), (None, None));
    // Only who asks for it is told.
    let (scenario, mut sim) = sleeper(false, false);
    assert_eq!(random(&scenario, &mut sim), None);
}
