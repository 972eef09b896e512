//! Random programs, against an enumeration of all their interleavings that shares nothing with the engine: it interprets the programs itself.

use std::collections::{BTreeMap, BTreeSet};

use demi_threads::sync::atomic::{AtomicU32, Ordering};
use demi_threads::sync::{Arc, Condvar, Mutex, RwLock};
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
    /// Reads with a lock for readers and writers, perhaps for a second time.
    Read(usize),
    Unread(usize),
    /// Reads if nobody is in the way; the register says whether.
    TryRead(usize),
    Write(usize),
    Unwrite(usize),
    /// Writes if nobody is in the way, and gives it back; the register says whether.
    TryWrite(usize),
    Yield,
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

/// Programs with locks for readers and writers, and with yields.
fn random_readers(seed: u64) -> Program {
    let mut chance = Chance(seed.wrapping_mul(1_013) + 5);
    for _ in 0..5 {
        chance.below(2);
    }
    let count = 2 + chance.below(2);
    let mut tasks = vec![Vec::new()];
    for _ in 0..count {
        let mut ops = Vec::new();
        let mut held: Vec<Op> = Vec::new();
        for _ in 0..1 + chance.below(if count == 2 { 5 } else { 3 }) {
            let lock = chance.below(OF_EACH);
            let writes = held.contains(&Op::Unwrite(lock));
            match chance.below(10) {
                0..=2 if !writes && held.len() < 3 => {
                    ops.push(Op::Read(lock));
                    held.push(Op::Unread(lock));
                }
                3..=4 if !writes && !held.contains(&Op::Unread(lock)) => {
                    ops.push(Op::Write(lock));
                    held.push(Op::Unwrite(lock));
                }
                5 => ops.extend(held.pop()),
                6 => ops.push(if chance.below(2) == 0 { Op::TryRead(lock) } else { Op::TryWrite(lock) }),
                7 => ops.push(Op::Add(chance.below(OF_EACH))),
                8 => ops.push(Op::Load(chance.below(OF_EACH))),
                _ => ops.extend(std::iter::repeat_n(Op::Yield, 1 + chance.below(3))),
            }
        }
        while let Some(unlock) = held.pop() {
            ops.push(unlock);
        }
        tasks.push(ops);
    }
    for task in 1..=count {
        tasks[0].push(Op::Join(task));
    }
    Program { tasks }
}

/// Who has to let whom go first: the relations of "Fair stateless model checking", written down once more. A task has none before it yields.
#[derive(Clone, Default)]
struct Turns {
    /// Of each task that yielded: those before it, and those enabled ever since, disabled by it, and scheduled.
    of: BTreeMap<usize, [BTreeSet<usize>; 4]>,
    enabled: BTreeSet<usize>,
    any: bool,
}

impl Turns {
    fn stepped(&mut self, task: usize, enabled: &BTreeSet<usize>, yields: bool) {
        if !self.any && !yields {
            return;
        }
        // Before the first yield nothing is known of who was enabled.
        let disabled: BTreeSet<usize> =
            if self.any { self.enabled.difference(enabled).copied().collect() } else { BTreeSet::new() };
        (self.any, self.enabled) = (true, enabled.clone());
        for (other, [before, ever, off, ran]) in &mut self.of {
            before.remove(&task);
            ever.retain(|task| enabled.contains(task));
            if *other == task {
                off.extend(&disabled);
            }
            ran.insert(task);
        }
        if yields {
            let first = self.of.get(&task).map_or_else(BTreeSet::new, |[before, ever, off, ran]| {
                let waited = ever.union(off).filter(|task| !ran.contains(task));
                before.iter().chain(waited).copied().collect()
            });
            self.of.insert(task, [first, enabled.clone(), BTreeSet::new(), BTreeSet::new()]);
        }
    }

    fn holds_back(&self, task: usize, enabled: &BTreeSet<usize>) -> bool {
        self.of.get(&task).is_some_and(|[before, ..]| !before.is_disjoint(enabled))
    }

