//! Partial order reduction against a search of all orders that knows no simulator: each order that matters is
//! executed once, and no configuration that an invariant could tell apart is missed.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::common::{HOPS, KINDS, Machine, Msg, Table, simulator, table};
use demi_minimize::dpor::step::{Choice, Ground, Proc, Step, Tracked};
use demi_minimize::dpor::{Explored, Explorer, Guide, Limits, Priority};
use demi_replay::model::{Distance, Waiting};
use demi_replay::script::Act;
use demi_replay::{ActorId, Simulator, Status, View, World};
use demi_schemas::NetworkRule;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];
/// Beginnings of orders after which the search of all is given up.
const MOST: usize = 4_000;

/// What sent a message, and what sent that, and so on, each time as the how manieth.
type Name = Vec<u8>;

/// What tells orders apart: for each actor what it took, and in which order an invariant sees things happen.
type Trace = (BTreeMap<u16, Vec<Name>>, Vec<Name>);

/// The states of the first two actors.
type Pairs = BTreeSet<(Option<u8>, Option<u8>)>;

/// A trace as an exploration tells it.
type Told = (BTreeMap<u16, Vec<Proc>>, Vec<Proc>);

#[derive(Clone)]
struct Entry {
    from: u16,
    to: u16,
    msg: Msg,
    timer: bool,
    name: Name,
}

/// Everything that matters of one moment, and how it came about.
#[derive(Clone)]
struct Now {
    /// By actor, from 1; nothing of those that failed or are gone.
    states: Vec<Option<u8>>,
    /// Who is cut off.
    isolated: Vec<bool>,
    /// Who is gone for good.
    gone: Vec<bool>,
    pending: Vec<Entry>,
    faults: usize,
    trace: Trace,
}

/// A system with its messages from outside and faults.
#[derive(Clone, Debug)]
struct System {
    table: Table,
    outside: Vec<(u16, u8)>,
    faults: Vec<Act>,
    rule: NetworkRule,
}

impl System {
    fn first(&self) -> Now {
        let entry = |(k, &(to, kind)): (usize, &(u16, u8))| {
            let msg = Msg { kind, hops: HOPS };
            Entry { from: 0, to, msg, timer: false, name: vec![k as u8] }
        };
        let pending = self.outside.iter().enumerate().map(entry).collect();
        let actors = usize::from(self.table.actors);
        let (states, no) = (vec![Some(0); actors], vec![false; actors]);
        Now { states, isolated: no.clone(), gone: no, pending, faults: 0, trace: Trace::default() }
    }

    /// All moments that can follow.
    fn next(&self, now: &Now) -> Vec<Now> {
        let mut all = Vec::new();
        for (at, entry) in now.pending.iter().enumerate() {
            let same = |e: &Entry| !e.timer && e.from != 0 && (e.from, e.to) == (entry.from, entry.to);
            let ordered = !entry.timer && entry.from != 0;
            let behind = ordered && now.pending[..at].iter().any(same);
            if now.states[usize::from(entry.to) - 1].is_none() || behind && self.rule == NetworkRule::Fifo {
                continue;
            }
            let mut after = now.clone();
            let mut place = 0;
            after.pending.retain(|e| {
                place += 1;
                let overtaken = ordered && self.rule == NetworkRule::FifoLoss && place <= at && same(e);
                place - 1 != at && !overtaken
            });
            self.take(&mut after, entry);
            all.push(after);
        }
        match self.faults.get(now.faults) {
            Some(Act::Crash(actor)) if now.states[actor.index() - 1].is_some() => {
                all.push(self.fault(now, *actor, None));
            }
            Some(Act::Restart(actor)) if now.states[actor.index() - 1].is_none() => {
                all.push(self.fault(now, *actor, Some(0)));
            }
            Some(fault @ (Act::Isolate(actor) | Act::Stop(actor))) => all.push(self.cut(now, fault, *actor)),
            _ => {}
        }
        all
    }

    fn fault(&self, now: &Now, actor: ActorId, state: Option<u8>) -> Now {
        let mut after = now.clone();
        after.states[actor.index() - 1] = state;
        after.pending.retain(|e| !e.timer || e.to != actor.0);
        let name = vec![255, now.faults as u8];
        // Of one who was cut off the failure matters to all who send: from then on they reach it again.
        let all = std::mem::take(&mut after.isolated[actor.index() - 1]);
        let whom = if all { 1..=self.table.actors } else { actor.0..=actor.0 };
        whom.for_each(|a| after.trace.0.entry(a).or_default().push(name.clone()));
        after.trace.1.push(name);
        after.faults += 1;
        after
    }

