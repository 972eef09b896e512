//! What an exploration is asked for, what it tells, and what it comes to.

use demi_replay::Violation;
use demi_replay::fuzz::Choice;
pub use demi_space::cheapest::{Deviation, Ended, Level, Told};

use crate::cost::Spent;
use crate::saved::Saved;

/// A violation, with the cheapest execution that ends in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is broken.
    pub violations: Vec<Violation>,
    /// What the execution spent.
    pub spent: Spent,
    /// The execution, from nothing on.
    pub choices: Vec<Choice>,
    /// Where it left the default order.
    pub deviations: Vec<Deviation>,
    /// Where it is a livelock: the deliveries after which everything is as it was before.
    pub round: Vec<String>,
}

/// What an exploration came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Explored {
    /// What was found: for each set of fingerprints the least of what violates so, in the order of what they spent.
    pub findings: Vec<Finding>,
    /// What was done, by cost.
    pub levels: Vec<Level>,
    /// How many different moments there were.
    pub met: u64,
    /// The sum of their numbers: equal sets have equal sums.
    pub digest: u128,
    /// How it ended.
    pub ended: Ended,
    /// What is needed to go on from where it stopped, and to tell again what it found.
    pub saved: Saved,
}

/// How to explore.
#[derive(Clone, Copy, Debug)]
pub struct ExploreOptions<'a> {
    /// Whether to go on after the first violation, to the least of each.
    pub all: bool,
    /// Whether moments that are known are not gone on with. Off only to test that this changes nothing.
    pub cache: bool,
    /// Threads; they change nothing in the result.
    pub jobs: usize,
    /// How many waiting configurations are kept; others are made again when it is their turn. Changes nothing in the result.
    pub kept: usize,
    /// Where an earlier exploration of the same stopped.
    pub from: Option<&'a Saved>,
}

impl Default for ExploreOptions<'_> {
    fn default() -> Self {
        ExploreOptions { all: false, cache: true, jobs: 1, kept: 1 << 20, from: None }
    }
}
