//! Systems that go on for ever and get nowhere: found by random runs and by exploration, named, and minimized.

use demi_explore::{Bounds, Cost, ExploreOptions, Scene, Spent, explore};
use demi_minimize::{Budget, Objective, Options, Phases, StopFlag, minimize};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Ctx, Model, Names, Runtime, Simulator, View, Violation};
use demi_schemas::{NetworkRule, Scenario, Schedule};

const SCENARIO: &str =
    "model = 'm'\nnetwork = 'fifo'\nlivelock = true\nhog = 50\n[fuzz]\nclient_messages = 0";

/// Two nodes that want a lease, each by the other's leave. Who is asked while it asks itself refuses, and who is refused asks again later.
/// The mended one gives in to the first node.
#[derive(Clone)]
struct Lease(Vec<ActorId>, bool);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Word {
    Again,
    Claim,
    Granted,
    Refused,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    claims: bool,
    /// It has the lease, or knows who has.
    done: bool,
}

impl Model for Lease {
    type State = Node;
    type Msg = Word;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> Node {
        Node::default()
    }

    fn start(&self, _: &mut Node, ctx: &mut Ctx<'_, Word>) {
        ctx.set_timer("again", Word::Again);
    }

    fn deliver(&self, node: &mut Node, word: &Word, ctx: &mut Ctx<'_, Word>) {
        let other = if ctx.me() == self.0[0] { self.0[1] } else { self.0[0] };
        match word {
            Word::Again if node.done => {}
            Word::Again => {
                node.claims = true;
                ctx.send(other, Word::Claim);
            }
            Word::Claim if node.claims && !(self.1 && ctx.me() == self.0[1]) => {
                ctx.send(other, Word::Refused)
            }
            Word::Claim => {
                (node.claims, node.done) = (false, true);
                ctx.send(other, Word::Granted);
            }
            Word::Granted => (node.claims, node.done) = (false, true),
            Word::Refused => {
                node.claims = false;
                ctx.set_timer("again", Word::Again);
            }
        }
    }

    fn check(&self, _: &View<'_, Node>, (): &mut (), _: &mut Vec<Violation>) {}

    fn runtime(&self) -> &dyn Runtime<Node, Word> {
        self
    }
}

impl Runtime<Node, Word> for Lease {
    fn unfinished(&self, node: &Node, _: ActorId) -> bool {
        !node.done
    }
}

/// Philosophers who lay the first fork back when the second one is taken, and try again later. Each eats once. In the mended system the
/// last one begins on the other side.
#[derive(Clone)]
struct Polite {
    /// The philosophers, then the forks.
    actors: Vec<ActorId>,
    mended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Hungry,
    Ask,
    Given,
    Taken,
    Back,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Seat {
    hungry: bool,
    has: u8,
    taken: bool,
}

impl Polite {
    fn fork(&self, philosopher: ActorId, second: bool) -> ActorId {
        let n = self.actors.len() / 2;
        let at = self.actors.iter().position(|&actor| actor == philosopher).unwrap();
        let turned = self.mended && at == n - 1;
        self.actors[n + (at + usize::from(second != turned)) % n]
    }
}

impl Model for Polite {
    type State = Seat;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> Seat {
        Seat::default()
    }

    fn start(&self, _: &mut Seat, ctx: &mut Ctx<'_, Msg>) {
        if self.actors[..self.actors.len() / 2].contains(&ctx.me()) {
            ctx.set_timer("hungry", Msg::Hungry);
        }
    }

    fn deliver(&self, seat: &mut Seat, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        match msg {
            Msg::Hungry => {
                seat.hungry = true;
                ctx.send(self.fork(me, false), Msg::Ask);
            }
            Msg::Given if seat.has == 0 => {
                seat.has = 1;
                ctx.send(self.fork(me, true), Msg::Ask);
            }
            Msg::Given => {
                (seat.has, seat.hungry) = (0, false);
                ctx.send(self.fork(me, false), Msg::Back);
                ctx.send(self.fork(me, true), Msg::Back);
            }
            Msg::Taken => {
                if seat.has == 1 {
                    ctx.send(self.fork(me, false), Msg::Back);
                }
                seat.has = 0;
                ctx.set_timer("hungry", Msg::Hungry);
            }
            Msg::Ask if seat.taken => ctx.send(ctx.sender(), Msg::Taken),
            Msg::Ask => {
                seat.taken = true;
                ctx.send(ctx.sender(), Msg::Given);
            }
            Msg::Back => seat.taken = false,
        }
    }

    fn check(&self, _: &View<'_, Seat>, (): &mut (), _: &mut Vec<Violation>) {}

    fn runtime(&self) -> &dyn Runtime<Seat, Msg> {
        self
    }
}

impl Runtime<Seat, Msg> for Polite {
    fn unfinished(&self, seat: &Seat, _: ActorId) -> bool {
        seat.hungry
    }
}

/// Counts by messages to itself: as long as somebody else has something to do, or up to a number in the mended system.
#[derive(Clone)]
struct Busy(Vec<ActorId>, bool);

impl Model for Busy {
    type State = u32;
    type Msg = bool;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> u32 {
        0
    }

    fn start(&self, _: &mut u32, ctx: &mut Ctx<'_, bool>) {
        ctx.set_timer("begin", true);
    }

