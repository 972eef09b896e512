//! `--tolerate`: models in processes of their own that are not quite deterministic.

use demi_replay::Registry;
use demi_schemas::Scenario;

use crate::memory::Amount;

/// Whether stray answers are tolerated.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Tolerance {
    /// Continue with a model in a process of its own that answers the same question in two ways: the answer given in two of three tries counts, else
    /// the first. The number of such cases is reported. By default the command ends with status 3.
    #[arg(long)]
    tolerate: bool,
    /// Do not count a handler that panics or raises an exception as a violation: such a step is impossible, and a run ends there. The same as
    /// no_crash = true in the scenario.
    #[arg(long)]
    no_crash: bool,
    #[command(flatten)]
    in_child: InChild,
}

/// Whether handlers run in a process of their own first.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct InChild {
    /// Run the handlers of a Rust model in a process of their own first, with this much memory, so that a stack overflow, an abort or runaway memory
    /// counts as a crash and does not end this program [default: 1GiB].
    #[arg(long, value_name = "MEMORY", num_args = 0..=1, require_equals = true, default_missing_value = "1GiB", hide_default_value = true)]
    in_child: Option<Amount>,
}

impl InChild {
    /// Tells the models.
    pub fn apply(self, models: &impl Registry) {
        if let Some(Amount(bytes)) = self.in_child {
            models.in_child(bytes);
        }
    }
}

impl Tolerance {
    /// Writes into the scenario what it does not say itself.
    pub fn ask(self, scenario: &mut Scenario) {
        scenario.no_crash |= self.no_crash;
    }

    /// Tells the models.
    pub fn apply(self, models: &impl Registry) {
        if self.tolerate {
            models.tolerate();
        }
        self.in_child.apply(models);
    }
}

/// What is to be said of a model that did not always answer alike, if it did not.
pub fn strays(models: &impl Registry) -> Option<String> {
    let (strays, twice) = models.strays();
    (strays > 0).then(|| {
        format!(
            "Coverage is incomplete: of {twice} questions that were asked twice, the model answered {strays} in two ways."
        )
    })
}
