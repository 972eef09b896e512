//! The tasks that the daemon is made of, and what becomes of one that panics or ends before its time.
//!
//! A task that does not run makes the daemon not ready and is counted. It is started again, later and later. Where that does not help, the
//! process ends with an error: whoever started it knows better what to do than a daemon that goes on without a part of itself.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::metrics::{Metrics, TaskLabel};
use super::shutdown::Shutdown;

/// Failures in a row after which a task is given up.
pub(crate) const MOST_FAILURES: u32 = 6;
/// Pause before a task is started again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 500 });
/// After so long its failures before do not count any more.
const WELL: Duration = Duration::from_secs(60);

/// A task that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) task: String,
    /// Why it ended the last time.
    pub(crate) reason: String,
}

/// All tasks of a daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    metrics: Arc<Metrics>,
    stop: Shutdown,
    /// Those that do not run, and why.
    down: Mutex<BTreeMap<Arc<str>, String>>,
    given_up: watch::Sender<Option<GivenUp>>,
    /// What cannot be written, and why.
    trouble: Mutex<BTreeMap<&'static str, String>>,
    /// How often tasks are to panic where they next look.
    #[cfg(test)]
    breaking: Mutex<BTreeMap<String, u32>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder leaves them half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tasks {
    /// None yet. When `stop` is thrown, tasks end in their time.
    pub(crate) fn new(metrics: Arc<Metrics>, stop: Shutdown) -> Self {
        Tasks(Arc::new(Inner {
            metrics,
            stop,
            down: Mutex::default(),
            trouble: Mutex::default(),
            given_up: watch::Sender::new(None),
            #[cfg(test)]
            breaking: Mutex::default(),
        }))
    }

    /// One more task.
    pub(crate) fn task(&self, name: impl Into<Arc<str>>) -> Task {
        let name = name.into();
        // It is told with 0 before it ever fails: a rate needs a beginning.
        drop(self.0.metrics.task_failures.get_or_create(&label(&name)));
        Task { tasks: self.clone(), name, failures: 0, since: Instant::now() }
    }

    /// Takes note of what is wrong with the spool or the store, or that nothing is any more.
    pub(crate) fn note_trouble(&self, of: &'static str, why: Option<String>) {
        let mut all = lock(&self.0.trouble);
        match why {
            Some(why) => drop(all.insert(of, why)),
            None => drop(all.remove(of)),
        }
    }

    /// What cannot be written, and why.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock(&self.0.trouble).iter().next().map(|(of, why)| format!("the {of} cannot be written: {why}"))
    }

    /// A task that does not run, and why.
    pub(crate) fn down(&self) -> Option<(String, String)> {
        lock(&self.0.down).iter().next().map(|(task, why)| (task.to_string(), why.clone()))
    }

    /// Returns when a task is given up. Safe to drop and call again.
    pub(crate) async fn given_up(&self) -> GivenUp {
        let mut seen = self.0.given_up.subscribe();
        // The sender lives in `self`: this does not end otherwise.
        let found = seen.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        match found {
            Some(found) => found,
            None => std::future::pending().await,
        }
    }

    /// Whether a task was given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.0.given_up.borrow().is_some()
    }

    /// Counts something that panicked and is not started again, such as a connection.
    pub(crate) fn panicked(&self, name: &str, error: JoinError) {
        if error.is_panic() {
            let reason = panic_text(&*error.into_panic());
            self.0.metrics.task_failures.get_or_create(&label(name)).inc();
            tracing::error!(task = name, reason, "a defect: this panicked");
        }
    }

    /// Panics where a test has asked for it.
    #[cfg(test)]
    pub(crate) fn may_break(&self, name: &str) {
        let asked = match lock(&self.0.breaking).get_mut(name) {
            Some(times @ 1..) => {
                *times -= 1;
                true
            }
            _ => false,
        };
        assert!(!asked, "a test breaks '{name}'");
    }

    /// Panics where a test has asked for it.
    #[cfg(not(test))]
    #[inline]
    #[expect(clippy::unused_self, reason = "tests use it")]
    pub(crate) fn may_break(&self, _name: &str) {}

    /// Has a task panic that many times.
    #[cfg(test)]
    pub(crate) fn break_it(&self, name: &str, times: u32) {
        lock(&self.0.breaking).insert(name.to_owned(), times);
    }

    /// How often a task is yet to panic.
    #[cfg(test)]
    pub(crate) fn to_break(&self, name: &str) -> u32 {
        lock(&self.0.breaking).get(name).copied().unwrap_or(0)
    }
}

fn label(name: &str) -> TaskLabel {
    TaskLabel { task: name.to_owned() }
}

/// What a panic says.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}

