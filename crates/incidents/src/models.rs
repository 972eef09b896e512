//! Which model an incident is replayed on, and what the work on it may cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::event::Opened;
use crate::id::hex_of;

/// Whether a text fits a pattern in which `*` stands for any text.
#[must_use]
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Which incidents a model takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Takes {
    /// Globs of systems.
    pub systems: Vec<String>,
    /// Globs of invariants.
    pub invariants: Vec<String>,
}

impl Default for Takes {
    fn default() -> Self {
        Takes { systems: vec!["*".to_owned()], invariants: vec!["*".to_owned()] }
    }
}

/// What the work on one incident may cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The budget of the search for the shortest schedule of a first occurrence, as for `minimize --budget`.
    pub budget: String,
    /// The same of further occurrences.
    pub further: String,
    /// Most memory of a child, such as `2GiB`.
    pub memory: String,
    /// Seconds that `build` may take.
    pub build_secs: u64,
    /// Seconds that `replay` may take.
    pub replay_secs: u64,
    /// Seconds that `minimize` may take, whatever its budget.
    pub minimize_secs: u64,
    /// Seconds that `verify` and `report` may take, each.
    pub report_secs: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            budget: "60s".to_owned(),
            further: "20s".to_owned(),
            memory: "2GiB".to_owned(),
            build_secs: 1800,
            replay_secs: 300,
            minimize_secs: 900,
            report_secs: 120,
        }
    }
}

/// `[models.NAME]`: a model, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Which incidents it takes.
    #[serde(default)]
    pub takes: Takes,
    /// The scenario file.
    pub scenario: PathBuf,
    /// A program of one's own with the model; this program where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// What the work may cost.
    #[serde(default)]
    pub limits: Limits,
}

/// `[models.*]` of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// By name, in the order of names; the first that fits wins.
    #[serde(default)]
    pub models: BTreeMap<String, ModelConfig>,
}

/// A file of models that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", .path.display())]
pub struct NoModels {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl Models {
    /// Reads a TOML file with `[models.NAME]`; other tables of it are left alone. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub fn read(path: &Path) -> Result<Self, NoModels> {
        let failed = |why: String| NoModels { path: path.to_owned(), why };
        let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let mut models: Models = toml::from_str(&text).map_err(|e| failed(e.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for model in models.models.values_mut() {
            model.scenario = folder.join(&model.scenario);
            if let Some(program) = &mut model.program {
                *program = folder.join(&*program);
            }
        }
        Ok(models)
    }

    /// The first model that takes an incident: the one that it names, or the first whose globs fit.
    #[must_use]
    pub fn of(&self, opened: &Opened) -> Option<(&str, &ModelConfig)> {
        if let Some(named) = &opened.model {
            return self.models.get_key_value(named).map(|(name, model)| (name.as_str(), model));
        }
        let fits = |patterns: &[String], text: &str| patterns.iter().any(|pattern| glob(pattern, text));
        self.models
            .iter()
            .find(|(_, model)| {
                fits(&model.takes.systems, &opened.system) && fits(&model.takes.invariants, &opened.invariant)
            })
            .map(|(name, model)| (name.as_str(), model))
    }
}

impl ModelConfig {
    /// A digest of what the model's behaviour depends on: the scenario and the program.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn digest(&self, own: &Path) -> std::io::Result<String> {
        let scenario = std::fs::read(&self.scenario)?;
        let program = std::fs::metadata(self.program.as_deref().unwrap_or(own))?;
        // The bytes of a program take long to hash, and its length and time tell a new one.
        let changed = program.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let stamp = changed.map_or(0, |at| at.as_nanos()).to_le_bytes();
        Ok(hex_of(&[&scenario[..], &program.len().to_le_bytes(), &stamp]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same by trying every way.
    fn fits(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|at| fits(rest, &text[at..])),
            Some((c, rest)) => text.split_first().is_some_and(|(first, left)| first == c && fits(rest, left)),
        }
    }

    proptest! {
        #[test]
        fn a_glob_fits_what_every_way_of_trying_says(pattern in "[ab*]{0,6}", text in "[ab]{0,6}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(glob(&pattern, &text), fits(&chars(&pattern), &chars(&text)));
        }
    }

    #[test]
    fn the_first_model_that_fits_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("models.toml");
        let text = "[models.a]\nscenario = \"a.toml\"\ntakes = { systems = [\"prod*\"] }\n\
                    [models.b]\nscenario = \"b.toml\"\nlimits = { budget = \"5s\" }\n";
        std::fs::write(&path, text).unwrap();
        let models = Models::read(&path).unwrap();
        let opened = |system: &str| {
            Opened::new(crate::id::IncidentId::of(&["x"]), crate::event::Source::Command, system)
        };
        assert_eq!(models.of(&opened("prod-1")).unwrap().0, "a");
        let (name, model) = models.of(&opened("test")).unwrap();
        assert_eq!((name, model.limits.budget.as_str()), ("b", "5s"));
        assert_eq!(model.scenario, dir.path().join("b.toml"));
        let mut named = opened("prod-1");
        named.model = Some("b".to_owned());
        assert_eq!(models.of(&named).unwrap().0, "b");
        std::fs::write(&path, "[models.a]\nscenario = \"a.toml\"\nbugdet = 3\n").unwrap();
        assert!(Models::read(&path).unwrap_err().to_string().contains("bugdet"));
    }
}
