//! Executions on shuttle's runtime: its stacks, our schedule.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId as Place};

use crate::failure::{Failure, FailureKind, Spot};
use crate::op::TaskId;
use crate::world::{Ended, Guide, Heart, Limits, Plan, Strategy, WORLD, World};

/// A test.
pub(crate) type Body = Arc<dyn Fn() + Send + Sync>;

/// How executions run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub(crate) limits: Limits,
    /// The stack of a task, in bytes.
    pub(crate) stack: usize,
    /// After so long without a step, a task blocks for real.
    pub(crate) patience: Duration,
}

struct Shared<S> {
    strategy: Option<S>,
    plan: Option<Plan>,
}

/// What a worker says at its end.
enum Word {
    /// The strategy has no more.
    Done,
    /// The thread of the operating system is stuck in a task, and another one has to go on.
    Abandoned,
}

/// Panics of an execution that are remembered.
const MOST_PANICS: usize = 64;

type OnEnd = Box<dyn FnMut(&mut World)>;

thread_local! {
    /// Tells the strategy of an execution that ends on this thread, and its driver that the thread goes no further.
    static ON_ABANDON: RefCell<Option<(OnEnd, Sender<Word>)>> = const { RefCell::new(None) };
}

fn locked<T: ?Sized>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The scheduler that shuttle asks.
struct Ours<S> {
    shared: Arc<Mutex<Shared<S>>>,
    limits: Limits,
    began: bool,
}

impl<S: Strategy> Ours<S> {
    fn end(&mut self, world: &mut World) {
        if std::mem::take(&mut self.began) {
            let ended = world.end();
            if let Some(strategy) = &mut locked(&self.shared).strategy {
                strategy.done(world, ended);
            }
        }
    }
}

impl<S: Strategy> Scheduler for Ours<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        // What is left of the last one may be anything when it is dropped.
        drop(WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            self.end(world);
            std::mem::take(&mut world.orphans)
        }));
        WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            let mut shared = locked(&self.shared);
            let plan = shared.strategy.as_mut()?.next()?;
            shared.plan = Some(plan.clone());
            self.began = true;
            world.begin(plan, self.limits);
            Some(Schedule::new(0))
        })
    }

    fn next_task(&mut self, can: &[&Task], current: Option<Place>, _: bool) -> Option<Place> {
        WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            // A point of shuttle's own leaves the turn where it is.
            if world.chosen.is_none()
                && !world.stopped
                && let Some(current) = current
            {
                if can.binary_search_by_key(&current, |task| task.id()).is_ok() {
                    if world.tells_turns() {
                        world.turns.push(usize::from(current) as TaskId);
                    }
                    return Some(current);
                }
                world.decide();
            }
            if world.stopped {
                return None;
            }
            let next = world.chosen.take().unwrap_or(world.current);
            if world.tells_turns() {
                world.turns.push(next);
            }
            Some(Place::from(usize::from(next)))
        })
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}

/// Runs the closure of a task to its end, and takes note of a panic.
pub(crate) fn body<T>(f: impl FnOnce() -> T) -> Option<T> {
    WORLD.with(|world| world.borrow_mut().begins());
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            if is_hosted() {
                ends_on_shuttle();
                resume_unwind(payload);
            }
            panicked(&*payload);
            // What was thrown may itself fail when it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(move || drop(payload)));
            None
        }
    }
}

fn panicked(payload: &(dyn Any + Send)) {
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        let message = message(payload);
        world.panicked = None;
        // What was caught and is passed on is not seen a second time.
        let first = world.panics.iter().rev().find(|(text, _)| *text == message);
        let at = first.map_or_else(String::new, |(_, at)| at.clone());
        let task = world.name(world.current);
        world.fail(FailureKind::Panic { task, message, at: Spot(at) });
    });
}

/// The task that runs has come to its end.
pub(crate) fn finish() {
    if let Err(payload) = catch_unwind(crate::local::ends) {
        if is_hosted() {
            ends_on_shuttle();
            resume_unwind(payload);
        }
        panicked(&*payload);
        let _ = catch_unwind(AssertUnwindSafe(move || drop(payload)));
    }
    let hosted = WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        world.finish();
        if world.active && world.is_guest() {
            world.looks_for_an_end();
        }
        world.is_guest()
    });
    if hosted {
        fails_on_shuttle();
        if WORLD.with(|world| world.borrow().is_over()) {
            ends_on_shuttle();
        }
    }
}

