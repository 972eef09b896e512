//! `demi-lineage report`: a page to read an execution or a minimized schedule on.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use demi_lineage::{BuildOptions, ViolationSpec};
use demi_report::{LoadOptions, Served};

use super::export::SliceArgs;
use super::{Outcome, read_scenario};
use crate::ui::Ui;

/// Arguments of `report`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["html", "serve"]))]
pub struct ReportArgs {
    /// An execution written by build, or a result written by minimize; with --serve also an event store.
    #[arg(value_name = "EXEC|OUT|STORE")]
    input: PathBuf,
    /// Write one file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Serve the page on this machine only, for executions too large for one file; ends with Ctrl-C.
    #[arg(long)]
    serve: bool,
    /// The scenario whose model tells the actors' variables; a result has its own.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// For a result: the execution it came from, to show also what was pruned and how complete the logs
    /// are. By default the schedule kept with the result.
    #[arg(long, value_name = "EXEC|SCHEDULE", conflicts_with = "serve")]
    original: Option<PathBuf>,
    #[command(flatten)]
    slice: SliceArgs,
    /// With --serve: the port; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "serve")]
    port: u16,
    /// For a store: the recorded system.
    #[arg(long, value_name = "NAME", requires = "serve")]
    system: Option<String>,
    /// For a store: the violation, as for build.
    #[arg(long, value_name = "SPEC", requires = "serve")]
    violation: Option<ViolationSpec>,
}

/// Runs `report`.
pub fn run(args: ReportArgs, ui: &Ui) -> Outcome {
    let scenario = args.scenario.as_deref().map(read_scenario).transpose()?;
    let Some(path) = &args.html else {
        return serve(&args, scenario.as_ref(), ui);
    };
    let selection = args.slice.selection(&[]);
    let options = LoadOptions { scenario, original: args.original.clone(), selection };
    let bar = ui.progress();
    bar.set_message("reading");
    let page = demi_report::load(&args.input, &options);
    bar.finish_and_clear();
    let html = demi_report::html(&page?)?;
    super::replace_file(path, |file| Ok(file.write_all(html.as_bytes())?))?;
    ui.result(&format!("wrote {} ({} KiB)", path.display(), html.len().div_ceil(1024)));
    Ok(ExitCode::SUCCESS)
}

fn serve(args: &ReportArgs, scenario: Option<&demi_schemas::Scenario>, ui: &Ui) -> Outcome {
    if args.slice.selection(&[]) != demi_lineage::export::Selection::default() {
        return Err("--serve shows all events: slices are for --html".into());
    }
    let bar = ui.progress();
    let mut built = None;
    let exec = match &args.violation {
        // Without a violation it is the order that `query` keeps, too.
        None => super::built::folder(&args.input, args.system.as_deref(), ui)?,
        Some(violation) => {
            let store = demi_ingest::Store::open(&args.input)?;
            let system = super::built::system(&store, args.system.as_deref())?;
            let files = store.event_files(&system)?;
            let folder = tempfile::Builder::new().prefix(".demi-report-").tempdir()?;
            let exec = folder.path().join("exec");
            let options = BuildOptions { system, violation: violation.clone(), ..BuildOptions::default() };
            demi_lineage::build(&files, &options, &exec, &mut |stage| bar.set_message(stage.to_owned()))?;
            built = Some(folder);
            exec
        }
    };
    bar.set_message("reading the execution");
    let served = Served::open(&exec, scenario);
    bar.finish_and_clear();
    // Everything is in memory and in a temporary file of the server's own.
    drop(built);
    let served = served?;
    let events = served.events();
    demi_report::serve(served, args.port, &mut |address| {
        ui.note(&format!("{events} events; end with Ctrl-C"));
        ui.result(&format!("http://{address}/"));
    })?;
    Ok(ExitCode::SUCCESS)
}
