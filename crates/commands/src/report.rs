//! `demi-lineage report`: a page to read an execution or a minimized schedule on.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_replay::Registry;
use demi_report::{Input, LoadOptions, folder_of};
use demi_schemas::{InvariantsFile, Scenario};

use crate::Outcome;
use crate::export::SliceArgs;
use crate::files::{read_scenario, replace_file};
use crate::input::{Wanted, expect};
use crate::permission::{RunArgs, scenario_of};
use crate::ui::Ui;

/// What a page shows.
#[derive(clap::Args, Debug)]
pub struct PageArgs {
    /// The scenario whose model supplies the actors' variables; a result has its own.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// For a result: the execution it came from, to show also what was pruned and how complete the logs are. The default is the schedule kept with
    /// the result.
    #[arg(long, value_name = "EXEC|SCHEDULE")]
    pub original: Option<PathBuf>,
    /// A second execution, result or schedule, shown beside the first: what only one of them has, and where their logs first differ.
    #[arg(long, value_name = "EXEC|OUT|SCHEDULE", conflicts_with_all = ["original", "invariants"])]
    pub with: Option<PathBuf>,
    /// A file of invariants to check in the recorded states; the page shows the outcome of each.
    #[arg(long, value_name = "FILE")]
    pub invariants: Option<PathBuf>,
    /// Whether the program of a result's own scenario may run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Which events.
    #[command(flatten)]
    pub slice: SliceArgs,
}

impl PageArgs {
    /// The invariants, if there are any.
    ///
    /// # Errors
    /// When the file cannot be read; the error names it.
    pub fn invariants(&self) -> Result<Option<InvariantsFile>, Box<dyn Error>> {
        let Some(path) = &self.invariants else { return Ok(None) };
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Some(InvariantsFile::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?))
    }
}

/// Arguments of `report`.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// An execution written by build, a folder written by minimize, explore or fuzz, or a schedule in such a folder.
    #[arg(value_name = "EXEC|OUT|SCHEDULE")]
    input: PathBuf,
    /// The file to write, which needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
    #[command(flatten)]
    page: PageArgs,
}

/// Runs `report`.
pub fn run(args: ReportArgs, models: &impl Registry, ui: &Ui) -> Outcome {
    page(&args.input, &args.page, &args.html, Vec::new(), models, ui)
}

/// The scenario of what is shown: the one that was given, or the one that lies in a result.
pub(crate) fn own_scenario(
    input: &Path,
    given: Option<&Path>,
    run: RunArgs,
    ui: &Ui,
) -> Result<Option<Scenario>, Box<dyn Error>> {
    if let Some(path) = given {
        return Ok(Some(read_scenario(path)?));
    }
    match Input::of(input)? {
        Input::Execution(_) => Ok(None),
        Input::Result(out) => Ok(Some(scenario_of(&out, run, ui)?)),
        Input::Schedule(file) => Ok(Some(scenario_of(folder_of(&file), run, ui)?)),
    }
}

/// Writes the page. `warnings` are what else it warns of.
///
/// # Errors
/// When the input cannot be read, or the page not be written.
pub fn page(
    input: &Path,
    args: &PageArgs,
    html: &Path,
    warnings: Vec<String>,
    models: &impl Registry,
    ui: &Ui,
) -> Outcome {
    expect(input, Wanted::Shown)?;
    args.run.in_child.apply(models);
    let scenario = own_scenario(input, args.scenario.as_deref(), args.run, ui)?;
    let with = match &args.with {
        Some(with) => {
            expect(with, Wanted::Shown)?;
            Some((with.clone(), own_scenario(with, args.scenario.as_deref(), args.run, ui)?))
        }
        None => None,
    };
    let options = LoadOptions {
        scenario,
        original: args.original.clone(),
        invariants: args.invariants()?,
        selection: args.slice.selection(&[]),
        with,
        warnings,
    };
    let bar = ui.progress();
    bar.set_message("reading");
    let page = demi_report::load(models, input, &options);
    bar.finish_and_clear();
    let text = demi_report::html(&page?)?;
    replace_file(html, |file| Ok(file.write_all(text.as_bytes())?))?;
    ui.result(&format!("wrote {} ({} KiB)", html.display(), text.len().div_ceil(1024)));
    Ok(ExitCode::SUCCESS)
}
