//! The summary of `explore`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::NetworkRule;

/// What `explore` prints with `--json` and writes to `OUT/summary.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExploreSummary {
    /// What was counted: `deviation`, `delay` or `preempt`.
    pub cost: String,
    /// Most that an execution might spend of it.
    pub bound: u32,
    /// Most faults of an execution.
    pub faults: u32,
    /// Messages from outside, one after the other.
    pub clients: u64,
    /// Decides what they are.
    pub seed: u64,
    /// Most steps of an execution.
    pub depth: u32,
    /// After how many deliveries of a recording executions begin; empty where they begin at the scenario's beginning.
    pub beginnings: Vec<u64>,
    /// The network rule.
    pub network: NetworkRule,
    /// How it ended: `complete`, `found` or `stopped`.
    pub ended: String,
    /// What is promised; null where nothing is.
    pub promise: Option<ExplorePromise>,
    /// Set where the model did not always answer alike, which `--tolerate` allows: the promise is then about the answers that counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// What was found, the least first.
    pub findings: Vec<ExploreFinding>,
    /// What was done, by cost from 0 on.
    pub levels: Vec<ExploreLevel>,
}

/// No execution within these limits violates an invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplorePromise {
    /// Most that an execution spends of the cost.
    pub bound: u32,
    /// Most faults of an execution.
    pub faults: u32,
    /// Most steps of an execution; null where the promise is of executions of any length.
    pub steps: Option<u32>,
    /// The promise in words.
    pub text: String,
}

/// A violation, with what the cheapest execution has spent that ends in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExploreFinding {
    /// Fingerprints.
    pub violation: Vec<String>,
    /// The actors whose state breaks the invariants.
    pub affected: Vec<String>,
    /// The steps at which it left the default order.
    #[serde(default)]
    pub deviations: Vec<ExploreDeviation>,
    /// After how many deliveries of the recording it leaves it at the earliest; null without a recording.
    pub from: Option<u64>,
    /// Units of the cost.
    pub cost: u32,
    /// Faults.
    pub faults: u32,
    /// Deliveries of the execution.
    pub deliveries: u64,
    /// Its external events.
    pub externals: u64,
    /// Where it is a livelock: the deliveries after which everything is as it was before, for ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round: Vec<String>,
    /// Its schedule, from the folder on.
    pub schedule: String,
}

/// What was done with the executions of one cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExploreLevel {
    /// The cost.
    pub cost: u32,
    /// Configurations that were gone on from.
    pub configurations: u64,
    /// Steps that were executed.
    pub steps: u64,
    /// Configurations that were known already.
    pub known: u64,
    /// Executions that came to an end by themselves.
    pub ends: u64,
    /// Executions that were cut off after as many steps as one may have.
    pub cut: u64,
}

/// A step that left the default order, or was a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExploreDeviation {
    /// Which step of the schedule, from 1.
    pub step: u64,
    /// Units of the cost that it added.
    pub cost: u32,
    /// Faults that it added.
    pub faults: u32,
    /// What it does.
    #[serde(default)]
    pub taken: String,
    /// What would have come in the default order.
    pub instead_of: String,
}