/// One task: how it does.
#[derive(Debug)]
pub(crate) struct Task {
    tasks: Tasks,
    name: Arc<str>,
    /// How often it failed in a row.
    failures: u32,
    /// Since when it runs.
    since: Instant,
}

impl Task {
    /// Takes note that it runs.
    pub(crate) fn runs(&mut self) {
        self.since = Instant::now();
        if lock(&self.tasks.0.down).remove(&self.name).is_some() {
            tracing::info!(task = %self.name, "it runs again");
        }
    }

    /// Takes note that it failed; how long to wait before it is started again, or nothing where it is given up.
    pub(crate) fn failed(&mut self, reason: &str) -> Option<Duration> {
        if self.since.elapsed() >= WELL {
            self.failures = 0;
        }
        self.failures += 1;
        let inner = &self.tasks.0;
        inner.metrics.task_failures.get_or_create(&label(&self.name)).inc();
        lock(&inner.down).insert(self.name.clone(), reason.to_owned());
        if self.failures >= MOST_FAILURES {
            tracing::error!(task = %self.name, reason, failures = self.failures, "a task is given up");
            inner
                .given_up
                .send_replace(Some(GivenUp { task: self.name.to_string(), reason: reason.to_owned() }));
            return None;
        }
        let pause = FIRST_PAUSE * 2_u32.pow(self.failures - 1);
        tracing::error!(task = %self.name, reason, again_in = ?pause, "a task ended and is started again");
        // What it would be started for is over soon.
        Some(if inner.stop.is_thrown() { Duration::from_millis(10) } else { pause })
    }

    /// Takes note that it ended for good, which the daemon does not outlive: its next start finds what is durable.
    pub(crate) fn lost(mut self, reason: &str) {
        self.failures = MOST_FAILURES - 1;
        self.since = Instant::now();
        self.failed(reason);
    }

    /// Does the work on this thread, and again after a panic; whether it was done in the end.
    pub(crate) fn keep(mut self, mut work: impl FnMut()) -> bool {
        loop {
            self.runs();
            match catch_unwind(AssertUnwindSafe(&mut work)) {
                Ok(()) => return true,
                Err(panic) => match self.failed(&panic_text(&*panic)) {
                    Some(pause) => std::thread::sleep(pause),
                    None => return false,
                },
            }
        }
    }

    /// What the work gives, or what its panic says.
    pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(&*panic))
    }

    /// Waits for what runs already, and has it started again whenever it ends, until the daemon stops.
    pub(crate) async fn tend<E: std::fmt::Display>(
        mut self,
        mut running: JoinHandle<()>,
        again: impl Fn() -> BoxFuture<'static, Result<JoinHandle<()>, E>>,
    ) {
        let stop = self.tasks.0.stop.clone();
        loop {
            let mut held = Held(running);
            let ended = (&mut held.0).await;
            if stop.is_thrown() {
                return;
            }
            let mut reason = match ended {
                Ok(()) => "it ended before its time".to_owned(),
                Err(error) if error.is_panic() => panic_text(&*error.into_panic()),
                // Whoever ended it knows why.
                Err(_) => return,
            };
            running = loop {
                let Some(pause) = self.failed(&reason) else { return };
                if stop.unless(tokio::time::sleep(pause)).await.is_none() {
                    return;
                }
                match again().await {
                    Ok(running) => break running,
                    Err(error) => reason = error.to_string(),
                }
            };
            self.runs();
        }
    }
}

/// Something that runs, and ends with whoever waits for it.
struct Held(JoinHandle<()>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_started_again_until_it_is_given_up() {
        let tasks = Tasks::new(Metrics::shared(), Shutdown::new());
        let mut left = 2;
        assert!(tasks.task("well").keep(|| {
            left -= 1;
            assert!(left < 0, "not yet");
        }));
        assert_eq!(tasks.down(), None);
        let mut runs = 0;
        assert!(!tasks.task("ill").keep(|| {
            runs += 1;
            panic!("never");
        }));
        assert_eq!(runs, MOST_FAILURES);
        assert_eq!(tasks.down(), Some(("ill".to_owned(), "it panicked: never".to_owned())));
        let text = tasks.0.metrics.text();
        assert!(text.contains("demi_task_failures_total{task=\"well\"} 2"), "{text}");
        assert!(
            text.contains(&format!("demi_task_failures_total{{task=\"ill\"}} {MOST_FAILURES}")),
            "{text}"
        );
        let given_up =
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(tasks.given_up());
        assert_eq!(given_up.task, "ill");
        // Something that cannot be started again ends the daemon at once.
        let tasks = Tasks::new(Metrics::shared(), Shutdown::new());
        tasks.task("gone").lost("it panicked");
        assert!(tasks.has_given_up());
        assert_eq!(tasks.down(), Some(("gone".to_owned(), "it panicked".to_owned())));
    }
}
