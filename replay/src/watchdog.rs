//! Notices calls of a model's code that do not return.
//!
//! A thread in an endless loop cannot be stopped from outside, so that a hung call can only be told of, and the program be
//! ended. Each thread counts its calls as they begin and end; a [`Watch`] looks at the counts now and then. The calls themselves
//! read no clock.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Watches there are; where there is none, calls are not counted.
static WATCHES: AtomicUsize = AtomicUsize::new(0);
/// The threads that have called a model since there was a watch.
static THREADS: Mutex<Vec<Weak<Calls>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: OnceCell<Arc<Calls>> = const { OnceCell::new() };
}

/// The calls of one thread.
#[derive(Default)]
struct Calls {
    /// How many began and ended: odd within one.
    count: AtomicU64,
    /// Whether the call under way is that of a handler.
    handles: AtomicBool,
    /// What was handled last.
    handled: Mutex<Handled>,
}

#[derive(Default)]
struct Handled {
    actor: String,
    what: String,
}

/// A call that does not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hung {
    /// The actor and what it handles; nothing for an invariant, a bound or other code of the model.
    pub handler: Option<(String, String)>,
    /// How long it has been waited for.
    pub limit: Duration,
}

impl std::fmt::Display for Hung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.limit.as_secs_f64();
        match &self.handler {
            Some((actor, what)) => {
                write!(f, "the handler of {actor} did not return from {what} within {seconds} s")
            }
            None => write!(f, "code of the model, such as an invariant, did not return within {seconds} s"),
        }
    }
}

/// Whether calls are watched.
#[inline]
pub(crate) fn watched() -> bool {
    WATCHES.load(Ordering::Relaxed) != 0
}

fn mine<T>(of: impl FnOnce(&Calls) -> T) -> T {
    MINE.with(|mine| {
        of(mine.get_or_init(|| {
            let calls = Arc::new(Calls::default());
            let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
            threads.retain(|calls| calls.strong_count() > 0);
            threads.push(Arc::downgrade(&calls));
            calls
        }))
    })
}

/// Says what the next call handles.
pub(crate) fn handling(actor: &str, type_: &str, payload: &str) {
    mine(|calls| {
        let mut handled = calls.handled.lock().unwrap_or_else(PoisonError::into_inner);
        handled.actor.clear();
        handled.actor.push_str(actor);
        handled.what.clear();
        handled.what.push_str(type_);
        if payload != type_ {
            handled.what.push(' ');
            handled.what.push_str(payload);
        }
        calls.handles.store(true, Ordering::Relaxed);
    });
}

/// A call begins.
pub(crate) fn enter() {
    mine(|calls| calls.count.fetch_add(1, Ordering::Release));
}

/// It has ended.
pub(crate) fn leave() {
    mine(|calls| {
        calls.handles.store(false, Ordering::Relaxed);
        calls.count.fetch_add(1, Ordering::Release);
    });
}

/// Looks after the calls of all threads until it is dropped.
#[derive(Debug)]
pub struct Watch {
    over: Arc<AtomicBool>,
}

impl Watch {
    /// Calls `hung` once, on a thread of its own, when a call has not returned for `limit`, and not a second later.
    pub fn new(limit: Duration, hung: impl FnOnce(Hung) + Send + 'static) -> Watch {
        WATCHES.fetch_add(1, Ordering::Relaxed);
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        // A program that cannot have another thread does without.
        let _ = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            if let Some(found) = look(limit, &ended) {
                hung(found);
            }
        });
        Watch { over }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks at the counts until one stands still within a call for too long, or the watch is over.
fn look(limit: Duration, over: &AtomicBool) -> Option<Hung> {
    let pause = (limit / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
    let mut known: Vec<(Weak<Calls>, u64, Instant)> = Vec::new();
    loop {
        std::thread::sleep(pause);
        if over.load(Ordering::Relaxed) {
            return None;
        }
        let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for thread in threads {
            let Some(calls) = thread.upgrade() else { continue };
            let count = calls.count.load(Ordering::Acquire);
            let Some(at) = known.iter().position(|(other, ..)| other.ptr_eq(&thread)) else {
                known.push((thread, count, Instant::now()));
                continue;
            };
            if known[at].1 != count {
                (known[at].1, known[at].2) = (count, Instant::now());
            } else if count % 2 == 1 && known[at].2.elapsed() >= limit {
                let handled = calls.handled.lock().unwrap_or_else(PoisonError::into_inner);
                let handler = calls
                    .handles
                    .load(Ordering::Relaxed)
                    .then(|| (handled.actor.clone(), handled.what.clone()));
                return Some(Hung { handler, limit });
            }
        }
        known.retain(|(thread, ..)| thread.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::guard::guarded;

    #[test]
    fn a_call_that_does_not_return_is_told_of_and_quick_ones_are_not() {
        let (tell, told) = mpsc::channel();
        let limit = Duration::from_millis(200);
        let watch = Watch::new(limit, move |hung| tell.send(hung).unwrap());
        let quick = Instant::now();
        while quick.elapsed() < 2 * limit {
            handling("quick", "Ping", "Ping(1)");
            guarded(|| std::thread::sleep(Duration::from_millis(1))).unwrap();
        }
        assert!(told.try_recv().is_err(), "many short calls are no long one");
        let (end, ended) = mpsc::channel::<()>();
        let hangs = std::thread::spawn(move || {
            handling("node-1", "Spin", "Spin(7)");
            guarded(|| ended.recv()).unwrap()
        });
        let hung = told.recv_timeout(10 * limit).unwrap();
        assert_eq!(hung.handler, Some(("node-1".to_owned(), "Spin Spin(7)".to_owned())));
        assert!(hung.to_string().contains("did not return from Spin Spin(7) within 0.2 s"), "{hung}");
        end.send(()).unwrap();
        hangs.join().unwrap().unwrap();
        drop(watch);
    }
}
