//! What a minimization is asked to do, and how it tells where it stands.

use demi_schemas::{NetworkRule, Schedule};

use super::budget::{Budget, StopFlag};
use super::size::{Objective, Size};

/// Which pipeline to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    /// All strategies and passes.
    All,
    /// Local passes, without any search: what happened, reduced.
    Local,
    /// DEMi's STSSched baseline: external ddmin and one internal pass, exact matching.
    Sts,
    /// DEMi's baseline without divergence: a test in which an expected message is missing fails.
    NoDiverge,
    /// Delta debugging of all steps at once, by halves, with one policy: the least that any tool does.
    Ddmin,
    /// The same by probabilities ([`crate::reduce::passes::probdd`]).
    ProbDd,
}

impl Phases {
    /// All pipelines, the default first.
    pub const ALL: [Phases; 6] =
        [Phases::All, Phases::Local, Phases::Sts, Phases::NoDiverge, Phases::Ddmin, Phases::ProbDd];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phases::All => "all",
            Phases::Local => "local",
            Phases::Sts => "sts",
            Phases::NoDiverge => "nodiverge",
            Phases::Ddmin => "ddmin",
            Phases::ProbDd => "probdd",
        }
    }

    /// What it runs, in one line.
    #[must_use]
    pub fn doc(self) -> &'static str {
        match self {
            Phases::All => "All strategies and passes.",
            Phases::Local => {
                "Local passes alone: what happened, reduced, in the recorded order and of the recorded causes."
            }
            Phases::Sts => {
                "DEMi's STSSched: delta debugging of external events, then one pass over the rest."
            }
            Phases::NoDiverge => "As sts, but a test fails if an expected message is missing.",
            Phases::Ddmin => "Delta debugging (ddmin) of all steps, and nothing else.",
            Phases::ProbDd => "Probabilistic delta debugging (ProbDD) of all steps, and nothing else.",
        }
    }
}

/// What a minimization is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The network rule to enforce.
    pub rule: NetworkRule,
    /// How much work may be done.
    pub budget: Budget,
    /// Threads. The result does not depend on it for a budget of replays or states.
    pub jobs: usize,
    /// Which pipeline.
    pub phases: Phases,
    /// What counts as smaller.
    pub objective: Objective,
    /// Set to end with the best so far.
    pub stop: StopFlag,
}

/// Where the work stands; told at each improvement.
#[derive(Clone)]
pub struct Progress<'a> {
    /// The phase that found it.
    pub phase: String,
    /// Whether this is the recording reduced by local passes, beyond which only searches go.
    pub reduced: bool,
    /// Size of the smallest witness of that line of work.
    pub size: Size,
    /// Schedules tested by that line of work.
    pub replays: u64,
    /// Deliveries executed by it.
    pub executed: u64,
    /// The witness as a schedule, which takes time to write.
    pub schedule: &'a dyn Fn() -> Schedule,
}
