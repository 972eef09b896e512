//! Lines between those who log and the thread that writes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Buffers, so that threads that log seldom wait for each other.
const LANES: usize = 16;

/// Bounded buffers of whole lines. Each thread uses one of them; the writer empties all.
pub(crate) struct Buffers {
    lanes: Vec<Mutex<Vec<u8>>>,
    /// Most bytes in one of them.
    limit: usize,
    /// Whether the writer was asked to hurry since it last looked.
    pub(crate) hurry: AtomicBool,
    /// Events dropped since the start.
    pub(crate) dropped: AtomicU64,
}

/// The buffer of this thread.
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
    }
    // A thread that is ending has no lane of its own any more.
    LANE.try_with(|lane| *lane).unwrap_or(0)
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is in the buffer.
    Kept,
    /// It is in the buffer, which has just become half full: the writer should be woken.
    KeptAndHurry,
    /// There was no room.
    Dropped,
}

impl Buffers {
    /// Empty buffers that hold `bytes` together.
    pub(crate) fn new(bytes: usize) -> Self {
        Buffers {
            lanes: (0..LANES).map(|_| Mutex::default()).collect(),
            limit: bytes / LANES,
            hurry: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    /// Appends whole lines, or nothing of them.
    pub(crate) fn put(&self, lines: &[u8]) -> Put {
        let mut buffer = self.lanes[lane()].lock().unwrap_or_else(PoisonError::into_inner);
        let before = buffer.len();
        if before + lines.len() > self.limit {
            return Put::Dropped;
        }
        buffer.extend_from_slice(lines);
        let half = self.limit / 2;
        if before <= half && buffer.len() > half && !self.hurry.swap(true, Ordering::Relaxed) {
            Put::KeptAndHurry
        } else {
            Put::Kept
        }
    }

    /// Moves what is in the buffers behind what is in `out`, in exchange for the memory of `spare`.
    pub(crate) fn drain(&self, out: &mut Vec<u8>, spare: &mut Vec<u8>) {
        self.hurry.store(false, Ordering::Relaxed);
        for lane in &self.lanes {
            spare.clear();
            std::mem::swap(&mut *lane.lock().unwrap_or_else(PoisonError::into_inner), spare);
            out.extend_from_slice(spare);
        }
    }
}
