//! What a scenario decides about the model: bug switches, settings, invariants.

use demi_schemas::scenario::{Scenario, ScenarioError};

use crate::models::unknown_name;

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
    /// How look-ups are written.
    pub lookup: LookupPayload,
    /// Which of [`INVARIANTS`] are checked, in that order.
    pub invariants: [bool; 3],
}

impl Config {
    /// Reads the model's part of a scenario; an error names what the model does not know or can't use.
    pub fn parse(scenario: &Scenario) -> Result<Config, ScenarioError> {
        let mut config = Config { disk: true, ..Config::default() };
        for (name, &on) in &scenario.switches {
            match name.as_str() {
                "spark2294_one_list_removal" => config.one_list_removal = on,
                "spark3150_unset_worker" => config.unset_worker = on,
                "spark9256_duplicate_registration" => config.duplicate_registration = on,
                _ => return Err(unknown_name(MODEL, "switch", name, &SWITCHES)),
            }
        }
        for (name, value) in &scenario.settings {
            let wrong = |expected: &str| {
                ScenarioError::Value(format!("setting '{name}' must be {expected}, got {value}"))
            };
            match name.as_str() {
                "disk" => config.disk = value.as_bool().ok_or_else(|| wrong("true or false"))?,
                "lookup_payload" => {
                    config.lookup = match value.as_str() {
                        Some("constant") => LookupPayload::Constant,
                        Some("names") => LookupPayload::Names,
                        Some("identity") => LookupPayload::Identity,
                        _ => return Err(wrong("\"constant\", \"names\" or \"identity\"")),
                    }
                }
                "cached_data_sets" if value.as_bool() == Some(false) => {}
                "cached_data_sets" => return Err(wrong("false: this model has no cached data sets yet")),
                _ => return Err(unknown_name(MODEL, "setting", name, &SETTINGS)),
            }
        }
        if let Some(name) = scenario.payload.keys().next() {
            return Err(unknown_name(MODEL, "payload option", name, &[]));
        }
        if scenario.members.is_some() {
            return Err(ScenarioError::Value(format!("model '{MODEL}' has no members")));
        }
        config.invariants = [scenario.invariants.is_none(); 3];
        for name in scenario.invariants.iter().flatten() {
            match INVARIANTS.iter().position(|known| known == name) {
                Some(at) => config.invariants[at] = true,
                None => return Err(unknown_name(MODEL, "invariant", name, &INVARIANTS)),
            }
        }
        Ok(config)
    }
}
