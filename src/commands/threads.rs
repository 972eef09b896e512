//! `demi-lineage threads`: the schedules that tests with `demi-threads` leave.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_commands::status::{Ended, Status};
use demi_commands::ui::Ui;
use demi_threads::schedule::Schedule;
use demi_threads::summary::{Summary, Wrong};

use super::{Outcome, replace_file};

/// What to do with a schedule.
#[derive(clap::Subcommand, Debug)]
pub enum ThreadsCommand {
    /// Print a schedule: the tasks side by side, and each preemption with both places in the source. Of a folder, print what its tests came to,
    /// and end as explore does.
    Show(ShowArgs),
    /// Check what a folder of tests claims, as far as that can be done without the program.
    Verify(VerifyArgs),
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
    /// The file of a schedule or of a test's summary, or the folder of several (`DEMI_OUT=FOLDER cargo test`).
    file: PathBuf,
    /// Print the first line of the schedule, with what goes wrong, or the summaries, as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `threads verify`.
#[derive(clap::Args, Debug)]
pub struct VerifyArgs {
    /// A folder that tests wrote (`DEMI_OUT=FOLDER cargo test`).
    folder: PathBuf,
    /// Print the result as JSON.
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
        ThreadsCommand::Verify(args) => return verify(args, ui),
        ThreadsCommand::Show(args) if args.file.is_dir() => {
            return summaries(&Summary::read_all(&args.file)?, args.json, ui);
        }
        ThreadsCommand::Show(args) if args.file.extension().is_some_and(|ending| ending == "json") => {
            return summaries(&[Summary::read(&args.file)?], args.json, ui);
        }
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

/// Prints what tests came to, and ends as the worst of them.
fn summaries(all: &[Summary], json: bool, ui: &Ui) -> Outcome {
    if json {
        ui.json(&all)?;
    } else {
        let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
        ui.result(&texts.join("\n"));
    }
    // A failure says more than a test that cannot be checked, and that more than an end before the bound.
    let all: Vec<u8> = all.iter().map(Summary::status).collect();
    let worst = [1, 2, 3, 4].into_iter().find(|status| all.contains(status));
    Ok(worst.unwrap_or(0).into())
}

/// Checks what a folder of tests claims.
fn verify(args: &VerifyArgs, ui: &Ui) -> Outcome {
    let mut lines = Vec::new();
    for summary in Summary::read_all(&args.folder)? {
        let checked = summary.verify(&args.folder).map_err(|wrong| {
            let status = match wrong {
                Wrong::False(_) => Status::NotThere,
                Wrong::File { .. } | Wrong::Schedule { .. } => Status::Failed,
            };
            Ended { status, text: wrong.to_string() }
        })?;
        lines.extend(checked);
    }
    lines.push(format!(
        "not checked: that there are no other failures, which takes the program: DEMI_VERIFY={} cargo test",
        args.folder.display()
    ));
    if args.json {
        ui.json(&serde_json::json!({"holds": true, "checked": lines}))?;
    } else {
        ui.result(&format!("what can be checked holds\n  {}", lines.join("\n  ")));
    }
    Ok(ExitCode::SUCCESS)
}
