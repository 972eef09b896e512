//! Random programs, against an enumeration of all their interleavings that shares nothing with the engine: it interprets the programs itself.

use std::collections::{BTreeMap, BTreeSet};

use demi_threads::sync::atomic::{AtomicU32, Ordering};
use demi_threads::sync::{Arc, Condvar, Mutex};
use demi_threads::{Check, Cost, thread};

/// Locks, condition variables and atomics of a program.
const OF_EACH: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Lock(usize),
    Unlock(usize),
    /// Waits at a condition variable with a lock, which it holds.
    Wait(usize, usize),
    NotifyOne(usize),
    NotifyAll(usize),
    Add(usize),
    /// Reads into the register.
    Load(usize),
    /// Writes the register plus one.
    Store(usize),
    Join(usize),
}

/// The first task spawns the others in the beginning.
#[derive(Clone, Debug)]
struct Program {
    tasks: Vec<Vec<Op>>,
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

fn random_program(seed: u64) -> Program {
    let mut chance = Chance(seed.wrapping_mul(977) + 13);
    for _ in 0..5 {
        chance.below(2);
    }
    let count = 2 + chance.below(2);
    let mut tasks = vec![Vec::new()];
    for _ in 0..count {
        let mut ops = Vec::new();
        let mut held: Vec<usize> = Vec::new();
        for _ in 0..1 + chance.below(if count == 2 { 5 } else { 3 }) {
            match chance.below(10) {
                0..=2 if held.len() < OF_EACH => {
                    let lock = chance.below(OF_EACH);
                    if !held.contains(&lock) {
                        ops.push(Op::Lock(lock));
                        held.push(lock);
                    }
                }
                3 => {
                    if let Some(lock) = held.pop() {
                        ops.push(Op::Unlock(lock));
                    }
                }
                4 => {
                    if let Some(lock) = held.last() {
                        ops.push(Op::Wait(chance.below(OF_EACH), *lock));
                    }
                }
                5 => ops.push(Op::NotifyOne(chance.below(OF_EACH))),
                6 => ops.push(Op::NotifyAll(chance.below(OF_EACH))),
                7 => ops.push(Op::Add(chance.below(OF_EACH))),
                8 => ops.push(Op::Load(chance.below(OF_EACH))),
                _ => ops.push(Op::Store(chance.below(OF_EACH))),
            }
        }
        while let Some(lock) = held.pop() {
            ops.push(Op::Unlock(lock));
        }
        tasks.push(ops);
    }
    if chance.below(2) == 0 {
        tasks[0].push(Op::Load(0));
        tasks[0].push(Op::Store(1));
    }
    for task in 1..=count {
        tasks[0].push(Op::Join(task));
    }
    Program { tasks }
}

/// Where a task is, in the interpreter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ready,
    Asleep,
    Relock,
}

#[derive(Clone)]
struct State {
    spawned: usize,
    at: Vec<usize>,
    phase: Vec<Phase>,
    register: Vec<u32>,
    holder: [Option<usize>; OF_EACH],
    values: [u32; OF_EACH],
    asleep: [BTreeSet<usize>; OF_EACH],
    /// Signals nobody took, each with those that may take it.
    signals: [Vec<BTreeSet<usize>>; OF_EACH],
}

impl State {
    fn new(program: &Program) -> Self {
        let tasks = program.tasks.len();
        Self {
            spawned: 0,
            at: vec![0; tasks],
            phase: vec![Phase::Ready; tasks],
            register: vec![0; tasks],
            holder: [None; OF_EACH],
            values: [0; OF_EACH],
            asleep: Default::default(),
            signals: Default::default(),
        }
    }

    fn over(&self, program: &Program, task: usize) -> bool {
        if task == 0 && self.spawned + 1 < program.tasks.len() {
            return false;
        }
        self.at[task] >= program.tasks[task].len()
    }