    /// An actor is cut off or ends for good: its order to everything matters, for what is sent from then on may be lost.
    fn cut(&self, now: &Now, fault: &Act, actor: ActorId) -> Now {
        let (mut after, at) = (now.clone(), actor.index() - 1);
        if matches!(fault, Act::Stop(_)) {
            (after.states[at], after.gone[at]) = (None, true);
            after.pending.retain(|e| e.to != actor.0);
        } else {
            after.isolated[at] = true;
        }
        let name = vec![255, now.faults as u8];
        (1..=self.table.actors).for_each(|a| after.trace.0.entry(a).or_default().push(name.clone()));
        after.trace.1.push(name);
        after.faults += 1;
        after
    }

    fn take(&self, now: &mut Now, entry: &Entry) {
        let to = entry.to;
        let state = now.states[usize::from(to) - 1].as_mut().unwrap();
        let rule = self.table.rule(to, *state, entry.msg.kind);
        now.trace.0.entry(to).or_default().push(entry.name.clone());
        if *state != rule.next && !self.table.blind {
            now.trace.1.push(entry.name.clone());
        }
        *state = rule.next;
        let Some(hops) = entry.msg.hops.checked_sub(1) else { return };
        let mut fresh = 0;
        let mut add = |now: &mut Now, to: u16, kind: u8, timer: bool| {
            let name = [&entry.name[..], &[fresh]].concat();
            fresh += 1;
            let cut = |actor: u16| now.isolated[usize::from(actor) - 1];
            if timer || !(cut(entry.to) || cut(to) || now.gone[usize::from(to) - 1]) {
                now.pending.push(Entry { from: entry.to, to, msg: Msg { kind, hops }, timer, name });
            }
        };
        rule.sends.iter().for_each(|&(to, kind)| add(now, to, kind, false));
        if let Some(timer) = rule.timer {
            now.pending.retain(|e| !e.timer || e.to != to);
            if let Some(kind) = timer {
                add(now, to, kind, true);
            }
        }
    }

    /// All orders that end, each once, and all pairs of states of the first two actors that are met on the way.
    /// Nothing where there are too many.
    fn all(&self) -> Option<(HashSet<Trace>, Pairs)> {
        let (mut ended, mut pairs, mut met) = (HashSet::new(), BTreeSet::new(), HashSet::new());
        let mut left = vec![self.first()];
        while let Some(now) = left.pop() {
            if !met.insert(now.trace.clone()) {
                continue;
            }
            if met.len() > MOST {
                return None;
            }
            pairs.insert((now.states[0], now.states[1]));
            let next = self.next(&now);
            if next.is_empty() {
                ended.insert(now.trace);
            } else {
                left.extend(next);
            }
        }
        Some((ended, pairs))
    }

    fn explore(&self, priority: Priority<Machine>, snapshots: usize, seen: &mut Seen) -> Explored {
        let mut sim = simulator(&self.table);
        let mut world = sim.empty_world();
        (1..=self.table.actors).for_each(|actor| sim.start(&mut world, ActorId(actor)));
        for &(to, kind) in &self.outside {
            let msg = sim.intern(Msg { kind, hops: HOPS });
            sim.inject(&mut world, ActorId(to), msg);
        }
        seen.look(&sim, &world);
        let ground = Ground { sim: &mut sim, rule: self.rule, faults: &self.faults, actions: &[] };
        let first = ground.begin(world);
        let limits = Limits { executions: 20_000, depth: 1000, snapshots };
        Explorer::new(ground, first, seen, priority, limits).explore()
    }
}

/// What an exploration shows.
#[derive(Default)]
struct Seen {
    /// For each place what happened there, and what an invariant could see.
    traces: Vec<Told>,
    pairs: Pairs,
    /// How many actors there are.
    actors: u16,
    /// Which of the possible steps to take: the first, the last, or something else.
    whim: usize,
}

impl Seen {
    fn look(&mut self, sim: &Simulator<Machine>, world: &World<Machine>) {
        let state = |actor| match world.status(ActorId(actor)) {
            Status::Running | Status::Isolated => sim.view(world).state(ActorId(actor)).copied(),
            _ => None,
        };
        self.pairs.insert((state(1), state(2)));
    }
}

