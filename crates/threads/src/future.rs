//! Futures: a task polls one to its end, and waits for its waker in between.

use std::future::Future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::op::{Kind, Place, ResourceKind, Tag};
use crate::step::step;
use crate::thread;

struct Signal {
    tag: Tag,
    at: Place,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        step(Kind::WakeTask, Some((&self.tag, ResourceKind::Future)), self.at, |world, on| {
            world.of(on).count = 1;
            world.writes(on);
        });
    }
}

fn run<F: Future>(future: F, at: Place) -> F::Output {
    let mut future = pin!(future);
    let signal = Arc::new(Signal { tag: Tag::new(at, None), at });
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        step(Kind::Poll, Some((&signal.tag, ResourceKind::Future)), at, |world, on| {
            world.of(on).count = 0;
            world.writes(on);
        });
    }
}

/// Polls a future to its end.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    run(future, Location::caller())
}

/// A task was cancelled before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task was cancelled")]
pub struct JoinError;

struct State<T> {
    value: Option<Result<T, JoinError>>,
    cancelled: bool,
    waiting: Option<Waker>,
    task: Option<Waker>,
}

struct Shared<T> {
    tag: Tag,
    state: Mutex<State<T>>,
}

impl<T> Shared<T> {
    fn step<R>(&self, kind: Kind, f: impl FnOnce(&mut State<T>) -> R) -> R {
        step(kind, Some((&self.tag, ResourceKind::Future)), self.tag.made, |world, on| world.writes(on));
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A future's task.
pub struct JoinHandle<T>(Arc<Shared<T>>);

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

impl<T> JoinHandle<T> {
    /// Cancels the task: it is dropped where it waits next.
    pub fn abort(&self) {
        let task = self.0.step(Kind::Store, |state| {
            state.cancelled = true;
            state.task.clone()
        });
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Whether the task has come to its end.
    pub fn is_finished(&self) -> bool {
        self.0.step(Kind::Load, |state| state.value.is_some())
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.step(Kind::Load, |state| match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        })
    }
}

/// Begins a task that polls a future to its end.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let at = Location::caller();
    let state = State { value: None, cancelled: false, waiting: None, task: None };
    let shared = Arc::new(Shared { tag: Tag::new(at, None), state: Mutex::new(state) });
    let of_task = Arc::clone(&shared);
    drop(thread::spawn(move || {
        let mut future = Box::pin(future);
        let polled = std::future::poll_fn(|context| {
            let cancelled = of_task.step(Kind::Load, |state| {
                state.task = Some(context.waker().clone());
                state.cancelled
            });
            if cancelled {
                return Poll::Ready(Err(JoinError));
            }
            future.as_mut().poll(context).map(Ok)
        });
        let value = run(polled, at);
        drop(future);
        let waiting = of_task.step(Kind::Store, |state| {
            state.value = Some(value);
            state.task = None;
            state.waiting.take()
        });
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }));
    JoinHandle(shared)
}

/// Lets other tasks go first.
#[track_caller]
pub fn yield_now() -> impl Future<Output = ()> {
    let at = Location::caller();
    std::future::poll_fn(move |_| {
        step(Kind::Yield, None, at, |_, _| ());
        Poll::Ready(())
    })
}
