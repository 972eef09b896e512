//! What else a minimization is asked: which violations count, what must not break, how often a run is repeated, and
//! what may be done to the contents of messages.

use std::sync::Arc;

use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Schedule};

use crate::ledger::Ledger;

/// What is done about components of messages from outside that nobody needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Contents stay as they were recorded.
    Keep,
    /// A further result has smaller contents.
    #[default]
    Other,
    /// The result has smaller contents, where neither of its two figures grows.
    Shrink,
}

/// Which violations count as the one that was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Match {
    /// Those with a fingerprint in common.
    #[default]
    Fingerprint,
    /// Those of the same invariant: what stands before the first `:` of the fingerprint.
    Invariant,
    /// All.
    Any,
}

impl Match {
    /// Whether a violation counts, given the fingerprints of the recorded one.
    #[must_use]
    pub fn counts(self, target: &[String], fingerprint: &str) -> bool {
        let invariant = |f: &str| f.split(':').next().map(str::to_owned);
        match self {
            Match::Fingerprint => target.iter().any(|t| t == fingerprint),
            Match::Invariant => target.iter().any(|t| invariant(t) == invariant(fingerprint)),
            Match::Any => true,
        }
    }

    /// The name used in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Match::Fingerprint => "fingerprint",
            Match::Invariant => "invariant",
            Match::Any => "any",
        }
    }
}

/// How many of how many runs of a candidate must violate, for models that are not deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// So many must violate.
    pub least: u32,
    /// Of so many.
    pub runs: u32,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat { least: 1, runs: 1 }
    }
}

impl std::str::FromStr for Repeat {
    type Err = String;

    /// Reads `K-of-N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not K-of-N with 1 <= K <= N, such as 2-of-3");
        let (least, runs) = text.split_once("-of-").ok_or_else(bad)?;
        let (least, runs) = (least.parse().map_err(|_| bad())?, runs.parse().map_err(|_| bad())?);
        if least == 0 || least > runs {
            return Err(bad());
        }
        Ok(Repeat { least, runs })
    }
}

/// What else is asked. The default asks nothing more.
#[derive(Clone)]
pub struct Criteria<M: Model> {
    /// Which violations count.
    pub matching: Match,
    /// Systems on which a result must not break any invariant, such as the repaired program. A step that is not
    /// possible there is left out.
    pub also: Vec<Simulator<M>>,
    /// Systems on which a result must break an invariant as well, step by step: the one that the recording is of, where the search is held
    /// to a part of its defects.
    pub still: Vec<Simulator<M>>,
    /// How often what is accepted is run again.
    pub repeat: Repeat,
    /// What is done about contents.
    pub contents: Contents,
    /// The ledger to look up and to write attempts in.
    pub ledger: Option<Arc<Ledger>>,
    /// Passes and strategies that are left out, by name, to see what they are worth.
    pub without: Vec<String>,
    /// Whether the work ends once nothing near the results gains any more, with budget left.
    pub when_stable: bool,
}

impl<M: Model> Default for Criteria<M> {
    fn default() -> Self {
        Criteria {
            matching: Match::default(),
            also: Vec::new(),
            still: Vec::new(),
            repeat: Repeat::default(),
            contents: Contents::default(),
            ledger: None,
            without: Vec::new(),
            when_stable: false,
        }
    }
}

impl<M: Model> Criteria<M> {
    /// Whether one of the systems that must not break does on a schedule, each configuration judged by itself.
    #[must_use]
    pub fn breaks(&self, schedule: &Schedule, rule: NetworkRule) -> bool {
        let options = ReplayOptions { rule, strict: false, interval: 1 };
        self.also.iter().any(|sim| {
            // What another system cannot even read, it cannot break on.
            let run = replay(&mut sim.clone(), schedule, &options);
            run.is_ok_and(|run| !run.violation.is_empty())
        })
    }

    /// Whether all of the systems that must break do on a schedule, followed strictly.
    #[must_use]
    pub fn holds(&self, schedule: &Schedule, rule: NetworkRule) -> bool {
        let options = ReplayOptions { rule, strict: true, interval: 1 };
        self.still.iter().all(|sim| {
            let run = replay(&mut sim.clone(), schedule, &options);
            run.is_ok_and(|run| run.verdict == Verdict::Violates)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts() {
        let target = ["ElectionSafety:a:b".to_owned()];
        let counts = |m: Match, f: &str| m.counts(&target, f);
        assert!(counts(Match::Fingerprint, "ElectionSafety:a:b"));
        assert!(!counts(Match::Fingerprint, "ElectionSafety:a:c"));
        assert!(counts(Match::Invariant, "ElectionSafety:a:c"));
        assert!(!counts(Match::Invariant, "LogMatch:a:b"));
        assert!(counts(Match::Any, "LogMatch:a:b"));
    }

    #[test]
    fn repeats_are_read() {
        assert_eq!("2-of-3".parse(), Ok(Repeat { least: 2, runs: 3 }));
        for bad in ["", "2", "0-of-3", "4-of-3", "a-of-b", "2-of-", "-1-of-2"] {
            assert!(bad.parse::<Repeat>().is_err(), "{bad}");
        }
    }
}
