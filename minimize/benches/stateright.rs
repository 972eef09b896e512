//! The same model of akka-raft in Stateright's checker and in the search here: configurations a second, and the time
//! to the shortest counterexample.
//!
//! Both get the same handlers, the same invariant and the same network rule; an action is a delivery. Both begin some
//! deliveries before the violation, on the way of a shortest counterexample of raft-45, for without the model's bound
//! 22 deliveries are out of reach of either. Stateright's states hold what matters and no more: timers have no
//! generation.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, reason = "a benchmark")]

mod support;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use demi_akka_raft::{AkkaRaft, Member, Msg};
use demi_minimize::search::{Query, Root, prove};
use demi_replay::script::Act;
use demi_replay::{ActorId, Configuration, MsgId, Op, Pending, PendingKind, Simulator, Status, View, World};
use demi_schemas::NetworkRule;
use stateright::{Checker, HasDiscoveries, Model, Property};

use support::Case;

const SCENARIO: &str = include_str!("../../replay/scenarios/raft-45.toml");
/// How many deliveries before the violation the searches begin.
const LEFT: [usize; 2] = [6, 8];

thread_local! {
    /// Handlers run in a simulator, each thread has its own.
    static SIM: RefCell<Option<Simulator<AkkaRaft>>> = const { RefCell::new(None) };
}

/// A configuration as Stateright stores and hashes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    members: Vec<Option<Arc<Member>>>,
    channels: BTreeMap<(ActorId, ActorId), VecDeque<(ActorId, Msg)>>,
    timers: BTreeMap<(ActorId, u16), (Msg, bool)>,
    outside: Vec<(ActorId, Msg)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Channel((ActorId, ActorId)),
    Timer((ActorId, u16)),
    Outside(usize),
}

#[derive(Clone)]
struct Raft {
    sim: Simulator<AkkaRaft>,
    first: State,
    target: Vec<String>,
}

impl Configuration<Member> for State {
    fn status(&self, actor: ActorId) -> Status {
        match self.members.get(actor.index()) {
            Some(Some(_)) => Status::Running,
            _ => Status::Absent,
        }
    }

    fn cell(&self, cell: ActorId) -> Option<&Member> {
        self.members.get(cell.index()).and_then(Option::as_deref)
    }

    fn actors(&self) -> usize {
        self.members.len()
    }
}

/// Timers without their numbers.
fn plain(msg: &Msg) -> Msg {
    match msg {
        Msg::ElectionTimer { .. } => Msg::ElectionTimer { generation: 0 },
        Msg::HeartbeatTimer { .. } => Msg::HeartbeatTimer { generation: 0 },
        Msg::StateTimeout { .. } => Msg::StateTimeout { generation: 0 },
        other => other.clone(),
    }
}

impl State {
    fn of(sim: &Simulator<AkkaRaft>, world: &World<AkkaRaft>) -> State {
        let mut state = State {
            members: world.cells().to_vec(),
            channels: BTreeMap::new(),
            timers: BTreeMap::new(),
            outside: Vec::new(),
        };
        world.pending().iter().for_each(|p| state.add(p, &sim.info(p.msg).msg));
        state
    }

    fn add(&mut self, pending: &Pending, msg: &Msg) {
        let msg = plain(msg);
        match pending.kind {
            PendingKind::Message => {
                let channel = (pending.channel, pending.to);
                self.channels.entry(channel).or_default().push_back((pending.from, msg));
            }
            PendingKind::External => self.outside.push((pending.to, msg)),
            kind => {
                let repeats = kind == PendingKind::Repeating;
                self.timers.insert((pending.to, pending.timer), (msg, repeats));
            }
        }
    }
}

