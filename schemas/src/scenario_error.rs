//! Why a scenario is refused.

/// An error of reading a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, a wrong type, a missing or unknown key.
    #[error("{0}")]
    Toml(String),
    /// A name that the model does not know.
    #[error("{what} '{name}' is not known to model '{model}'{}", did_you_mean(.nearest.as_deref()))]
    UnknownName {
        /// What kind of name.
        what: &'static str,
        /// The name.
        name: String,
        /// The model.
        model: String,
        /// The nearest name that is known.
        nearest: Option<String>,
    },
    /// A value out of range.
    #[error("{0}")]
    Value(String),
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map(|n| format!("; did you mean '{n}'?")).unwrap_or_default()
}
