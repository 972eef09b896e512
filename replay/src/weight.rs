//! How much memory states take, and how much of it may be used for what could be made again.
//!
//! States may be large. What is kept of them only to save work, such as worlds along a run or answers of a process, is bounded by their bytes,
//! not by their number.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the program may keep, unless it is told otherwise.
static ROOM: AtomicUsize = AtomicUsize::new(2 << 30);

/// Says how many bytes the program may keep of what it could make again.
pub fn allow(bytes: u64) {
    ROOM.store(usize::try_from(bytes).unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// How many bytes the program may keep of what it could make again.
#[must_use]
pub fn room() -> usize {
    ROOM.load(Ordering::Relaxed)
}

/// About how many bytes a value takes: those that its hash reads, and its own.
pub fn of<T: Hash>(value: &T) -> usize {
    let mut counter = Counter(size_of::<T>());
    value.hash(&mut counter);
    counter.0
}

/// Counts what is hashed.
struct Counter(usize);

impl Hasher for Counter {
    fn write(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn finish(&self) -> u64 {
        self.0 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_what_its_hash_reads() {
        assert!((8_000..9_000).contains(&of(&vec![0_u64; 1_000])));
        assert!((3_000_000..3_100_000).contains(&of(&vec!["x".repeat(1_000_000); 3])));
    }
}
