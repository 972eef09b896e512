//! Threads that work side by side. What they do comes back in the order of the work, so that their number changes nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use demi_replay::sim::Reactor;
use demi_replay::{Model, Simulator};

/// Work that takes less in all is done by one thread: to begin others costs as much.
const LITTLE: Duration = Duration::from_micros(400);

/// Threads that run handlers, each with what it needs for that.
pub struct Crew<M: Model> {
    reactors: Vec<Reactor<M>>,
    size: usize,
    pace: Pace,
}

impl<M: Model> Crew<M> {
    /// So many threads.
    #[must_use]
    pub fn of(size: usize) -> Self {
        Crew { reactors: Vec::new(), size: size.max(1), pace: Pace::default() }
    }

    /// One thread, which is the caller's.
    #[must_use]
    pub fn alone() -> Self {
        Crew::of(1)
    }

    /// Does `count` pieces of work with reactors of a simulator.
    pub(crate) fn react<R: Send>(
        &mut self,
        sim: &Simulator<M>,
        count: usize,
        work: impl Fn(&mut Reactor<M>, usize) -> R + Sync,
    ) -> Vec<R> {
        if count == 0 {
            return Vec::new();
        }
        self.reactors.resize_with(self.size, || sim.reactor());
        side_by_side(&mut self.reactors, count, 1, &mut self.pace, work)
    }
}

/// How long a piece of work took lately. It only decides how many threads are worth while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Nanoseconds of a unit of work.
    each: f64,
}

impl Pace {
    fn is_little(&self, units: usize) -> bool {
        Duration::from_nanos((self.each * units as f64) as u64) < LITTLE
    }

    fn took(&mut self, time: Duration, units: usize) {
        let each = time.as_nanos() as f64 / units.max(1) as f64;
        self.each = if self.each == 0.0 { each } else { 0.75 * self.each + 0.25 * each };
    }
}

/// Does `count` pieces of work of some `units` each with the workers there are, or with one where it is little; the results come in the order of
/// their numbers.
pub fn side_by_side<W: Send, R: Send>(
    workers: &mut [W],
    count: usize,
    units: usize,
    pace: &mut Pace,
    work: impl Fn(&mut W, usize) -> R + Sync,
) -> Vec<R> {
    let begin = Instant::now();
    if workers.len() == 1 || count == 1 || pace.is_little(count * units) {
        let done = (0..count).map(|at| work(&mut workers[0], at)).collect();
        pace.took(begin.elapsed(), count * units);
        return done;
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new((0..count).map(|_| None).collect());
    let busy = workers.len().min(count);
    std::thread::scope(|scope| {
        for worker in &mut workers[..busy] {
            let (next, results, work) = (&next, &results, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let result = work(worker, at);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
                }
            });
        }
    });
    pace.took(begin.elapsed() * busy as u32, count * units);
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
