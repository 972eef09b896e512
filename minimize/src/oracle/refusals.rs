//! Candidates that were found to violate and then failed their strict replay.
//!
//! There are none unless this program has a defect, or the model does not do the same twice. Each is counted and the user is told, for
//! what is refused in silence is a shorter result that nobody gets.

use std::sync::{Arc, Mutex, PoisonError};

/// How many there were in all lines of work, and why one of them was refused.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<Refused>>);

#[derive(Debug, Default)]
struct Refused {
    count: u64,
    why: Option<String>,
}

impl Refusals {
    /// Counts one.
    pub fn note(&self, why: String) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.count += 1;
        // Lines of work end in no certain order: the least of the reasons is the same each time.
        refused.why = Some(refused.why.take().map_or(why.clone(), |known| known.min(why)));
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Why one of them was refused, if there was any.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).why.clone()
    }
}
