//! The commands on the included models, compiled here once: simulator, search and checker are generic over the model, and every program that
//! named the models would compile all of it again.

use std::path::Path;

use demi_child::WithChildren;
use demi_included::Included;
use demi_programs::WithPrograms;

use crate::report::PageArgs;
use crate::ui::Ui;
use crate::{Command, Outcome, cli, report};

/// The included models, those that run in processes of their own, and programs as they are.
pub struct IncludedModels(WithChildren<WithPrograms<Included>>);

impl Default for IncludedModels {
    fn default() -> Self {
        IncludedModels(WithChildren::new(WithPrograms::new(Included)))
    }
}

impl IncludedModels {
    /// Runs a command on them.
    ///
    /// # Errors
    /// What the command says.
    pub fn run(&self, command: Command, ui: &Ui) -> Outcome {
        command.run(&self.0, ui)
    }

    /// Writes the page of an execution or of a result.
    ///
    /// # Errors
    /// What [`report::page`] says.
    pub fn page(
        &self,
        input: &Path,
        args: &PageArgs,
        html: &Path,
        warnings: Vec<String>,
        ui: &Ui,
    ) -> Outcome {
        report::page(input, args, html, warnings, &self.0, ui)
    }

    /// Reads an execution for a page that is served.
    ///
    /// # Errors
    /// What [`demi_report::Served::open_with`] says.
    #[cfg(feature = "serve")]
    pub fn served(
        &self,
        execution: &Path,
        scenario: Option<&demi_schemas::Scenario>,
        invariants: Option<&demi_schemas::InvariantsFile>,
        warnings: &[String],
    ) -> Result<demi_report::Served, demi_report::ReportError> {
        demi_report::Served::open_with(&self.0, execution, scenario, invariants, warnings)
    }

    /// The outcome of a command, or why one of the models failed: see [`cli::ended`].
    ///
    /// # Errors
    /// That of the command, or of a model.
    pub fn ended(&self, outcome: Outcome, ui: &Ui) -> Outcome {
        cli::ended(outcome, &self.0, ui)
    }
}