    fn enabled(&self, program: &Program, task: usize) -> bool {
        if task > self.spawned || self.over(program, task) {
            return false;
        }
        if task == 0 && self.spawned + 1 < program.tasks.len() {
            return true;
        }
        match (program.tasks[task][self.at[task]], self.phase[task]) {
            (Op::Lock(lock), _) | (Op::Wait(_, lock), Phase::Relock) => self.holder[lock].is_none(),
            (Op::Wait(condvar, _), Phase::Asleep) => {
                self.signals[condvar].iter().any(|signal| signal.contains(&task))
            }
            (Op::Join(other), _) => self.over(program, other),
            _ => true,
        }
    }

    fn step(&mut self, program: &Program, task: usize) {
        if task == 0 && self.spawned + 1 < program.tasks.len() {
            self.spawned += 1;
            return;
        }
        match program.tasks[task][self.at[task]] {
            Op::Lock(lock) => self.holder[lock] = Some(task),
            Op::Unlock(lock) => self.holder[lock] = None,
            Op::Wait(condvar, lock) => match self.phase[task] {
                Phase::Ready => {
                    self.holder[lock] = None;
                    self.asleep[condvar].insert(task);
                    self.phase[task] = Phase::Asleep;
                    return;
                }
                Phase::Asleep => {
                    let at = self.signals[condvar].iter().position(|signal| signal.contains(&task)).unwrap();
                    self.signals[condvar].remove(at);
                    self.asleep[condvar].remove(&task);
                    for signal in &mut self.signals[condvar] {
                        signal.remove(&task);
                    }
                    self.signals[condvar].retain(|signal| !signal.is_empty());
                    self.phase[task] = Phase::Relock;
                    return;
                }
                Phase::Relock => {
                    self.holder[lock] = Some(task);
                    self.phase[task] = Phase::Ready;
                }
            },
            Op::NotifyOne(condvar) => {
                if !self.asleep[condvar].is_empty() {
                    let may = self.asleep[condvar].clone();
                    self.signals[condvar].push(may);
                }
            }
            Op::NotifyAll(condvar) => {
                for task in std::mem::take(&mut self.asleep[condvar]) {
                    self.signals[condvar].push(BTreeSet::from([task]));
                }
            }
            Op::Add(at) => self.values[at] += 1,
            Op::Load(at) => self.register[task] = self.values[at],
            Op::Store(at) => self.values[at] = self.register[task] + 1,
            Op::Join(_) => {}
        }
        self.at[task] += 1;
    }
}

/// How an execution ends: values and registers, or a deadlock.
type Ending = Option<(Vec<u32>, Vec<u32>)>;

/// The least cost of each ending.
fn enumerate(
    program: &Program,
    state: &State,
    current: usize,
    cost: Cost,
    spent: u32,
    bound: u32,
    found: &mut BTreeMap<Ending, u32>,
) {
    let tasks = program.tasks.len();
    let enabled: Vec<usize> = (0..tasks).filter(|task| state.enabled(program, *task)).collect();
    if enabled.is_empty() {
        let over = (0..tasks).all(|task| state.over(program, task));
        let ending = over.then(|| (state.values.to_vec(), state.register.clone()));
        let least = found.entry(ending).or_insert(spent);
        *least = (*least).min(spent);
        return;
    }
    let stays = enabled.contains(&current);
    let from = if stays { current } else { current + 1 };
    let mut order: Vec<usize> = enabled.iter().copied().filter(|task| *task >= from).collect();
    order.extend(enabled.iter().copied().filter(|task| *task < from));
    for (delays, task) in order.into_iter().enumerate() {
        let more = match cost {
            Cost::Preemptions => u32::from(stays && task != current),
            Cost::Delays => delays as u32,
        };
        if spent + more > bound {
            continue;
        }
        let mut next = state.clone();
        next.step(program, task);
        enumerate(program, &next, task, cost, spent + more, bound, found);
    }
}