impl Model for Raft {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.first.clone()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.channels.keys().copied().map(Action::Channel));
        actions.extend(state.timers.keys().copied().map(Action::Timer));
        actions.extend((0..state.outside.len()).map(Action::Outside));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        let (from, to, channel, kind, msg) = match action {
            Action::Channel(channel) => {
                let queue = next.channels.get_mut(&channel)?;
                let (from, msg) = queue.pop_front()?;
                if queue.is_empty() {
                    next.channels.remove(&channel);
                }
                (from, channel.1, channel.0, PendingKind::Message, msg)
            }
            Action::Timer(timer) => {
                let (msg, repeats) = next.timers.get(&timer)?.clone();
                if !repeats {
                    next.timers.remove(&timer);
                }
                (timer.0, timer.0, timer.0, PendingKind::Timer, msg)
            }
            Action::Outside(at) => {
                let (to, msg) = next.outside.remove(at);
                (demi_replay::OUTSIDE, to, demi_replay::OUTSIDE, PendingKind::External, msg)
            }
        };
        SIM.with_borrow_mut(|sim| {
            let sim = sim.get_or_insert_with(|| self.sim.clone());
            let msg: MsgId = sim.intern(msg);
            let entry = Pending { from, to, channel, msg, kind, timer: 0, survives: false, via: None };
            let member = next.members[to.index()].as_mut()?;
            let ops = sim.react(Arc::make_mut(member), &entry).ok()??;
            for op in ops {
                match op {
                    Op::Send(entry) => next.add(&entry, &sim.info(entry.msg).msg),
                    Op::SetTimer(entry) => next.add(&entry, &sim.info(entry.msg).msg),
                    Op::CancelTimer(actor, timer) => {
                        next.timers.remove(&(actor, timer));
                    }
                }
            }
            Some(next)
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("one leader in a term", |raft: &Raft, state: &State| {
            let mut found = Vec::new();
            let model = raft.sim.model();
            let view = View::new(state, model, raft.sim.names());
            demi_replay::Model::check(model, &view, &mut Default::default(), &mut found);
            found.iter().all(|v| !raft.target.contains(&v.fingerprint))
        })]
    }
}

fn compare(c: &mut Criterion) {
    let mut case = Case::new(SCENARIO, NetworkRule::Fifo);
    let proven = prove(&mut case.engine, &case.witness, case.bound.as_ref(), (0, u64::MAX), 2).unwrap();
    let optimum = proven.found.unwrap();
    assert_eq!(optimum.size.deliveries, 22);
    let mut group = c.benchmark_group("raft-45, to the shortest counterexample");
    group.sample_size(10);
    for left in LEFT {
        let acts = &optimum.acts[..optimum.acts.len() - left];
        let mut world = case.engine.sim.empty_world();
        for act in acts {
            assert!(case.engine.follow(&mut world, act));
        }
        for act in &optimum.acts[acts.len()..] {
            if let Act::Deliver(want) = act
                && let Some(msg) = want.external
            {
                case.engine.sim.inject(&mut world, want.to, msg);
            }
        }
        let raft = Raft {
            sim: case.engine.sim.clone(),
            first: State::of(&case.engine.sim, &world),
            target: case.engine.problem.target.clone(),
        };
        for jobs in [1, 2] {
            let theirs = || {
                let checker = raft
                    .clone()
                    .checker()
                    .threads(jobs)
                    .finish_when(HasDiscoveries::AnyFailures)
                    .timeout(Duration::from_secs(300))
                    .spawn_bfs()
                    .join();
                let path = checker.discovery("one leader in a term").unwrap();
                (checker.state_count() as u64, path.into_actions().len())
            };
            let (states, length) = theirs();
            eprintln!("stateright, {left} left, {jobs} threads: {states} states, {length} deliveries");
            if jobs == 1 {
                assert_eq!(length, left);
            }
            group.throughput(Throughput::Elements(states));
            let id = BenchmarkId::new(format!("stateright, {left} left"), jobs);
            group.bench_function(id, |b| b.iter(theirs));
            for bound in [None, case.bound.clone()] {
                let mut ours = || {
                    let query = Query::from(Root::World(&world)).deliveries(left).bound(bound.as_ref());
                    query.threads(jobs).run(&mut case.engine).unwrap()
                };
                let (length, states) = {
                    let searched = ours();
                    (searched.length, searched.states)
                };
                assert_eq!(length, Some(left));
                let with = if bound.is_some() { "with the bound" } else { "without a bound" };
                eprintln!("demi-lineage {with}, {left} left, {jobs} threads: {states} states");
                group.throughput(Throughput::Elements(states));
                let id = BenchmarkId::new(format!("demi-lineage {with}, {left} left"), jobs);
                group.bench_function(id, |b| b.iter(&mut ours));
            }
        }
    }
    group.finish();
}

criterion_group!(benches, compare);
criterion_main!(benches);
