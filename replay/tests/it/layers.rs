//! The layers of the model API: what is there without them, timers with keys, disks, and who waits for whom.

use std::collections::BTreeSet;

use demi_replay::script::Script;
use demi_replay::{ActorId, Ctx, Logs, Model, Names, Proposal, Runtime, Simulator, Timer, View, Violation};
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;

use crate::token_ring::{Msg, Ring};

fn simulator<M: Model>(make: impl FnOnce(&mut Names) -> M) -> Simulator<M> {
    let scenario = Scenario::parse("model = 'test'\nnetwork = 'fifo'").unwrap();
    let mut names = Names::default();
    let model = make(&mut names);
    Simulator::new(model, names, &scenario).unwrap()
}

fn ring(size: usize) -> Simulator<Ring> {
    simulator(|names| Ring((0..size).map(|n| names.id(&format!("node-{n}"))).collect()))
}

#[test]
fn a_core_alone_logs_what_debug_prints() {
    let mut sim = ring(2);
    let token = sim.intern(Msg::Token);
    let info = sim.info(token).clone();
    assert_eq!((sim.text(info.type_), sim.text(info.payload)), ("Token", "Token"));
    assert_eq!(sim.model().logs().describe(&true, sim.names()), serde_json::json!("true"));
    let logs: &dyn Logs<(), (&str, u32)> = &();
    assert_eq!(logs.type_name(&("a", 1)), "", "a tuple has no name");
    let logs: &dyn Logs<(), Option<u32>> = &();
    assert_eq!(logs.type_name(&Some(1)), "Some");
}

#[test]
fn what_is_proposed_can_come_from_outside_without_logs() {
    let mut sim = ring(2);
    let outside = |payload: &str| {
        let mut step = Step::new(StepKind::Deliver, "node-0");
        step.from = Some(demi_schemas::event::DEAD_LETTERS.into());
        (step.type_, step.payload, step.external) = (Some(payload.into()), Some(payload.into()), Some(true));
        Schedule::new(vec![Step::new(StepKind::Start, "node-0"), step])
    };
    assert!(Script::compile(&mut sim, &outside("Token")).is_ok());
    let refused = Script::compile(&mut sim, &outside("Impatient")).unwrap_err().to_string();
    assert!(refused.contains("Logs::external"), "{refused}");
}

proptest! {
    /// Nobody makes a token before somebody was impatient without one, so the first of two is always that one's.
    #[test]
    fn the_ring_breaks_only_by_impatience(size in 2..6_usize, choices in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let mut sim = ring(size);
        let (mut world, actors) = (sim.empty_world(), sim.model().0.clone());
        actors.iter().for_each(|&actor| sim.start(&mut world, actor));
        for Proposal { to, msg, .. } in sim.model().workload().bootstrap(sim.names()) {
            let msg = sim.intern(msg);
            sim.inject(&mut world, to, msg);
        }
        let mut holders = BTreeSet::new();
        for choice in choices {
            let ready: Vec<usize> = (0..world.pending().len())
                .filter(|&i| sim.deliverable(&world, i, NetworkRule::Fifo)).collect();
            let entry = sim.deliver(&mut world, ready[choice.index(ready.len())], NetworkRule::Fifo);
            let made = sim.info(entry.msg).msg == Msg::Token || !holders.remove(&entry.to);
            if made {
                holders.insert(entry.to);
            }
            let mut found = Vec::new();
            sim.check(&world, &mut (), &mut found);
            prop_assert_eq!(found.is_empty(), holders.len() < 2);
        }
    }
}