    fn deliver(&self, state: &mut u32, _: &bool, ctx: &mut Ctx<'_, bool>) {
        *state += 1;
        if ctx.me() == self.0[0] && (!self.1 || *state < 10) {
            ctx.send(self.0[0], false);
        }
    }

    fn check(&self, _: &View<'_, u32>, (): &mut (), _: &mut Vec<Violation>) {}
}

/// A simulator of that model, which looks for livelocks and hogs.
pub fn simulator<M: Model>(make: impl FnOnce(&mut Names) -> M) -> (Scenario, Simulator<M>) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut names = Names::default();
    let model = make(&mut names);
    let sim = Simulator::new(model, names, &scenario).unwrap();
    (scenario, sim)
}

fn lease(mended: bool) -> (Scenario, Simulator<Lease>) {
    simulator(|names| Lease(["node-0", "node-1"].map(|name| names.id(name)).to_vec(), mended))
}

fn polite(philosophers: usize, mended: bool) -> (Scenario, Simulator<Polite>) {
    simulator(|names| {
        let philosopher = (0..philosophers).map(|n| format!("philosopher-{n}"));
        let fork = (0..philosophers).map(|n| format!("fork-{n}"));
        Polite { actors: philosopher.chain(fork).map(|name| names.id(&name)).collect(), mended }
    })
}

fn busy(mended: bool) -> (Scenario, Simulator<Busy>) {
    simulator(|names| Busy(["counter", "other"].map(|name| names.id(name)).to_vec(), mended))
}

/// What random runs find.
fn random<M: Model>(scenario: &Scenario, sim: &mut Simulator<M>) -> Option<(Vec<String>, Schedule)> {
    let options = FuzzOptions::new(1, 300, 200);
    fuzz(sim, scenario, &options, &mut |_| true).unwrap().map(|found| (found.violation, found.schedule))
}

/// What is found within a bound: fingerprints, and the length of the round.
fn least<M: Model>(scenario: &Scenario, sim: &mut Simulator<M>) -> Option<(Vec<String>, usize)> {
    let (scene, first) = Scene::of(sim, scenario, None, 1).unwrap();
    let bounds = Bounds { cost: Cost::Deviation, most: Spent { cost: 3, faults: 0, steps: 30 } };
    let explored = explore(sim, (&scene, first), bounds, ExploreOptions::default(), &mut |_| true).unwrap();
    let finding = explored.findings.into_iter().next()?;
    Some((finding.violations.into_iter().map(|v| v.fingerprint).collect(), finding.round.len()))
}

/// The shortest schedule that ends in it, and what replaying it says of the round.
fn shortest<M: Model>(scenario: &Scenario, sim: &Simulator<M>, schedule: &Schedule) -> (usize, Vec<String>) {
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
    (done.schedule.steps.len(), again.round)
}

#[test]
fn two_nodes_that_refuse_each_other_go_round_for_ever() {
    let (scenario, mut sim) = lease(false);
    let livelock = ["Livelock:node-0:node-1"];
    let (violation, schedule) = random(&scenario, &mut sim).unwrap();
    assert_eq!(violation, livelock);
    // Both ask, both are asked, both are refused.
    assert_eq!(least(&scenario, &mut sim), Some((livelock.map(str::to_owned).to_vec(), 6)));
    // Both have to exist, and one takes something.
    let (steps, round) = shortest(&scenario, &sim, &schedule);
    assert!(steps <= 3, "{steps}");
    assert_eq!(round.len(), 6);
    for said in ["node-0: timer again", "node-0 to node-1: Claim", "node-1 to node-0: Refused"] {
        assert!(round.iter().any(|step| step.starts_with(said)), "{round:?}");
    }
    let (scenario, mut sim) = lease(true);
    assert_eq!((random(&scenario, &mut sim), least(&scenario, &mut sim)), (None, None));
}

#[test]
fn philosophers_who_lay_the_fork_back_never_eat() {
    for philosophers in [2, 3] {
        let (scenario, mut sim) = polite(philosophers, false);
        let names: Vec<String> = (0..philosophers).map(|n| format!(":philosopher-{n}")).collect();
        let all = format!("Livelock{}", names.concat());
        let found = least(&scenario, &mut sim).unwrap();
        assert_eq!(found.0, [all.as_str()]);
        // Each is hungry, asks, gets one, asks again, gets nothing, and lays it back.
        assert_eq!(found.1, 6 * philosophers);
        let (violation, schedule) = random(&scenario, &mut sim).unwrap();
        assert!(violation[0].starts_with("Livelock:philosopher-"), "{violation:?}");
        let (steps, round) = shortest(&scenario, &sim, &schedule);
        assert!(steps <= schedule.steps.len() && !round.is_empty());
        let (scenario, mut sim) = polite(philosophers, true);
        assert_eq!((random(&scenario, &mut sim), least(&scenario, &mut sim)), (None, None));
    }
}

#[test]
fn who_only_talks_to_itself_gives_way_to_nobody() {
    let (scenario, mut sim) = busy(false);
    let (violation, schedule) = random(&scenario, &mut sim).unwrap();
    assert_eq!(violation, ["Hog:counter"]);
    assert_eq!(least(&scenario, &mut sim).unwrap().0, ["Hog:counter"]);
    // Both start, and one begins.
    assert_eq!(shortest(&scenario, &sim, &schedule).0, 3);
    let (scenario, mut sim) = busy(true);
    assert_eq!((random(&scenario, &mut sim), least(&scenario, &mut sim)), (None, None));
}
