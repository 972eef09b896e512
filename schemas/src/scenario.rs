//! The scenario file: which model, which bugs are switched on, which network, which invariants.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::asserted::Asserted;
use crate::model_ref::ModelRef;
pub use crate::scenario_error::ScenarioError;

/// Which pending messages of a channel may be delivered.
///
/// A channel is the pair of the actor that really sent and the receiver. Timers and messages from outside
/// belong to no channel and may be delivered at any time under every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkRule {
    /// Any pending message.
    Unordered,
    /// In order, but a message may be skipped for ever: nothing is delivered after a newer one of its channel.
    FifoLoss,
    /// In order without gaps: what is never delivered is the tail of its channel.
    Fifo,
}

impl NetworkRule {
    /// The name used in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NetworkRule::Unordered => "unordered",
            NetworkRule::FifoLoss => "fifo-loss",
            NetworkRule::Fifo => "fifo",
        }
    }
}

impl fmt::Display for NetworkRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for NetworkRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "unordered" => Ok(NetworkRule::Unordered),
            "fifo-loss" => Ok(NetworkRule::FifoLoss),
            "fifo" => Ok(NetworkRule::Fifo),
            other => Err(format!("'{other}' is no network rule: expected unordered, fifo-loss or fifo")),
        }
    }
}

/// A rewriting of payloads before they are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mask {
    /// Only for messages of this type; all where absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// A regular expression.
    pub pattern: String,
    /// What each match becomes; `$1` names a group.
    #[serde(default)]
    pub replace: String,
}

/// What clients do to a program that runs as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSettings {
    /// Its name.
    pub name: String,
    /// How many clients there are, each of which does one thing at a time; as many as nodes where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// The names of the clients, where they are not `c1` and so on; `processes` then says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<String>>,
    /// How many keys clients use; 1 where absent, 2 for transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u32>,
    /// What transactions are promised: `read-uncommitted`, `read-committed`, `snapshot-isolation`, `serializable` (where absent) or
    /// `strict-serializable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<String>,
    /// Who is whose neighbour in `broadcast`: `grid` (where absent), `line`, `tree4` or `total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// The services that nodes may use, of `lin-kv`, `seq-kv`, `lww-kv` and `lin-tso`; where absent, those that the program's files name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Vec<String>>,
    /// Seconds that clocks go on before what is there in the end is read; 10 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<u32>,
}

/// How a program that is no Maelstrom node talks: in lines of JSON, each an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinesSettings {
    /// The field that says for whom a line is: a node, or the client of a request.
    pub destination: String,
    /// The field that says who sends it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The first line that a node reads, where there is one: `$node`, `$nodes` and `$others` are replaced by its name and theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<String>,
    /// By operation of the workload, the line that asks for it: `$id`, `$client`, `$node` and the fields of Maelstrom's request are replaced.
    pub requests: BTreeMap<String, String>,
    /// The field of an answer that has the request's `$id`.
    pub id: String,
    /// The field of an answer that is there, and neither null nor false, where the operation was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What errors mean: Maelstrom's number by the error's text; 13, which may have been done or not, where absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// By field of an answer, what Maelstrom calls it, where that is another name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, String>,
}

/// How the processes of a program run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessSettings {
    /// Seed of their random numbers; 1 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Most memory of one process, in MiB; 1024 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Most real seconds that one step takes; 5 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_seconds: Option<u32>,
    /// Most lines that one step writes; 256 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<u32>,
    /// Most seconds of a node's own clock that one step lets go by; 60 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_limit_seconds: Option<u32>,
    /// Milliseconds of a node's own clock between two polls of a program that never waits; 10 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_quantum_ms: Option<u32>,
    /// What a node that is killed finds when it begins anew: `kept` (where absent) for the files that it wrote, `synced` for what of them a loss of power
    /// leaves, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

/// Settings of the random runs that `fuzz` makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FuzzSettings {
    /// How many client messages are sent in a run. Where absent, 20, and more in long runs of programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_messages: Option<u32>,
    /// When they are sent: before the first delivery, or once the model's named condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// Relative weight of client messages among the random external events.
    pub weight_client: f64,
    /// Relative weight of crashes.
    pub weight_crash: f64,
    /// Relative weight of restarts of crashed actors.
    pub weight_restart: f64,
    /// Relative weight of partitions and of their healing.
    pub weight_partition: f64,
    /// Relative weight of cutting single actors off from the network, and of bringing them back.
    pub weight_isolate: f64,
    /// Relative weight of messages that the network repeats, where the scenario's network does.
    pub weight_duplicate: f64,
    /// How many times faster or slower than others an actor's clock may run: its timers fire so much more or less often. 1 where all
    /// clocks run alike.
    pub clock_drift: f64,
    /// Probability that a drawn timer is put back.
    pub timer_putback: f64,
    /// Order of deliveries: `random`, `priorities` (PCT-like), `bursts` or `mixed`. Where absent, `random` for models and `mixed` for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Number of priority changes of the `priorities` strategy.
    pub priority_changes: u32,
    /// What a test driver does in every run, in this order, each thing as soon as the one before is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<ProgramStep>,
}

/// One thing that a test driver does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStep {
    /// Waits until the model's named condition holds.
    Wait(String),
    /// Waits until so many messages were delivered in the run.
    Deliveries(u64),
    /// Runs code outside the actors, by the model's name for it.
    Action {
        /// Its name.
        name: String,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        fields: serde_json::Map<String, serde_json::Value>,
    },
    /// Sends a message from outside.
    Send {
        /// The receiver.
        to: String,
        /// Message type tag.
        #[serde(rename = "type")]
        type_: String,
        /// Full content.
        #[serde(default)]
        payload: String,
    },
    /// Cuts an actor off from the network.
    Isolate(String),
    /// Brings an actor that was cut off back on the network.
    Heal(String),
    /// Ends an actor, with everything pending for it.
    Stop(String),
    /// Makes an actor fail.
    Crash(String),
    /// Begins a new incarnation of an actor.
    Restart(String),
}