/// The same program on real objects.
fn perform(program: &Program, note: &std::sync::Mutex<BTreeSet<Ending>>) {
    struct Shared {
        locks: Vec<Mutex<()>>,
        condvars: Vec<Condvar>,
        values: Vec<AtomicU32>,
    }
    fn run(ops: &[Op], shared: &Shared, mut join: impl FnMut(usize)) -> u32 {
        let mut register = 0;
        let mut held = BTreeMap::new();
        for op in ops {
            match *op {
                Op::Lock(lock) => drop(held.insert(lock, shared.locks[lock].lock().unwrap())),
                Op::Unlock(lock) => drop(held.remove(&lock)),
                Op::Wait(condvar, lock) => {
                    let guard = held.remove(&lock).unwrap();
                    held.insert(lock, shared.condvars[condvar].wait(guard).unwrap());
                }
                Op::NotifyOne(condvar) => shared.condvars[condvar].notify_one(),
                Op::NotifyAll(condvar) => shared.condvars[condvar].notify_all(),
                Op::Add(at) => {
                    shared.values[at].fetch_add(1, Ordering::SeqCst);
                }
                Op::Load(at) => register = shared.values[at].load(Ordering::SeqCst),
                Op::Store(at) => shared.values[at].store(register + 1, Ordering::SeqCst),
                Op::Join(task) => join(task),
            }
        }
        register
    }
    let shared = Arc::new(Shared {
        locks: (0..OF_EACH).map(|_| Mutex::new(())).collect(),
        condvars: (0..OF_EACH).map(|_| Condvar::new()).collect(),
        values: (0..OF_EACH).map(|_| AtomicU32::new(0)).collect(),
    });
    let mut handles: Vec<_> = (1..program.tasks.len())
        .map(|task| {
            let (shared, ops) = (Arc::clone(&shared), program.tasks[task].clone());
            Some(thread::spawn(move || run(&ops, &shared, |_| ())))
        })
        .collect();
    let mut registers = vec![0; program.tasks.len()];
    let mut results = vec![0; program.tasks.len()];
    registers[0] = run(&program.tasks[0], &shared, |task| {
        results[task] = handles[task - 1].take().unwrap().join().unwrap();
    });
    registers[1..].copy_from_slice(&results[1..]);
    let shared = Arc::try_unwrap(shared).ok().unwrap();
    let values = shared.values.into_iter().map(AtomicU32::into_inner).collect();
    note.lock().unwrap().insert(Some((values, registers)));
}

/// How many programs are tried.
fn cases() -> u64 {
    std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(250)
}

#[test]
fn random_programs_end_as_an_enumeration_of_all_interleavings_says() {
    let (mut endings, mut deadlocks) = (0, 0);
    for seed in 0..cases() {
        let program = random_program(seed);
        for cost in [Cost::Preemptions, Cost::Delays] {
            let mut all = BTreeMap::new();
            enumerate(&program, &State::new(&program), 0, cost, 0, 2, &mut all);
            for bound in 0..=2 {
                let expected: BTreeSet<Ending> = all
                    .iter()
                    .filter(|(_, least)| **least <= bound)
                    .map(|(ending, _)| ending.clone())
                    .collect();
                let mut graphs = Vec::new();
                for cached in [false, true] {
                    let note = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
                    let check = Check::named("random program").cache(cached).budget(u64::MAX).exhaustive();
                    let check = match cost {
                        Cost::Preemptions => check.bound(bound),
                        Cost::Delays => check.delays(bound),
                    };
                    let (inside, of_test) = (Arc::clone(&note), program.clone());
                    let outcome = check.explore(move || perform(&of_test, &inside));
                    assert_eq!(outcome.complete(), Some(bound), "{:?}", outcome.finding());
                    let mut found: BTreeSet<Ending> = note.lock().unwrap().clone();
                    if outcome.classes().contains_key("deadlock") {
                        found.insert(None);
                    }
                    let which = format!("seed {seed}, {cost:?} {bound}, cache {cached}: {program:?}");
                    assert!(
                        outcome.classes().keys().all(|class| class == "deadlock"),
                        "{which}: {:?}",
                        outcome.classes()
                    );
                    assert_eq!(found, expected, "{which}");
                    graphs.push(outcome.terminal_graphs().clone());
                }
                assert_eq!(
                    graphs[0], graphs[1],
                    "seed {seed}, {cost:?} {bound}: graphs without and with the cache; {program:?}"
                );
                endings += expected.len();
                deadlocks += usize::from(expected.contains(&None));
            }
        }
    }
    assert!(endings > 2 * deadlocks && deadlocks > 100, "{endings} endings, {deadlocks} of them deadlocks");
}
