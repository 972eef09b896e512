//! Tasks, with the names and signatures of [`std::thread`].

use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use std::thread::{Result, panicking};

pub use crate::local::{AccessError, LocalKey};

use crate::op::{Kind, Place, TaskId};
use crate::run;
use crate::step::{came_to, step, step_with};
use crate::time::pass;
use crate::world::WORLD;

/// The number of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(TaskId);

/// A task.
#[derive(Clone, Debug)]
pub struct Thread {
    id: ThreadId,
    name: Option<String>,
}

impl Thread {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Its name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Lets the task's next or present [`park`] end.
    #[track_caller]
    pub fn unpark(&self) {
        let task = self.id.0;
        step(Kind::Unpark, None, Location::caller(), |world, _| world.unpark(task));
    }
}

type Slot<T> = Arc<Mutex<Option<T>>>;

fn take<T>(slot: &Slot<T>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// What a task does: its closure, and its result where somebody may ask for it.
fn job<T>(task: TaskId, f: impl FnOnce() -> T, slot: Slot<T>) -> impl FnOnce() {
    move || {
        run::enters(task);
        let value = run::body(f);
        if Arc::strong_count(&slot) > 1 {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = value;
        } else {
            drop(value);
        }
        drop(slot);
        run::finish();
    }
}

#[allow(clippy::panic, reason = "there is nobody who could run it")]
fn begin(name: Option<String>, at: Place) -> io::Result<Thread> {
    match step(Kind::Spawn, None, at, |world, _| world.spawn(name.clone(), at)) {
        Some(Some(task)) => Ok(Thread { id: ThreadId(task), name }),
        Some(None) => Err(io::Error::other("an execution has at most 65,535 tasks")),
        None => panic!("demi_threads::thread::spawn is called outside of a test of demi_threads"),
    }
}

fn joins(task: TaskId, at: Place) {
    step_with(Kind::Join, None, at, |_, _| u32::from(task), |world, _| world.joins(task));
}

fn is_over(task: TaskId, at: Place) -> bool {
    step(Kind::IsFinished, None, at, |world, _| {
        let over = world.tasks.get(usize::from(task)).is_none_or(|task| task.finished);
        if over {
            world.joins(task);
        } else {
            world.looks_at(task);
        }
        over
    })
    .unwrap_or(true)
}

fn result<T>(slot: &Slot<T>) -> Result<T> {
    take(slot).ok_or_else(|| Box::new("the task panicked, or the execution was stopped") as _)
}

/// The right to wait for a task.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: Thread,
    slot: Slot<T>,
}

impl<T> JoinHandle<T> {
    /// Waits for the end of the task.
    ///
    /// # Errors
    /// When it panicked; that is a failure of the test too.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        joins(self.thread.id.0, Location::caller());
        result(&self.slot)
    }

    /// The task.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Whether it has come to its end.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        is_over(self.thread.id.0, Location::caller())
    }
}

/// What a task is to be like.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    /// A task like any other.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name, in reports and schedules too.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Does nothing: all stacks are of one size, which [`Check::stack`](crate::Check::stack) says.
    #[must_use]
    pub fn stack_size(self, _: usize) -> Self {
        self
    }

    /// Begins the task.
    ///
    /// # Errors
    /// When there are too many.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let thread = begin(self.name, Location::caller())?;
        let slot = Slot::default();
        let me = run::me();
        shuttle::thread::spawn(job(thread.id.0, f, Arc::clone(&slot)));
        run::enters(me);
        Ok(JoinHandle { thread, slot })
    }

    /// Begins a task of a scope.
    ///
    /// # Errors
    /// When there are too many.
    #[track_caller]
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let thread = begin(self.name, Location::caller())?;
        let slot = Slot::default();
        scope.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(thread.id.0);
        let me = run::me();
        scope.inner.spawn(job(thread.id.0, f, Arc::clone(&slot)));
        run::enters(me);
        Ok(ScopedJoinHandle { thread, slot, scope: std::marker::PhantomData })
    }
}

/// Begins a task.
#[track_caller]
#[allow(clippy::expect_used, reason = "as the standard library does")]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("failed to spawn a task")
}

/// Tasks that may borrow from the one that began them.
#[allow(explicit_outlives_requirements, reason = "as the standard library has it")]
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    inner: &'scope shuttle::thread::Scope<'scope, 'env>,
    tasks: Mutex<Vec<TaskId>>,
}

/// The right to wait for a task of a scope.
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    thread: Thread,
    slot: Slot<T>,
    scope: std::marker::PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the end of the task.
    ///
    /// # Errors
    /// When it panicked; that is a failure of the test too.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        joins(self.thread.id.0, Location::caller());
        result(&self.slot)
    }

    /// The task.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Whether it has come to its end.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        is_over(self.thread.id.0, Location::caller())
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Begins a task that may borrow from outside of the scope.
    #[track_caller]
    #[allow(clippy::expect_used, reason = "as the standard library does")]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Builder::new().spawn_scoped(self, f).expect("failed to spawn a task")
    }
}

/// A scope at whose end all its tasks have ended.
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let at = Location::caller();
    let me = run::me();
    let result = shuttle::thread::scope(|inner| {
        // The reference must live as long as the scope, which safe code can only promise of what is never dropped: some bytes of each scope.
        let scope: &Scope<'_, 'env> = Box::leak(Box::new(Scope { inner, tasks: Mutex::default() }));
        let result = catch_unwind(AssertUnwindSafe(|| f(scope)));
        loop {
            let next = scope.tasks.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(task) = next else { break };
            joins(task, at);
        }
        drop(std::mem::take(&mut *scope.tasks.lock().unwrap_or_else(PoisonError::into_inner)));
        result.unwrap_or_else(|payload| resume_unwind(payload))
    });
    run::enters(me);
    result
}

/// The task that runs.
#[must_use]
pub fn current() -> Thread {
    WORLD.with(|world| {
        let world = &*world.borrow();
        let task = world.tasks.get(usize::from(world.current));
        let name = task.and_then(|task| task.name.as_ref()).map(ToString::to_string);
        Thread { id: ThreadId(world.current), name }
    })
}

/// How many tasks a program should begin: two on every machine, so that its schedules are the same everywhere.
///
/// # Errors
/// Never; the standard library's may.
pub fn available_parallelism() -> io::Result<NonZero<usize>> {
    Ok(NonZero::<usize>::MIN.saturating_add(1))
}

/// Lets other tasks go first.
#[track_caller]
pub fn yield_now() {
    step(Kind::Yield, None, Location::caller(), |_, _| ());
}

/// Lets other tasks go first; there is no clock.
#[track_caller]
pub fn sleep(time: Duration) {
    step(Kind::Sleep, None, Location::caller(), |_, _| ());
    pass(time);
}

/// Waits until somebody calls [`Thread::unpark`]. It does not end without a reason.
#[track_caller]
pub fn park() {
    step(Kind::Park, None, Location::caller(), |world, _| world.take_token());
}

/// Waits for [`Thread::unpark`] or the end of a time, whichever the schedule says: there is no clock.
#[track_caller]
pub fn park_timeout(time: Duration) {
    let token = step(Kind::ParkOrTimeOut, None, Location::caller(), |world, _| world.take_token());
    if token == Some(true) {
        came_to("unparked");
    } else {
        came_to("timed out");
        pass(time);
    }
}