/// An actor with a timer for each request, a number on disk, and peers it waits for.
#[derive(Clone)]
struct Clerk {
    actors: Vec<ActorId>,
    disk: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Desk {
    written: u32,
    cache: u32,
    fired: Vec<u64>,
    waits: Vec<ActorId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Order {
    Set(u64),
    Cancel(u64),
    Fired(u64),
    Write,
    WaitFor(Vec<ActorId>),
    Answer,
}

impl Model for Clerk {
    type State = Desk;
    type Msg = Order;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> Desk {
        Desk::default()
    }

    fn deliver(&self, desk: &mut Desk, order: &Order, ctx: &mut Ctx<'_, Order>) {
        assert_eq!((ctx.inputs().now, ctx.inputs().random), (None, None), "no schedule says them");
        let request = |key| Timer::named("request").keyed(key);
        match order {
            Order::Set(key) => ctx.set_timer(request(*key), Order::Fired(*key)),
            Order::Cancel(key) => ctx.cancel_timer(request(*key)),
            Order::Fired(key) => desk.fired.push(*key),
            Order::Write => (desk.written, desk.cache) = (desk.written + 1, desk.cache + 1),
            Order::WaitFor(others) => desk.waits.clone_from(others),
            Order::Answer => desk.waits.clear(),
        }
    }

    fn check(&self, _: &View<'_, Desk>, (): &mut (), _: &mut Vec<Violation>) {}

    fn runtime(&self) -> &dyn Runtime<Desk, Order> {
        self
    }
}

impl Runtime<Desk, Order> for Clerk {
    fn accepts(&self, desk: &Desk, _: ActorId, _: ActorId, order: &Order) -> bool {
        desk.waits.is_empty() || *order == Order::Answer
    }

    fn waits_for(&self, desk: &Desk, _: ActorId) -> Vec<ActorId> {
        desk.waits.clone()
    }

    fn recovered(&self, _: ActorId, failed: &Desk) -> Option<Desk> {
        self.disk.then(|| Desk { written: failed.written, ..Desk::default() })
    }
}

fn clerks(count: usize, disk: bool) -> (Simulator<Clerk>, demi_replay::World<Clerk>, Vec<ActorId>) {
    let mut sim = simulator(|names| Clerk {
        actors: (0..count).map(|n| names.id(&format!("clerk-{n}"))).collect(),
        disk,
    });
    let (mut world, actors) = (sim.empty_world(), sim.model().actors.clone());
    actors.iter().for_each(|&actor| sim.start(&mut world, actor));
    (sim, world, actors)
}

fn tell(sim: &mut Simulator<Clerk>, world: &mut demi_replay::World<Clerk>, to: ActorId, order: Order) {
    let msg = sim.intern(order);
    let index = sim.inject(world, to, msg).unwrap();
    assert!(sim.deliverable(world, index, NetworkRule::Fifo));
    sim.deliver(world, index, NetworkRule::Fifo);
}

proptest! {
    /// Against a set of keys: at most one timer of each is live, and only the one that is named is cancelled.
    #[test]
    fn timers_of_one_name_are_told_apart_by_their_keys(orders in prop::collection::vec((0..2_u8, 0..5_u64), 0..30)) {
        let (mut sim, mut world, actors) = clerks(1, false);
        let mut live = BTreeSet::new();
        for (what, key) in orders {
            match what {
                0 => {
                    tell(&mut sim, &mut world, actors[0], Order::Set(key));
                    live.insert(key);
                }
                _ => {
                    tell(&mut sim, &mut world, actors[0], Order::Cancel(key));
                    live.remove(&key);
                }
            }
            let name = |key: &u64| if *key == 0 { "request".to_owned() } else { format!("request/{key}") };
            let expected: BTreeSet<String> = live.iter().map(name).collect();
            let timers: Vec<String> = world.pending().iter().map(|p| sim.timer_name(p).into_owned()).collect();
            prop_assert_eq!(timers.len(), expected.len());
            prop_assert_eq!(timers.into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }
}

#[test]
fn a_handler_that_sets_too_many_timers_fails() {
    let (mut sim, mut world, actors) = clerks(1, false);
    let most = (0..70_000).find(|&key| {
        tell(&mut sim, &mut world, actors[0], Order::Set(key));
        let failed = sim.crash_reason().is_some();
        // Timers that are gone keep their numbers.
        world = sim.empty_world();
        sim.start(&mut world, actors[0]);
        failed
    });
    assert_eq!(most, Some(65_000));
}

#[test]
fn a_disk_outlives_a_failure_but_not_a_stop() {
    for (disk, kept) in [(true, 2), (false, 0)] {
        let (mut sim, mut world, actors) = clerks(1, disk);
        let clerk = actors[0];
        let desk = |sim: &Simulator<Clerk>, world: &_| sim.view(world).state(clerk).unwrap().clone();
        let write = |sim: &mut Simulator<Clerk>, world: &mut _| tell(sim, world, clerk, Order::Write);
        write(&mut sim, &mut world);
        write(&mut sim, &mut world);
        assert_eq!(desk(&sim, &world), Desk { written: 2, cache: 2, ..Desk::default() });
        // By a failure and a restart, by a failure and a start, and by a restart alone.
        sim.crash(&mut world, clerk);
        assert!(sim.view(&world).state(clerk).is_none());
        sim.restart(&mut world, clerk);
        assert_eq!(desk(&sim, &world), Desk { written: kept, ..Desk::default() });
        sim.crash(&mut world, clerk);
        sim.start(&mut world, clerk);
        assert_eq!(desk(&sim, &world).written, kept);
        sim.restart(&mut world, clerk);
        assert_eq!(desk(&sim, &world).written, kept);
        sim.stop(&mut world, clerk);
        sim.start(&mut world, clerk);
        assert_eq!(desk(&sim, &world), Desk::default());
    }
}

proptest! {
    /// Against the definition: the greatest set of waiting actors in which each waits for one of the set.
    #[test]
    fn a_deadlock_is_a_circle_of_those_who_wait(
        waits in prop::collection::vec(prop::collection::vec(0..5_usize, 0..3), 5),
        answered in prop::collection::vec(any::<bool>(), 5),
    ) {
        let (mut sim, mut world, actors) = clerks(5, false);
        for (at, others) in waits.iter().enumerate() {
            let others = others.iter().map(|other| actors[*other]).collect();
            tell(&mut sim, &mut world, actors[at], Order::WaitFor(others));
            // What is not taken helps nobody.
            let (answer, order) = (sim.intern(Order::Answer), sim.intern(Order::Write));
            sim.inject(&mut world, actors[at], if answered[at] { answer } else { order });
        }
        let stuck = |set: u32| (0..5).filter(|at| set & 1 << at != 0).all(|at: usize| {
            !answered[at] && waits[at].iter().any(|other| set & 1 << other != 0)
        });
        let greatest = (0..32_u32).filter(|set| stuck(*set)).fold(0, |all, set| all | set);
        let expected: Vec<ActorId> =
            (0..5).filter(|at| greatest & 1 << at != 0).map(|at: usize| actors[at]).collect();
        prop_assert_eq!(sim.deadlocked(&world), expected);
    }
}