fn is_hosted() -> bool {
    WORLD.with(|world| {
        let world = world.borrow();
        world.active && world.is_guest()
    })
}

/// From now on objects do what those of the standard library would do.
fn ends_on_shuttle() {
    WORLD.with(|world| drop(world.borrow_mut().end()));
}

/// The number of the task that runs.
pub(crate) fn me() -> TaskId {
    WORLD.with(|world| world.borrow().current)
}

/// The task with this number runs, where shuttle decides: at each of its points another may have run.
pub(crate) fn enters(task: TaskId) {
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        if world.is_guest() {
            world.current = task;
        }
    });
}

/// Fails as a test on shuttle does, where the execution cannot go on.
#[allow(clippy::panic, reason = "this is how a test fails")]
pub(crate) fn fails_on_shuttle() {
    let failure = WORLD.with(|world| world.borrow().ended.failure.clone());
    if let Some(failure) = failure {
        ends_on_shuttle();
        panic!("{failure}");
    }
}

/// Runs a test under a scheduler of shuttle's own, and no other: `shuttle::replay(|| on_shuttle(test), schedule)` replays a failure that this
/// library found, with the schedule that `demi-lineage threads export` prints.
pub fn on_shuttle(test: impl Fn()) {
    let plan = Plan::by(Guide::Guest);
    WORLD.with(|world| world.borrow_mut().begin(plan, Limits { steps: 20_000, idle: 1_000 }));
    body(test);
    finish();
}

/// An operation that cannot happen is asked for where no other task may run: in a destructor while a panic is on its way up, or after the end.
/// This thread of the operating system goes no further; another one goes on with the search.
pub(crate) fn abandon() -> ! {
    let word = ON_ABANDON.with(|slot| slot.borrow_mut().take());
    if let Some((mut on_end, sender)) = word {
        WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            world.panicked = None;
            if std::thread::panicking() {
                let (message, at) = world.panics.last().cloned().unwrap_or_default();
                let task = world.name(world.current);
                // No other task may run while it is on its way up, so that nobody can end the wait.
                let message = format!(
                    "{message} (a destructor waits while this panic is on its way up, whoever may catch it)"
                );
                world.fail(FailureKind::Panic { task, message, at: Spot(at) });
            } else if world.ended.failure.is_none() {
                // It is not known how this one would have gone on: nothing is promised.
                world.ended.diverged = true;
            }
            on_end(world);
        });
        let _ = sender.send(Word::Abandoned);
    }
    loop {
        std::thread::park();
    }
}

/// Takes note of panics in tasks instead of printing each; all others are treated as before.
fn hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        // Shuttle sets a hook of its own in its first execution, which prints its schedule at every panic of the process. Ours is set after it.
        let first = shuttle::scheduler::RoundRobinScheduler::new(1);
        shuttle::Runner::new(first, config(0x10000)).run(|| {});
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            let at = info.location().map_or_else(String::new, |at| Spot::from(at).0);
            let text = message(info.payload());
            let ours = WORLD.try_with(|world| {
                let Ok(mut world) = world.try_borrow_mut() else { return false };
                if !world.active || world.is_guest() {
                    return false;
                }
                if let Some((first, first_at)) = &world.panicked {
                    tell_abort(&world, first, first_at, &text, &at);
                }
                if world.panics.len() >= MOST_PANICS {
                    world.panics.remove(0);
                }
                world.panics.push((text.clone(), at.clone()));
                world.panicked = Some((text.clone(), at.clone()));
                true
            });
            if !ours.unwrap_or(false) {
                before(info);
            }
        }));
    });
}

#[allow(clippy::print_stderr, reason = "the process ends")]
fn tell_abort(world: &World, first: &str, first_at: &str, second: &str, second_at: &str) {
    eprintln!(
        "demi_threads: {} panicked at {first_at}: {first}\nand then in a destructor, before that panic was at its end, at {second_at}: {second}\nThe \
         standard library ends the process here, so this schedule cannot be minimized. Let no destructor panic.",
        world.name(world.current)
    );
}

fn config(stack: usize) -> shuttle::Config {
    let mut config = shuttle::Config::new();
    config.stack_size = stack;
    config.max_steps = shuttle::MaxSteps::None;
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    config
}

