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

/// What is known of shorter executions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shortest {
    /// No violating execution over these external events, under this network rule, has fewer deliveries than this.
    pub at_least: u64,
    /// Whether the result has just as many: nothing shorter exists.
    pub optimal: bool,
    /// The external messages, as `RECEIVER PAYLOAD`; each may be taken at any time, at most once. Every actor that
    /// the schedule starts is started before the first delivery.
    pub externals: Vec<String>,
    /// Configurations that the proof visited.
    pub states: u64,
    /// Whether the model's lower bound was used; if so, the proof is worth what the bound is.
    pub bounded: bool,
    /// Why nothing better was proven: `budget`, `memory`; null where it is optimal.
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
    /// What each single removal does; none may violate and be a result.
    pub removals: Vec<Removal>,
    /// What is known of shorter executions; null where the schedule has external events other than starts and
    /// messages, or nothing was searched.
    pub shortest: Option<Shortest>,
}
