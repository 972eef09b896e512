//! The names that a model knows: what else a scenario says is an error, never passed over in silence.

use demi_common::nearest;

use crate::scenario::Scenario;
use crate::scenario_error::ScenarioError;

/// The names that a model knows of each kind. What is not given is empty: the model knows no name of that kind.
///
/// ```
/// use demi_schemas::{Known, Scenario};
///
/// let known = Known { switches: &["no_fence"], invariants: &["OneHolder"], ..Known::default() };
/// let scenario = Scenario::parse("model = 'lock'\nnetwork = 'fifo'\nswitches = { nofence = true }").unwrap();
/// let why = known.check(&scenario).unwrap_err().to_string();
/// assert_eq!(why, "switch 'nofence' is not known to model 'lock'; did you mean 'no_fence'?");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// Names of `[switches]`.
    pub switches: &'a [&'a str],
    /// Names of `[settings]`.
    pub settings: &'a [&'a str],
    /// Names of `[payload]`.
    pub payload: &'a [&'a str],
    /// Names of `invariants`.
    pub invariants: &'a [&'a str],
}

impl Known<'_> {
    /// Checks every name that the scenario has for its model.
    ///
    /// # Errors
    /// The first name that is not known, with the nearest one that is.
    pub fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let all = |what, names: &mut dyn Iterator<Item = &String>, known: &[&str]| {
            let unknown = |name: &String| ScenarioError::UnknownName {
                what,
                name: name.clone(),
                model: scenario.model.as_str().to_owned(),
                nearest: nearest(name, known.iter().copied()).map(str::to_owned),
            };
            let mut names = names.filter(|name| !known.contains(&name.as_str()));
            names.next().map_or(Ok(()), |name| Err(unknown(name)))
        };
        all("switch", &mut scenario.switches.keys(), self.switches)?;
        all("invariant", &mut scenario.invariants.iter().flatten(), self.invariants)?;
        all("setting", &mut scenario.settings.keys(), self.settings)?;
        all("payload form", &mut scenario.payload.keys(), self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_name_is_checked() {
        let known = Known { switches: &["a"], settings: &["b"], payload: &["c"], invariants: &["D"] };
        let check = |rest: &str| {
            let text = format!("model = 'm'\nnetwork = 'fifo'\n{rest}");
            known.check(&Scenario::parse(&text).unwrap()).map_err(|e| e.to_string())
        };
        let good =
            "invariants = ['D']\nswitches = { a = true }\nsettings = { b = 1 }\npayload = { c = true }";
        assert_eq!(check(good), Ok(()));
        for (rest, what) in [
            ("switches = { x = true }", "switch 'x'"),
            ("settings = { x = 1 }", "setting 'x'"),
            ("payload = { x = true }", "payload form 'x'"),
            ("invariants = ['X']", "invariant 'X'"),
        ] {
            let why = check(rest).unwrap_err();
            assert!(why.starts_with(what), "{why}");
        }
    }
}
