//! `demi-lineage threads`: the schedules that tests with `demi-threads` leave.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_commands::ui::Ui;
use demi_threads::schedule::Schedule;

use super::{Outcome, replace_file};

/// What to do with a schedule.
#[derive(clap::Subcommand, Debug)]
pub enum ThreadsCommand {
    /// Print a schedule: the tasks side by side, and each preemption with both places in the source.
    Show(ShowArgs),
    /// Write a page that shows a schedule, a lane for each task.
    Report(ReportArgs),
    /// Print a schedule in a format of another tool.
    Export(ExportArgs),
}

/// The formats of other tools.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum Format {
    /// The string that `shuttle::replay` takes, for the test in `demi_threads::on_shuttle`.
    Shuttle,
}

/// Arguments of `threads export`.
#[derive(clap::Args, Debug)]
pub struct ExportArgs {
    /// The file of the schedule.
    file: PathBuf,
    /// The format.
    #[arg(long, value_name = "FORMAT")]
    format: Format,
}

/// Arguments of `threads show`.
#[derive(clap::Args, Debug)]
pub struct ShowArgs {
    /// The file of the schedule.
    file: PathBuf,
    /// Print the file's first line, with what goes wrong, as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `threads report`.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// The file of the schedule.
    file: PathBuf,
    /// The page to write.
    #[arg(long, value_name = "FILE")]
    html: PathBuf,
}

fn read(file: &Path) -> Result<Schedule, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Schedule::read(&text).map_err(|error| format!("{}: {error}", file.display()))?)
}

/// Runs `threads`.
pub fn run(command: &ThreadsCommand, ui: &Ui) -> Outcome {
    match command {
        ThreadsCommand::Show(args) => {
            let schedule = read(&args.file)?;
            if args.json {
                ui.json(&schedule.header)?;
            } else {
                ui.result(schedule.show().trim_end());
            }
        }
        ThreadsCommand::Report(args) => {
            let page = read(&args.file)?.page();
            replace_file(&args.html, |file| Ok(file.write_all(page.as_bytes())?))?;
            ui.result(&format!("wrote {} ({} KiB)", args.html.display(), page.len().div_ceil(1024)));
        }
        ThreadsCommand::Export(ExportArgs { file, format: Format::Shuttle }) => {
            let Some(schedule) = read(file)?.last.shuttle else {
                return Err(format!(
                    "{}: the schedule does not say what shuttle's own is; follow it with DEMI_REPLAY, which writes it again",
                    file.display()
                )
                .into());
            };
            ui.result(&schedule);
        }
    }
    Ok(ExitCode::SUCCESS)
}
