//! What is to be minimized, and by which measure. A problem does not change and is shared by all threads; to look for another
//! violation is another problem ([`crate::aim`]).

pub mod budget;
pub mod criteria;
pub mod digest;
pub mod options;
pub mod size;
pub mod text;

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use demi_replay::model::DistanceOf;
use demi_replay::script::{Act, Script};
use demi_replay::{Model, Simulator};
use demi_schemas::NetworkRule;
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::Xxh3;

use self::budget::{Budget, Deadline, StopFlag};
use self::criteria::{Criteria, Match};
use self::digest::Digests;
use self::options::{Options, Phases};
use self::size::Objective;
use self::text::Fields;
use crate::oracle::refusals::Refusals;

/// Which violations count: those that match what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// How a violation is compared with what is accepted.
    pub matching: Match,
    /// The fingerprints that it is compared with.
    pub accepted: Vec<String>,
}

impl Question {
    /// Whether a violation counts.
    #[must_use]
    pub fn counts(&self, fingerprint: &str) -> bool {
        self.matching.counts(&self.accepted, fingerprint)
    }
}

/// What is to be minimized.
#[derive(Clone)]
pub struct Problem<M: Model> {
    /// The simulator, with everything interned that the acts below need.
    pub sim: Simulator<M>,
    /// The recorded schedule.
    pub script: Script,
    /// The recorded execution, cut at the violation.
    pub raw: Vec<Act>,
    /// The same where it is short, or what coarse cuts leave of it: from here other reductions begin.
    pub thinned: Vec<Act>,
    /// What local passes leave of it.
    pub reduced: Vec<Act>,
    /// Structured content of external messages.
    pub fields: Fields,
    /// What is asked.
    pub options: Options,
    /// What else is asked.
    pub criteria: Criteria<M>,
    /// Which violations count.
    pub question: Question,
    /// Which counted in the beginning.
    pub asked: Question,
    /// The fingerprints that searches, bounds and proofs are about: the recorded ones, unless others count too.
    pub target: Vec<String>,
    /// A bound where the model knows none ([`crate::search::pattern_database`]).
    pub pattern_database: Option<Arc<DistanceOf<M>>>,
    /// Whether there is a witness already, so that no other one must be found when the time ends.
    pub begun: bool,
    /// Bytes of the largest state that was met, along witnesses.
    pub heaviest: Arc<AtomicUsize>,
    /// What was paid for steps of processes before jobs began.
    pub paid: Arc<FxHashSet<u128>>,
    /// When everything must end.
    pub deadline: Deadline,
    /// What strict replay refused of what was accepted: all lines of work together.
    pub refusals: Refusals,
}

impl<M: Model> Problem<M> {
    /// The problem of a recorded script that ends in the violation `target`.
    #[must_use]
    pub fn new(
        sim: Simulator<M>,
        script: Script,
        options: Options,
        criteria: Criteria<M>,
        target: Vec<String>,
    ) -> Self {
        let question = Question { matching: criteria.matching, accepted: target.clone() };
        let (raw, thinned, reduced) = (script.acts.clone(), script.acts.clone(), script.acts.clone());
        Problem {
            sim,
            script,
            raw,
            thinned,
            reduced,
            fields: Fields::new(),
            options,
            criteria,
            asked: question.clone(),
            question,
            target,
            pattern_database: None,
            begun: false,
            paid: Arc::default(),
            deadline: Deadline::default(),
            heaviest: Arc::default(),
            refusals: Refusals::default(),
        }
    }

    /// A problem with nothing but a rule and an order of size, on one thread, for one engine's own work.
    #[must_use]
    pub fn plain(
        sim: Simulator<M>,
        script: Script,
        rule: NetworkRule,
        target: Vec<String>,
        objective: Objective,
    ) -> Arc<Self> {
        let (budget, stop) = (Budget::Replays(u64::MAX), StopFlag::default());
        let options = Options { rule, budget, jobs: 1, phases: Phases::All, objective, stop };
        Arc::new(Problem::new(sim, script, options, Criteria::default(), target))
    }

    /// The network rule to enforce.
    #[must_use]
    pub fn rule(&self) -> NetworkRule {
        self.options.rule
    }

    /// What a replay may cost where processes answer: as many steps as were recorded.
    #[must_use]
    pub fn replay_cost(&self) -> u64 {
        self.script.acts.len().max(1) as u64
    }

    /// The external events of the recording, in their order.
    #[must_use]
    pub fn pool(&self) -> Vec<Act> {
        self.raw.iter().filter(|act| act.is_external()).copied().collect()
    }

    /// A digest of all that the results of jobs depend on besides their own keys; it means the same in another process.
    #[must_use]
    pub fn digest(&self) -> u128 {
        let mut digests = Digests::default();
        let mut of = |acts: &[Act]| {
            let mut hasher = Xxh3::new();
            digests.add(&self.sim, &self.script.actions, acts.iter(), &mut hasher);
            hasher.digest128()
        };
        let acts = (of(&self.reduced), of(&self.thinned), of(&self.raw));
        // How many systems must not break, not which: the identity of the ledger tells.
        let asked = (self.criteria.repeat.least, self.criteria.repeat.runs, self.criteria.also.len());
        let mut hasher = Xxh3::new();
        (acts, asked, self.options.rule, self.options.objective, &self.target, &self.question)
            .hash(&mut hasher);
        hasher.digest128()
    }
}