impl Guide<Machine> for Seen {
    fn pick(
        &mut self,
        _: &Simulator<Machine>,
        _: &Tracked<Machine>,
        mark: &mut usize,
        awake: &[(Proc, Choice)],
    ) -> Option<usize> {
        *mark += self.whim;
        Some(*mark % awake.len())
    }

    fn found(&mut self, sim: &Simulator<Machine>, world: &World<Machine>) -> bool {
        self.look(sim, world);
        false
    }

    fn executed(&mut self, steps: &[Step]) -> bool {
        let mut trace = Told::default();
        for step in steps {
            match step.global {
                true => (1..=self.actors).for_each(|a| trace.0.entry(a).or_default().push(step.proc)),
                false => trace.0.entry(step.place).or_default().push(step.proc),
            }
            trace.1.extend(step.visible.then_some(step.proc));
        }
        self.traces.push(trace);
        true
    }
}

fn faults() -> impl Strategy<Value = Vec<Act>> {
    let actor = (1..=2u16).prop_map(ActorId);
    prop_oneof![
        3 => Just(Vec::new()),
        1 => actor.clone().prop_map(|a| vec![Act::Crash(a)]),
        1 => actor.clone().prop_map(|a| vec![Act::Crash(a), Act::Restart(a)]),
        1 => actor.clone().prop_map(|a| vec![Act::Isolate(a)]),
        1 => actor.clone().prop_map(|a| vec![Act::Isolate(a), Act::Crash(a)]),
        1 => actor.prop_map(|a| vec![Act::Stop(a)]),
    ]
}

#[test]
fn each_order_that_matters_is_executed_once() {
    #[derive(Default, Debug)]
    struct Count {
        systems: usize,
        orders: usize,
        most: usize,
        with_faults: usize,
        cut_off: usize,
    }
    let count = RefCell::new(Count::default());
    let config = ProptestConfig {
        cases: 300,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let input = (
        table(),
        prop::collection::vec((0..3u16, 0..KINDS), 1..4),
        faults(),
        prop::sample::select(RULES.to_vec()),
        any::<bool>(),
        0..3usize,
        prop::sample::select(vec![1, 7, 10_000]),
    );
    let test =
        |(mut table, outside, faults, rule, blind, whim, snapshots): (Table, Vec<_>, _, _, _, _, _)| {
            table.blind = blind;
            let outside = outside.into_iter().map(|(to, kind)| (1 + to % table.actors, kind)).collect();
            let system = System { table, outside, faults, rule };
            let Some((orders, pairs)) = system.all() else { return Err(TestCaseError::reject("too many")) };
            // Any number will do for a distance: it decides in which order branches are taken, not which.
            let far = Distance {
                sees: Box::new(|_: &Msg| true),
                lower_bound: Box::new(|_: &View<'_, u8>, waiting: &[Waiting<'_, Msg>]| {
                    waiting.iter().map(|w| usize::from(w.msg.kind)).sum::<usize>() % 5
                }),
                heuristic: None,
            };
            for priority in [Priority::Depth, Priority::Closeness, Priority::Distance(Arc::new(far))] {
                let first_depth = matches!(priority, Priority::Depth);
                let mut seen = Seen { whim, actors: system.table.actors, ..Seen::default() };
                let explored = system.explore(priority, snapshots, &mut seen);
                prop_assert!(explored.complete);
                prop_assert_eq!(explored.executions as usize, seen.traces.len());
                let different: HashSet<_> = seen.traces.iter().collect();
                prop_assert_eq!(different.len(), seen.traces.len(), "an order was executed twice");
                prop_assert_eq!(
                    seen.traces.len(),
                    orders.len(),
                    "not every order, depth first: {}, {} blocked",
                    first_depth,
                    explored.blocked
                );
                prop_assert_eq!(explored.blocked, 0);
                if !system.table.blind {
                    prop_assert_eq!(&seen.pairs, &pairs);
                }
            }
            let mut count = count.borrow_mut();
            count.systems += 1;
            count.orders += orders.len();
            count.most = count.most.max(orders.len());
            count.with_faults += usize::from(!system.faults.is_empty());
            let cut = |act: &Act| matches!(act, Act::Isolate(_) | Act::Stop(_));
            count.cut_off += usize::from(system.faults.iter().any(cut));
            Ok(())
        };
    TestRunner::new_with_rng(config, rng).run(&input, test).unwrap();
    let count = count.into_inner();
    assert!(
        count.most > 500
            && count.orders > 20 * count.systems
            && count.with_faults > 100
            && count.cut_off > 50,
        "{count:?}"
    );
}
