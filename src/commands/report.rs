//! `demi-lineage report`: a page to read an execution or a minimized schedule on, written or served.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_commands::IncludedModels;
use demi_commands::files::read_scenario;
use demi_commands::report::PageArgs;
use demi_lineage::window::Window;
use demi_lineage::{BuildOptions, ViolationSpec};
use demi_schemas::summary::BackwardStamps;

use super::Outcome;
use demi_commands::ui::Ui;

/// Arguments of `report`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["html", "serve"]))]
pub struct ReportArgs {
    /// An execution written by build, a folder written by minimize, explore or fuzz, a schedule in such a folder, or an event store.
    #[arg(value_name = "EXEC|STORE|OUT|SCHEDULE")]
    input: PathBuf,
    /// Write one file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Serve the page on this machine only, for executions too large for one file; ends with Ctrl-C.
    #[arg(long, conflicts_with_all = ["original", "with"])]
    serve: bool,
    #[command(flatten)]
    page: PageArgs,
    /// With --serve: the port; 0 picks a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "serve")]
    port: u16,
    /// For a store: the recorded system.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// For a store: the violation, as for build.
    #[arg(long, value_name = "SPEC")]
    violation: Option<ViolationSpec>,
}

/// Runs `report`.
pub fn run(args: ReportArgs, models: &IncludedModels, ui: &Ui) -> Outcome {
    if args.serve && args.page.slice.selection(&[]) != demi_lineage::export::Selection::default() {
        return Err("--serve shows all events: slices are for --html".into());
    }
    let source = Source::of(&args, ui)?;
    match &args.html {
        Some(html) => models.page(&source.folder, &args.page, html, source.warnings, ui),
        None => serve(source, &args, models, ui),
    }
}

/// The folder that the page is made from.
struct Source {
    folder: PathBuf,
    /// What is wrong with the logs in a store, as their loads found it.
    warnings: Vec<String>,
    /// What is removed at the end, where the folder was made for this page.
    _made: Option<tempfile::TempDir>,
}

impl Source {
    /// The folder given; that of a store is built.
    fn of(args: &ReportArgs, ui: &Ui) -> Result<Source, Box<dyn std::error::Error>> {
        let Some(violation) = &args.violation else {
            // Without a violation it is the order that `query` keeps, too.
            let order = super::built::order(&args.input, args.system.as_deref(), ui)?;
            let backwards = order.backward_stamps()?.unwrap_or_default();
            let warnings = BackwardStamps::told(&backwards);
            return Ok(Source { folder: order.folder, warnings, _made: order.temporary });
        };
        let made = tempfile::Builder::new().prefix(".demi-report-").tempdir()?;
        let folder = made.path().join("exec");
        let options = BuildOptions { violation: violation.clone(), ..BuildOptions::default() };
        super::built::build(
            &args.input,
            args.system.as_deref(),
            options,
            &Window::default(),
            false,
            &folder,
            ui,
        )?;
        Ok(Source { folder, warnings: Vec::new(), _made: Some(made) })
    }
}

fn serve(source: Source, args: &ReportArgs, models: &IncludedModels, ui: &Ui) -> Outcome {
    let scenario = args.page.scenario.as_deref().map(read_scenario).transpose()?;
    let invariants = args.page.invariants()?;
    let bar = ui.progress();
    bar.set_message("reading the execution");
    let served = models.served(&source.folder, scenario.as_ref(), invariants.as_ref(), &source.warnings);
    bar.finish_and_clear();
    let served = served?;
    let events = served.events();
    demi_report::serve(served, args.port, &mut |address| {
        ui.note(&format!("{events} events; end with Ctrl-C"));
        ui.result(&format!("http://{address}/"));
    })?;
    // Blocks of the page are read from the execution as they are asked for.
    drop(source);
    Ok(ExitCode::SUCCESS)
}
