//! How to infer.

use glob::Pattern;

/// Options of inference.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Least bits of what is reported.
    pub min_bits: f64,
    /// The share of the executions that is held out to refute what the others suggest.
    pub holdout: f64,
    /// What is looked at.
    pub groups: Groups,
    /// Classes of actors by their names; the others are found.
    pub classes: Vec<Pattern>,
    /// Which variables take part.
    pub variables: Variables,
}

/// The variables that take part: patterns of their names, with dots before what is inside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables {
    /// Those that do; all where there is none.
    pub only: Vec<Pattern>,
    /// Those that do not.
    pub without: Vec<Pattern>,
}

impl Variables {
    /// Whether a variable takes part. A name means what is inside it too.
    pub(crate) fn take(&self, path: &[String]) -> bool {
        let is_one = |patterns: &[Pattern]| {
            let mut beginnings = (1..=path.len()).map(|n| path[..n].join("."));
            beginnings.any(|name| patterns.iter().any(|pattern| pattern.matches(&name)))
        };
        (self.only.is_empty() || is_one(&self.only)) && !is_one(&self.without)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            min_bits: 6.64,
            holdout: 0.3,
            groups: Groups::default(),
            classes: Vec::new(),
            variables: Variables::default(),
        }
    }
}

/// The groups of rows for which invariants are inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Groups {
    /// The states of all actors at a moment.
    pub all: bool,
    /// The states on both sides of a message.
    pub messages: bool,
    /// The states along a causal chain of messages.
    pub chains: bool,
    /// All states ever told.
    pub ever: bool,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { all: true, messages: true, chains: true, ever: true }
    }
}

impl Groups {
    /// Reads their names, with commas between them.
    ///
    /// # Errors
    /// A name that is none.
    pub fn parse(text: &str) -> Result<Groups, String> {
        let mut groups = Groups { all: false, messages: false, chains: false, ever: false };
        for name in text.split(',').map(str::trim) {
            match name {
                "all" => groups.all = true,
                "messages" => groups.messages = true,
                "chains" => groups.chains = true,
                "ever" => groups.ever = true,
                other => {
                    return Err(format!(
                        "there is no group '{other}'; there are all, messages, chains and ever"
                    ));
                }
            }
        }
        Ok(groups)
    }
}
