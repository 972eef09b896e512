//! Strategies: each proposes jobs from what was found so far. [`crate::plan`] says which has its turn when.

pub mod beam;
pub mod event_sets;
pub mod exhaustive;
pub mod kinds;
pub mod late;
pub mod local_search;
pub mod random_runs;
pub mod random_walk;
pub mod recorded;
pub mod restarts;
pub mod rounds;
pub mod settled;
pub mod small_sets;

use demi_replay::Model;

use crate::archive::Archive;
use crate::scheduler::Job;

/// A way to find smaller solutions.
pub trait Strategy<M: Model> {
    /// The next batch of jobs, given all that was found; what the last batch came to is [`Archive::last`]. No jobs end the
    /// strategy's turn.
    fn propose(&mut self, archive: &Archive<'_, M>) -> Vec<Job<M>>;
}