    fn forgives(&mut self, task: usize) {
        if let Some([before, ..]) = self.of.get_mut(&task) {
            before.clear();
        }
    }
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
    /// The tasks that began; the first has.
    began: BTreeSet<usize>,
    /// Of each lock for readers and writers: who reads, who writes, and which writers wait for those that read.
    readers: [Vec<usize>; OF_EACH],
    writer: [Option<usize>; OF_EACH],
    waits_to_write: [BTreeSet<usize>; OF_EACH],
    turns: Turns,
    /// Operations of each task.
    done: Vec<u32>,
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
            began: BTreeSet::from([0]),
            readers: Default::default(),
            writer: [None; OF_EACH],
            waits_to_write: Default::default(),
            turns: Turns::default(),
            done: vec![0; tasks],
        }
    }

    fn yields(&self, program: &Program, task: usize) -> bool {
        let at_spawns = task == 0 && self.spawned + 1 < program.tasks.len();
        !at_spawns && program.tasks[task].get(self.at[task]) == Some(&Op::Yield)
    }

    fn may_read(&self, lock: usize) -> bool {
        self.writer[lock].is_none() && (self.readers[lock].is_empty() || self.waits_to_write[lock].is_empty())
    }

    fn reads(&mut self, lock: usize, task: usize) {
        if self.readers[lock].is_empty() {
            self.waits_to_write[lock].clear();
        }
        self.readers[lock].push(task);
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
        if task == 0 && self.spawned + 1 < program.tasks.len() || !self.began.contains(&task) {
            return true;
        }
        match (program.tasks[task][self.at[task]], self.phase[task]) {
            (Op::Lock(lock), _) | (Op::Wait(_, lock), Phase::Relock) => self.holder[lock].is_none(),
            (Op::Wait(condvar, _), Phase::Asleep) => {
                self.signals[condvar].iter().any(|signal| signal.contains(&task))
            }
            (Op::Join(other), _) => self.over(program, other),
            (Op::Read(lock), _) => self.may_read(lock),
            (Op::Write(lock), _) => {
                let waits = !self.readers[lock].is_empty() && self.waits_to_write[lock].contains(&task);
                self.writer[lock].is_none() && !waits
            }
            _ => true,
        }
    }

    fn step(&mut self, program: &Program, task: usize) {
        if self.began.insert(task) {
            return;
        }
        self.done[task] += 1;
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
            Op::Join(_) | Op::Yield => {}
            Op::Read(lock) => self.reads(lock, task),
            Op::Unread(lock) => {
                let at = self.readers[lock].iter().position(|reader| *reader == task).unwrap();
                self.readers[lock].remove(at);
            }
            // A look that finds it free takes it and gives it back at once: the next operation is what gives it back.
            Op::TryRead(lock) => {
                let free = self.phase[task] == Phase::Relock || self.may_read(lock);
                match self.phase[task] {
                    Phase::Ready if free => {
                        self.reads(lock, task);
                        self.phase[task] = Phase::Relock;
                        return;
                    }
                    Phase::Ready => self.register[task] = 0,
                    _ => {
                        let at = self.readers[lock].iter().position(|reader| *reader == task).unwrap();
                        self.readers[lock].remove(at);
                        (self.phase[task], self.register[task]) = (Phase::Ready, 1);
                    }
                }
            }
            Op::Write(lock) if self.readers[lock].is_empty() => {
                self.waits_to_write[lock].remove(&task);
                self.writer[lock] = Some(task);
            }
            Op::Write(lock) => {
                self.waits_to_write[lock].insert(task);
                return;
            }
            Op::Unwrite(lock) => self.writer[lock] = None,
            Op::TryWrite(lock) => match self.phase[task] {
                Phase::Ready if self.writer[lock].is_none() && self.readers[lock].is_empty() => {
                    self.writer[lock] = Some(task);
                    self.phase[task] = Phase::Relock;
                    return;
                }
                Phase::Ready => self.register[task] = 0,
                _ => {
                    self.writer[lock] = None;
                    (self.phase[task], self.register[task]) = (Phase::Ready, 1);
                }
            },
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
    let mut state = state.clone();
    let could: BTreeSet<usize> = enabled.iter().copied().collect();
    let yields = state.yields(program, current) && !state.over(program, current);
    if state.done[current] > 0 || yields {
        state.turns.stepped(current, &could, yields);
    }
    let held: BTreeSet<usize> =
        enabled.iter().copied().filter(|task| state.turns.holds_back(*task, &could)).collect();
    let stays = could.contains(&current) && !held.contains(&current) && !yields;
    let from = if stays { current } else { current + 1 };
    let mut order: Vec<usize> = enabled.iter().copied().filter(|task| *task >= from).collect();
    order.extend(enabled.iter().copied().filter(|task| *task < from));
    order.sort_by_key(|task| held.contains(task));
    for (delays, task) in order.into_iter().enumerate() {
        let more = match cost {
            Cost::Preemptions => u32::from((stays && task != current) || held.contains(&task)),
            Cost::Delays => delays as u32,
        };
        if spent + more > bound {
            continue;
        }
        let mut next = state.clone();
        if held.contains(&task) {
            next.turns.forgives(task);
        }
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
        shared: Vec<RwLock<()>>,
    }
    fn run(ops: &[Op], shared: &Shared, mut join: impl FnMut(usize)) -> u32 {
        let mut register = 0;
        let mut held = BTreeMap::new();
        let mut reading: Vec<(usize, _)> = Vec::new();
        let mut writing = BTreeMap::new();
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
                Op::Yield => thread::yield_now(),
                Op::Read(lock) => reading.push((lock, shared.shared[lock].read().unwrap())),
                Op::Unread(lock) => {
                    let at = reading.iter().rposition(|(of, _)| *of == lock).unwrap();
                    drop(reading.remove(at));
                }
                Op::TryRead(lock) => register = u32::from(shared.shared[lock].try_read().is_ok()),
                Op::Write(lock) => drop(writing.insert(lock, shared.shared[lock].write().unwrap())),
                Op::Unwrite(lock) => drop(writing.remove(&lock)),
                Op::TryWrite(lock) => register = u32::from(shared.shared[lock].try_write().is_ok()),
            }
        }
        register
    }
    let shared = Arc::new(Shared {
        locks: (0..OF_EACH).map(|_| Mutex::new(())).collect(),
        condvars: (0..OF_EACH).map(|_| Condvar::new()).collect(),
        values: (0..OF_EACH).map(|_| AtomicU32::new(0)).collect(),
        shared: (0..OF_EACH).map(|_| RwLock::new(())).collect(),
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

/// Compares so many programs, and says how many endings they have and how often one is a deadlock.
fn compare(cases: u64, program_of: impl Fn(u64) -> Program) -> (usize, usize) {
    let (mut endings, mut deadlocks) = (0, 0);
    for seed in 0..cases {
        let program = program_of(seed);
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
    (endings, deadlocks)
}

#[test]
fn random_programs_end_as_an_enumeration_of_all_interleavings_says() {
    let (endings, deadlocks) = compare(cases(), random_program);
    assert!(endings > 2 * deadlocks && deadlocks > 100, "{endings} endings, {deadlocks} of them deadlocks");
}

#[test]
fn so_do_programs_with_readers_writers_and_yields() {
    let (endings, deadlocks) = compare(cases() * 2 / 5, random_readers);
    assert!(endings > 2 * deadlocks && deadlocks > 10, "{endings} endings, {deadlocks} of them deadlocks");
}
