//! Invariants of a scenario that no model has: predicates over the states of actors.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario_error::ScenarioError;

/// The name of an invariant that is given as a text alone.
const UNNAMED: &str = "Invariant";

/// Predicates that are invariants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Asserted {
    /// One predicate; its name is `Invariant`.
    One(String),
    /// Several, with names.
    Several(Vec<Assertion>),
}

/// A predicate that is an invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// Its name, with which its fingerprints begin.
    pub name: String,
    /// The predicate, over one moment: fuzz, replay and minimize judge a configuration by itself.
    pub holds: String,
    /// The invariant of the model that says the same. Searches are then led by what the model knows of that one, and where the
    /// two do not agree the work ends with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

impl Default for Asserted {
    fn default() -> Asserted {
        Asserted::Several(Vec::new())
    }
}

impl Asserted {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Asserted::Several(all) if all.is_empty())
    }

    /// The predicates, each with a name.
    #[must_use]
    pub fn all(&self) -> Vec<Assertion> {
        match self {
            Asserted::One(holds) => {
                vec![Assertion { name: UNNAMED.to_owned(), holds: holds.clone(), same_as: None }]
            }
            Asserted::Several(all) => all.clone(),
        }
    }

    /// The model's invariants that some are the same as.
    pub(crate) fn same_as(&self) -> Vec<String> {
        let names: BTreeSet<String> = self.all().into_iter().filter_map(|a| a.same_as).collect();
        names.into_iter().collect()
    }

    /// Names are what fingerprints are told apart by.
    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let mut names = BTreeSet::new();
        for assertion in self.all() {
            let name = assertion.name;
            if name.is_empty() || name.contains(':') {
                let reason = format!("invariant: '{name}' cannot be a name: it is empty or has a colon");
                return Err(ScenarioError::Value(reason));
            }
            if !names.insert(name.clone()) {
                return Err(ScenarioError::Value(format!("invariant: two are called '{name}'")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const MODEL: &str = "model = \"m\"\nnetwork = \"fifo\"\n";

    #[test]
    fn a_text_or_a_list_switches_the_models_own_off() {
        let one = Scenario::parse(&format!("{MODEL}invariant = \"x > 1\"")).unwrap();
        assert_eq!(one.invariant.all()[0].name, "Invariant");
        assert_eq!(one.invariants, Some(Vec::new()));
        assert_eq!(Scenario::parse(&one.to_text()).as_ref(), Ok(&one));
        let list = "[[invariant]]\nname = \"A\"\nholds = \"x > 1\"\nsame_as = \"B\"\n";
        let several = Scenario::parse(&format!("{MODEL}{list}")).unwrap();
        assert_eq!(several.invariants, Some(vec!["B".to_owned()]));
        assert_eq!(Scenario::parse(&several.to_text()).as_ref(), Ok(&several));
        assert_eq!(Scenario::parse(MODEL).unwrap().invariants, None);
        let named = Scenario::parse(&format!("{MODEL}invariants = [\"C\"]\n{list}")).unwrap();
        assert_eq!(named.invariants, Some(vec!["C".to_owned()]));
    }

    #[test]
    fn names_must_tell_them_apart() {
        for list in
            ["[[invariant]]\nname = \"A:b\"\nholds = \"x\"\n", "[[invariant]]\nname = \"\"\nholds = \"x\"\n"]
        {
            assert!(Scenario::parse(&format!("{MODEL}{list}")).is_err(), "{list}");
        }
        let twice = "[[invariant]]\nname = \"A\"\nholds = \"x\"\n".repeat(2);
        assert!(Scenario::parse(&format!("{MODEL}{twice}")).unwrap_err().to_string().contains("'A'"));
    }
}