/// Runs executions until the strategy has no more. Gives it back, or says that a task blocks for real.
pub(crate) fn drive<S: Strategy + 'static>(body: &Body, strategy: S, ways: Ways) -> Result<S, Failure> {
    hook();
    let shared = Arc::new(Mutex::new(Shared { strategy: Some(strategy), plan: None }));
    loop {
        let heart = Arc::new(Heart::default());
        let (sender, words) = channel();
        let worker = {
            let (shared, heart, body) = (Arc::clone(&shared), Arc::clone(&heart), Arc::clone(body));
            std::thread::Builder::new().spawn(move || work(&shared, heart, body, ways, sender))
        };
        let worker = worker.map_err(|error| unfit(&format!("no thread can be started: {error}")))?;
        match listen(&words, &heart, ways.patience) {
            Some(Word::Done) => {
                let _ = worker.join();
                let strategy = locked(&shared).strategy.take();
                return strategy.ok_or_else(|| unfit("the search was lost"));
            }
            Some(Word::Abandoned) => {}
            None => return Err(blocked(body, &shared, ways)),
        }
    }
}

fn unfit(message: &str) -> Failure {
    Failure::new(FailureKind::Nondeterministic { message: message.to_owned() })
}

fn listen(words: &std::sync::mpsc::Receiver<Word>, heart: &Heart, patience: Duration) -> Option<Word> {
    use std::sync::atomic::Ordering;
    let (mut beats, mut since) = (0, Instant::now());
    loop {
        match words.recv_timeout(patience.min(Duration::from_millis(250))) {
            Ok(word) => return Some(word),
            Err(RecvTimeoutError::Disconnected) => return Some(Word::Done),
            Err(RecvTimeoutError::Timeout) => {
                let now = heart.beats.load(Ordering::Relaxed);
                if now != beats {
                    (beats, since) = (now, Instant::now());
                } else if since.elapsed() >= patience {
                    return None;
                }
            }
        }
    }
}

/// Runs the execution that blocked once more, with each step told, to say where it blocks.
fn blocked<S>(body: &Body, shared: &Mutex<Shared<S>>, ways: Ways) -> Failure {
    let plan = locked(shared).plan.clone();
    let heart = Arc::new(Heart::default());
    let (sender, words) = channel();
    if let Some(plan) = plan {
        let once = Arc::new(Mutex::new(Shared {
            strategy: Some(OneMore(Some(Plan { log: true, ..plan }))),
            plan: None,
        }));
        let (beats, body) = (Arc::clone(&heart), Arc::clone(body));
        let _ = std::thread::Builder::new().spawn(move || work(&once, beats, body, ways, sender));
        let _ = listen(&words, &heart, ways.patience);
    }
    let (task, after, at) = match &*locked(&heart.last) {
        Some((task, kind, at)) => (task.clone(), kind.word().to_owned(), (*at).into()),
        None => ("main".to_owned(), "its start".to_owned(), Spot(String::new())),
    };
    Failure::new(FailureKind::Blocked { task, after, at })
}

struct OneMore(Option<Plan>);

impl Strategy for OneMore {
    fn next(&mut self) -> Option<Plan> {
        self.0.take()
    }

    fn done(&mut self, _: &World, _: Ended) {}
}

fn work<S: Strategy + 'static>(
    shared: &Arc<Mutex<Shared<S>>>,
    heart: Arc<Heart>,
    body_of: Body,
    ways: Ways,
    sender: Sender<Word>,
) {
    let exchange = |shared: &Mutex<Shared<S>>, world: &mut World| {
        if let Some(known) = locked(shared).strategy.as_mut().and_then(Strategy::known) {
            std::mem::swap(known, &mut world.cache);
        }
    };
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        world.heart = Some(heart);
        exchange(shared, world);
    });
    let for_abandon = {
        // The share is given up as soon as it was used: who drives wants the strategy back.
        let mut shared = Some(Arc::clone(shared));
        move |world: &mut World| {
            let ended = world.end();
            let Some(shared) = shared.take() else { return };
            if let Some(strategy) = &mut locked(&shared).strategy {
                strategy.done(world, ended);
            }
            exchange(&shared, world);
        }
    };
    ON_ABANDON.with(|slot| *slot.borrow_mut() = Some((Box::new(for_abandon), sender.clone())));
    let ours = Ours { shared: Arc::clone(shared), limits: ways.limits, began: false };
    let runner = shuttle::Runner::new(ours, config(ways.stack));
    runner.run(move || {
        body(|| body_of());
        finish();
    });
    ON_ABANDON.with(|slot| drop(slot.borrow_mut().take()));
    WORLD.with(|world| exchange(shared, &mut world.borrow_mut()));
    let _ = sender.send(Word::Done);
}
