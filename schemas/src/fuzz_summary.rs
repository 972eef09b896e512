//! What `fuzz` tells of its runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::NetworkRule;
use crate::summary::ProgramWork;

/// What `fuzz` writes to `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzSummary {
    /// Whether a violation was found.
    pub found: bool,
    /// Its fingerprints.
    pub violation: Vec<String>,
    /// The actors it names.
    pub affected: Vec<String>,
    /// The seed given.
    pub seed: u64,
    /// The run that found it, from 0.
    pub run: u64,
    /// Runs made.
    pub runs: u64,
    /// Runs that broke an invariant with fewer deliveries than were asked for, and so do not count.
    #[serde(default)]
    pub passed_over: u64,
    /// Deliveries of the violating run.
    pub deliveries: u64,
    /// Its external events.
    pub externals: u64,
    /// Deliveries of all runs.
    pub executed: u64,
    /// The network rule.
    pub network: NetworkRule,
    /// How many runs without a violation were written, where those were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<u64>,
    /// What processes did, where the model is a program that runs as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<ProgramWork>,
}
