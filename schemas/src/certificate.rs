//! The certificate of a minimization: what was proven of the result, in a form that can be checked from scratch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NetworkRule;

/// The version that this program writes and reads.
pub const CERTIFICATE_SCHEMA: &str = "demi-certificate/1";

/// What the removal of one step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removal {
    /// The step that is left out, from 1.
    pub step: u64,
    /// Whether the rest, each step delivered as it stands or skipped where it is impossible, still violates.
    pub violates: bool,
    /// The first later step that is impossible without it; null where all happen and the invariant holds.
    pub impossible: Option<u64>,
    /// Digest of the steps that were made.
    pub digest: String,
    /// Set where the rest violates and breaks a system too that must not break, so that it is no result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub breaks_others: bool,
}

impl Removal {
    /// What breaks without the step, for people.
    #[must_use]
    pub fn why(&self) -> String {
        match (self.violates, self.breaks_others, self.impossible) {
            (true, true, _) => {
                "without it the rest violates too, but also breaks a system that must not break".to_owned()
            }
            (true, false, _) => "without it the rest still violates".to_owned(),
            (false, _, Some(step)) => format!("without it step {step} is impossible"),
            (false, _, None) => "without it the invariant holds".to_owned(),
        }
    }
}

impl Shortest {
    /// What limits the proof, for people; nothing where it is optimal.
    #[must_use]
    pub fn limit(&self) -> Option<&str> {
        Some(match self.limited_by.as_deref()? {
            "budget" => "the budget ended",
            "memory" => "the search had as much in memory as it may",
            "states" => "the search visited as many configurations as it may",
            "no bound" => {
                "the model has no bound here, and the search visited as many configurations as it may"
            }
            "late start" => "an actor starts late here, and loses what it was sent before",
            "deadlock" => "searches do not look at what is pending, which decides who cannot go on",
            other => other,
        })
    }
}

/// What is known of shorter executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortest {
    /// No violating execution with these external events, under this network rule, has fewer deliveries than this; if
    /// `starts_at_any_time` is false, none in which all actors start first: a result in which one starts late may have fewer.
    pub at_least: u64,
    /// Whether the result has just as many, and is one that the proof is about: no shorter execution exists.
    pub optimal: bool,
    /// The external messages, as `RECEIVER PAYLOAD`; each may be taken at any time, at most once.
    pub externals: Vec<String>,
    /// Configurations that the proof visited.
    pub states: u64,
    /// Whether the model's lower bound was used; if so, the proof is worth what the bound is.
    pub bounded: bool,
    /// Whether the proof holds of executions in which these actors start at any time before the violation. Who starts late loses
    /// what it was sent before. Where messages may come in any order, or be lost, that spares nothing; under `fifo` the proof
    /// then is that no shorter execution exists even if they come in any order.
    #[serde(default)]
    pub starts_at_any_time: bool,
    /// Why nothing better was proven; null where it is optimal. `budget`: it ended. `memory`: what a search may keep was full.
    /// `states`: as many configurations as one search may visit were visited. `no bound`: the same, where the model knows
    /// no bound for this violation and these external events, so that every execution up to some length is looked at. `late
    /// start`: an actor of the result starts late, which nothing that was looked at does. `deadlock`: actors that cannot go on count as
    /// a violation, and searches do not look at what is pending.
    pub limited_by: Option<String>,
}

/// What `minimize` writes to `OUT/certificate.json` and `verify` checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// [`CERTIFICATE_SCHEMA`].
    pub schema: String,
    /// The network rule.
    pub network: NetworkRule,
    /// Fingerprints of the violation; one of them is enough.
    pub violation: Vec<String>,
    /// Deliveries of the schedule.
    pub deliveries: u64,
    /// Its external events.
    pub externals: u64,
    /// Digest of its strict replay.
    pub digest: String,
    /// What each single removal does. Of a result that is 1-minimal none violates, unless it breaks what must not break.
    /// Empty where the schedule has more than a thousand steps and is not said to be 1-minimal.
    pub removals: Vec<Removal>,
    /// What is known of shorter executions; null where the schedule has external events other than starts, messages and
    /// faults, or nothing was searched.
    pub shortest: Option<Shortest>,
    /// What is known of everything recorded; null where that was too much, or the recording has external events other than first
    /// starts and messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// What was proven of everything recorded: no violating execution with any subset of the external events of `OUT/original.jsonl` has
/// fewer steps, whenever its actors start, and under whatever network rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    /// The steps of the result: starts and deliveries.
    pub steps: u64,
    /// Whether the model's lower bound was used; if so, the proof is worth what the bound is.
    pub bounded: bool,
    /// Configurations that the proof visited.
    pub states: u64,
}
