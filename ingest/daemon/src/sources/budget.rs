//! How much of requests may be in memory at once, of all sources together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that are converted at the same time; more wait for their turn.
const TURNS: usize = 2;

/// The bytes that there may be, and the turns in which they are worked on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget {
    room: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Budget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let room = Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Budget { room, turns: Arc::new(Semaphore::new(TURNS)) }
    }

    /// A share of it, of nothing yet.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { room: self.room.clone(), held: None }
    }

    /// Waits for the turn to be worked on.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // Nobody closes it.
        self.turns.clone().acquire_owned().await.ok()
    }
}

/// What one request holds of a budget, until it is dropped.
#[derive(Debug)]
pub struct Share {
    room: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Takes so many bytes more, if they are there; whether they were.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Ok(bytes) = u32::try_from(bytes) else { return false };
        let Ok(more) = self.room.clone().try_acquire_many_owned(bytes) else { return false };
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_there_for_others() {
        let budget = Budget::new(100);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert!(one.grow(60) && one.grow(0) && !other.grow(41) && other.grow(40) && !one.grow(1));
        drop(one);
        assert!(other.grow(60) && !other.grow(1));
        drop(other);
        assert!(budget.share().grow(100) && !budget.share().grow(101));
    }
}
