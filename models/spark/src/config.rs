//! What a scenario decides about the model: bug switches, settings, invariants.

use demi_schemas::scenario::{Scenario, ScenarioError};

use demi_replay::registry::place;

/// Name of the model in scenario files.
pub const MODEL: &str = "spark";

const SWITCHES: [&str; 3] =
    ["spark2294_one_list_removal", "spark3150_unset_worker", "spark9256_duplicate_registration"];
const SETTINGS: [&str; 3] = ["disk", "lookup_payload", "cached_data_sets"];
const INVARIANTS: [&str; 3] = ["LocalityInversion", "CrashUponRecovery", "DuplicateFileCrash"];

/// How the look-up of the locations of a data set is written in logs: always alike, with the names of its blocks, or with
/// the identity of an object, which differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LookupPayload {
    #[default]
    Constant,
    Names,
    Identity,
}

/// What the scenario says, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// A task that is launched leaves only the list in which it was found.
    pub one_list_removal: bool,
    /// A driver read back from disk has no worker field, rather than no worker.
    pub unset_worker: bool,
    /// An application that registers again is taken for a new one.
    pub duplicate_registration: bool,
    /// The master keeps applications, drivers and workers on disk.
    pub disk: bool,
    /// The first data set is cached, and used by a second job.
    pub cached: bool,
    /// How look-ups are written.
    pub lookup: LookupPayload,
    /// Which of [`INVARIANTS`] are checked, in that order.
    pub invariants: [bool; 3],
}

impl Config {
    /// Reads the model's part of a scenario; an error names what the model does not know or can't use.
    pub fn parse(scenario: &Scenario) -> Result<Config, ScenarioError> {
        let mut on = [false; 3];
        for (name, &value) in &scenario.switches {
            on[place(MODEL, "switch", name, &SWITCHES)?] = value;
        }
        let mut config = Config { disk: true, ..Config::default() };
        [config.one_list_removal, config.unset_worker, config.duplicate_registration] = on;
        for (name, value) in &scenario.settings {
            let wrong = |expected: &str| {
                ScenarioError::Value(format!("setting '{name}' must be {expected}, got {value}"))
            };
            let flag = || value.as_bool().ok_or_else(|| wrong("true or false"));
            match (place(MODEL, "setting", name, &SETTINGS)?, value.as_str()) {
                (0, _) => config.disk = flag()?,
                (1, Some("constant")) => config.lookup = LookupPayload::Constant,
                (1, Some("names")) => config.lookup = LookupPayload::Names,
                (1, Some("identity")) => config.lookup = LookupPayload::Identity,
                (1, _) => return Err(wrong("\"constant\", \"names\" or \"identity\"")),
                _ => config.cached = flag()?,
            }
        }
        scenario.payload.keys().try_for_each(|name| place(MODEL, "payload option", name, &[]).map(drop))?;
        if scenario.members.is_some() {
            return Err(ScenarioError::Value(format!("model '{MODEL}' has no members")));
        }
        config.invariants = [scenario.invariants.is_none(); 3];
        for name in scenario.invariants.iter().flatten() {
            config.invariants[place(MODEL, "invariant", name, &INVARIANTS)?] = true;
        }
        Ok(config)
    }
}
