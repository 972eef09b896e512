//! Processes that wait: spares that have read nothing, and processes that have read a history.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustc_hash::FxHashMap;

use crate::error::ProgramError;
use crate::process::{Disk, Launch, Process};

/// Processes that wait at histories, at most; and how many of them may be such that stay.
const PLACES: usize = 64;
const STAYING: usize = 48;
/// Spares of one node, at most.
const SPARES: usize = 3;
/// Threads that start spares, at most.
const STARTERS: usize = 4;

/// A process that has read a history.
struct Place {
    digest: u128,
    process: Process,
    /// Whether it stays and copies of it go on: somebody came back to its history before.
    stays: bool,
}

/// Processes that have read histories; the one used longest ago first.
#[derive(Default)]
pub(crate) struct Places {
    all: Mutex<VecDeque<Place>>,
    /// Whether copies are made no more, because the program writes files.
    apart: AtomicBool,
    copies: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    /// A process that has read as many of these histories, each the beginning of the next, as any has; with how many.
    pub(crate) fn take(&self, digests: &[u128]) -> Option<(usize, Process)> {
        let mut all = locked(&self.all);
        let places: FxHashMap<u128, usize> =
            all.iter().enumerate().map(|(at, place)| (place.digest, at)).collect();
        let (read, at) =
            digests.iter().enumerate().rev().find_map(|(n, digest)| Some((n + 1, *places.get(digest)?)))?;
        let mut place = all.remove(at)?;
        if place.stays && !self.apart.load(Ordering::Relaxed) {
            let copy = place.process.copy();
            if let Some(copy) = copy {
                self.copies.fetch_add(1, Ordering::Relaxed);
                all.push_back(place);
                return Some((read, copy));
            }
        }
        Some((read, place.process))
    }

    /// Has a copy of a process stay where it is, for those who come back to its history.
    pub(crate) fn keep(&self, digest: u128, process: &mut Process) {
        if self.apart.load(Ordering::Relaxed)
            || locked(&self.all).iter().any(|place| place.stays && place.digest == digest)
        {
            return;
        }
        if let Some(copy) = process.copy() {
            self.copies.fetch_add(1, Ordering::Relaxed);
            self.insert(Place { digest, process: copy, stays: true });
        }
    }

    /// Has a process wait where it is.
    pub(crate) fn put(&self, digest: u128, process: Process) {
        self.insert(Place { digest, process, stays: false });
    }

    fn insert(&self, place: Place) {
        let evicted = {
            let mut all = locked(&self.all);
            all.push_back(place);
            let staying = all.iter().filter(|place| place.stays).count() > STAYING;
            let oldest = all.iter().position(|place| place.stays == staying);
            oldest.filter(|_| all.len() > PLACES).and_then(|at| all.remove(at))
        };
        drop(evicted);
    }

    /// Ends all of them, and makes no copies from here on: they would see each other's files.
    pub(crate) fn part(&self) {
        self.apart.store(true, Ordering::Relaxed);
        let gone = std::mem::take(&mut *locked(&self.all));
        drop(gone);
    }

    /// How many copies were made.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.load(Ordering::Relaxed)
    }
}

/// What starters and takers share.
struct Common {
    launches: Vec<Arc<Launch>>,
    spares: Mutex<Spare>,
    changed: Condvar,
}

struct Spare {
    /// By node.
    ready: Vec<Vec<Process>>,
    /// By node: how many are to be ready, and how many are being started.
    wanted: Vec<usize>,
    coming: Vec<usize>,
    stop: bool,
}

/// Processes that have read nothing, started ahead by threads of their own.
pub(crate) struct Spares {
    common: Arc<Common>,
    starters: Mutex<Vec<JoinHandle<()>>>,
    starts: Arc<AtomicU64>,
}

impl Spares {
    pub(crate) fn new(launches: Vec<Arc<Launch>>) -> Spares {
        let count = launches.len();
        let spare = Spare {
            ready: (0..count).map(|_| Vec::new()).collect(),
            wanted: vec![0; count],
            coming: vec![0; count],
            stop: false,
        };
        let common = Common { launches, spares: Mutex::new(spare), changed: Condvar::new() };
        Spares { common: Arc::new(common), starters: Mutex::default(), starts: Arc::default() }
    }

    /// A process of a node that has read nothing.
    pub(crate) fn take(&self, node: usize) -> Result<Process, ProgramError> {
        self.begin();
        let mut spares = locked(&self.common.spares);
        loop {
            if let Some(process) = spares.ready[node].pop() {
                self.common.changed.notify_all();
                return Ok(process);
            }
            if spares.wanted[node] < SPARES {
                spares.wanted[node] += 1;
                self.common.changed.notify_all();
            }
            if spares.coming[node] == 0 {
                break;
            }
            spares = self.common.changed.wait(spares).unwrap_or_else(PoisonError::into_inner);
        }
        drop(spares);
        self.starts.fetch_add(1, Ordering::Relaxed);
        Process::start(&self.common.launches[node])
    }

    /// A process that begins with what another left.
    pub(crate) fn begin_anew(
        &self,
        node: usize,
        incarnation: u32,
        clock: u64,
        disk: &Disk,
    ) -> Result<Process, ProgramError> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        Process::start_at(&self.common.launches[node], incarnation, clock, disk)
    }

    /// How many processes were started.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(Ordering::Relaxed)
    }

    /// With the first process that is wanted, all nodes will be.
    fn begin(&self) {
        let mut starters = locked(&self.starters);
        if !starters.is_empty() {
            return;
        }
        locked(&self.common.spares).wanted.iter_mut().for_each(|wanted| *wanted = 1);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, STARTERS);
        for _ in 0..threads {
            let (common, starts) = (Arc::clone(&self.common), Arc::clone(&self.starts));
            let spawned =
                std::thread::Builder::new().name("spares".into()).spawn(move || start(&common, &starts));
            starters.extend(spawned);
        }
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        locked(&self.common.spares).stop = true;
        self.common.changed.notify_all();
        for starter in std::mem::take(&mut *locked(&self.starters)) {
            let _ = starter.join();
        }
    }
}

/// Starts what is wanted, until it is told to stop.
fn start(common: &Common, starts: &AtomicU64) {
    let mut spares = locked(&common.spares);
    while !spares.stop {
        let lacking = (0..spares.ready.len())
            .find(|&node| spares.ready[node].len() + spares.coming[node] < spares.wanted[node]);
        let Some(node) = lacking else {
            spares = common.changed.wait(spares).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        spares.coming[node] += 1;
        drop(spares);
        starts.fetch_add(1, Ordering::Relaxed);
        let started = Process::start(&common.launches[node]);
        spares = locked(&common.spares);
        spares.coming[node] -= 1;
        match started {
            Ok(process) => spares.ready[node].push(process),
            // Whoever needs one starts it, and gets the error.
            Err(_) => spares.wanted[node] = 0,
        }
        common.changed.notify_all();
    }
}