impl Default for FuzzSettings {
    fn default() -> Self {
        FuzzSettings {
            client_messages: None,
            wait_for: None,
            weight_client: 1.0,
            weight_crash: 0.0,
            weight_restart: 0.0,
            weight_partition: 0.0,
            weight_isolate: 0.0,
            weight_duplicate: 1.0,
            clock_drift: 1.0,
            timer_putback: 0.0,
            strategy: None,
            priority_changes: 3,
            program: Vec::new(),
        }
    }
}

impl FuzzSettings {
    /// How many client messages are sent in a run, where the model asks for no other number.
    #[must_use]
    pub fn client_messages(&self) -> u32 {
        self.client_messages.unwrap_or(20)
    }
}

/// How `fuzz` orders deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Uniformly at random.
    Random,
    /// Random priorities of channels and timers, with a few changes (after PCT for message passing).
    Priorities,
    /// Stretches in which one actor, or one side of the cluster, is favoured.
    Bursts,
    /// Each run takes one of the others in turn.
    Mixed,
}

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The model: its name, or how it is run.
    pub model: ModelRef,
    /// Number of members, for models that have members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// Which pending messages may be delivered.
    pub network: NetworkRule,
    /// Whether the network may deliver a message more than once. Where it may, random runs and explorations have it do so;
    /// recorded executions are replayed as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicates: bool,
    /// The invariants to check; all of the model's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariants: Option<Vec<String>>,
    /// Invariants as predicates over the actors' states: one text, or a list. The model's own are then checked only where
    /// `invariants` names them.
    #[serde(default, skip_serializing_if = "Asserted::is_empty")]
    pub invariant: Asserted,
    /// Check the invariants each time this many deliveries were made, and at the end; 1 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant_check_interval: Option<u32>,
    /// Seconds that one call of the model may take before the program ends and names it; 10 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_limit_seconds: Option<u32>,
    /// Whether actors that cannot go on are a violation: `Deadlock` where they wait for each other, `Stuck` where nothing is
    /// pending and somebody still waits. The model must say who waits for whom.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deadlock: bool,
    /// Whether a handler that panics or raises an exception is no violation. A step in which one does then cannot be taken, and a run ends
    /// there. Without it the violation is `crash: ACTOR, TEXT (PLACE)`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_crash: bool,
    /// Whether it is a violation, `Livelock`, when actors get nowhere: everything is delivered in its turn, all comes back to where it was,
    /// and somebody has begun something and is never done. The model says who has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub livelock: bool,
    /// Most messages that an actor may take in a row which it sent to itself, while another actor could take something; more are a violation,
    /// `Hog`. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hog: Option<u32>,
    /// Deviations of the program, by the model's names for them; absent ones are off.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switches: BTreeMap<String, bool>,
    /// Other settings of the model.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub settings: toml::Table,
    /// How payloads are written, by the model's names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub payload: BTreeMap<String, bool>,
    /// What clients do to a program that runs as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadSettings>,
    /// How the processes of such a program run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessSettings>,
    /// How such a program talks, where it is no Maelstrom node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesSettings>,
    /// Masks added to the model's own.
    #[serde(default, rename = "mask", skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<Mask>,
    /// Settings of `fuzz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuzz: Option<FuzzSettings>,
}

/// Reads a TOML file; the error has the place, and the key that was likely meant.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|e: toml::de::Error| {
        let mut message = e.to_string().trim_end().to_owned();
        if let Some(known) = demi_common::hint::nearest_in_message(e.message()) {
            message.push_str(&format!("\ndid you mean '{known}'?"));
        }
        message
    })
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// When it is not TOML, a key is unknown (the nearest known one is named), missing or of a wrong type, or the
    /// check interval is 0.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let mut scenario: Scenario = from_toml(text).map_err(ScenarioError::Toml)?;
        if scenario.invariant_check_interval == Some(0) {
            return Err(ScenarioError::Value(
                "invariant_check_interval counts deliveries from 1, got 0".into(),
            ));
        }
        scenario.invariant.check()?;
        if scenario.invariants.is_none() && !scenario.invariant.is_empty() {
            scenario.invariants = Some(scenario.invariant.same_as());
        }
        Ok(scenario)
    }

    /// The text of the scenario file.
    #[must_use]
    pub fn to_text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let text = "model = \"m\"\nmembers = 4\nnetwork = \"fifo-loss\"\n[switches]\na = true\n";
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.network, NetworkRule::FifoLoss);
        assert_eq!(Scenario::parse(&scenario.to_text()).unwrap(), scenario);
    }

    #[test]
    fn a_misspelt_key_names_line_and_nearest() {
        let error = Scenario::parse("model = \"m\"\nnetwrok = \"fifo\"\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("did you mean 'network'"), "{error}");
    }

    #[test]
    fn interval_zero_is_refused() {
        let text = "model = \"m\"\nnetwork = \"fifo\"\ninvariant_check_interval = 0\n";
        assert!(matches!(Scenario::parse(text), Err(ScenarioError::Value(_))));
    }

    #[test]
    fn network_names_round_trip() {
        for rule in [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo] {
            assert_eq!(rule.as_str().parse(), Ok(rule));
        }
    }
}
