//! The command line of a program with models of its own.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use demi_child::WithChildren;
use demi_programs::WithPrograms;
use demi_replay::Registry;

use crate::out::{is_closed, nobody_reads};
use crate::tolerance::strays;
use crate::ui::{Ui, UiArgs};
use crate::{
    Outcome, check_history, examples, explore, export, fuzz, minimize, model, program, replaying, report,
    status, verify,
};

/// Replays, fuzzes and minimizes schedules of this program's models.
#[derive(Parser)]
#[command(version, after_help = status::TABLE)]
struct Cli {
    #[command(flatten)]
    ui: UiArgs,
    #[command(subcommand)]
    command: Program,
}

#[derive(Subcommand)]
enum Program {
    #[command(flatten)]
    OnModel(Command),
    /// Make a page to read an execution or a minimized schedule on.
    Report(report::ReportArgs),
}

/// The commands that need a model, in every program.
#[derive(Subcommand)]
pub enum Command {
    /// Replay a schedule or a recorded execution on the model.
    Replay(replaying::ReplayArgs),
    /// Make random runs until an invariant breaks, and write the logs and the schedule of that run.
    Fuzz(fuzz::FuzzArgs),
    /// Explore every execution within a bound of deviations from a default order, as a guarantee within that bound.
    Explore(explore::ExploreArgs),
    /// Find the shortest schedule that still breaks the invariant, and prove a lower bound.
    Minimize(minimize::MinimizeArgs),
    /// Check the certificate of a minimized schedule from scratch.
    Verify(verify::VerifyArgs),
    /// Write an execution, a slice of it, or a minimized schedule for other tools.
    Export(export::ExportArgs),
    /// Test models in other languages.
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Test programs that run as they are.
    #[command(subcommand)]
    Program(program::ProgramCommand),
    /// Check a history of operations, by the checkers alone: one of this program, or of Jepsen.
    CheckHistory(check_history::CheckHistoryArgs),
}

impl Command {
    /// Runs the command on these models.
    ///
    /// # Errors
    /// What the command says.
    pub fn run(self, models: &(impl Registry + Sync), ui: &Ui) -> Outcome {
        match self {
            Command::Replay(args) => replaying::run(args, models, ui),
            Command::Fuzz(args) => fuzz::run(args, models, ui),
            Command::Explore(args) => explore::run(&args, models, ui),
            Command::Minimize(args) => minimize::run(args, models, ui),
            Command::Verify(args) => verify::run(args, models, ui),
            Command::Export(args) => export::run(args, models, ui),
            Command::Model(command) => model::run(command, models, ui),
            Command::Program(command) => program::run(command, ui),
            Command::CheckHistory(args) => check_history::run(&args, ui),
        }
    }
}

/// The outcome of a command on models of which some may run in processes of their own: where one of those failed, that
/// is the error, whatever came of it.
pub fn ended<R: Registry>(outcome: Outcome, models: &WithChildren<R>, ui: &Ui) -> Outcome {
    if models.requests() > 0 {
        ui.note(&format!("{} requests to the model's process", models.requests()));
    }
    if let Some(done) = models.programs().filter(|done| done.steps > 0) {
        ui.note(&program::told(&done));
    }
    if let Some(strays) = strays(models) {
        ui.note(&strays);
    }
    if models.unvetted() > 0 {
        ui.note(&format!(
            "{} calls of handlers ran without --in-child: nobody knows how their states came about",
            models.unvetted()
        ));
    }
    match models.fault() {
        Some(text) if models.differs() => {
            Err(status::Ended { status: status::Status::Diverged, text }.into())
        }
        Some(why) => Err(why.into()),
        None => match (outcome, ui.unwritten()) {
            (Ok(_), Some(error)) => Err(format!("standard output cannot be written: {error}").into()),
            (outcome, _) => outcome,
        },
    }
}

/// Reads the command line; where it asks for help, or cannot be understood, prints that and gives the exit status.
///
/// # Errors
/// The exit status with which the program ends.
pub fn parsed<C: Parser>() -> Result<C, ExitCode> {
    let program = examples::explained(C::command());
    let words = placed(std::env::args_os().collect(), &program);
    let read = program.try_get_matches_from(words).and_then(|matches| C::from_arg_matches(&matches));
    read.map_err(|error| match error.print() {
        Err(written) if !is_closed(&written) => status::Status::Failed.into(),
        _ => u8::try_from(error.exit_code()).unwrap_or(2).into(),
    })
}

/// Options that may stand anywhere before the command that knows them: of which store and system one speaks comes to mind first.
const ANYWHERE: [&str; 2] = ["store", "system"];

/// A command line in which each such option stands behind the first command that knows it.
fn placed(words: Vec<OsString>, program: &clap::Command) -> Vec<OsString> {
    let mut words = words.into_iter();
    let mut placed: Vec<OsString> = words.next().into_iter().collect();
    // The name of each, and its words.
    let mut carried: Vec<(String, Vec<OsString>)> = Vec::new();
    let mut command = program;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            placed.extend(carried.drain(..).flat_map(|one| one.1));
            placed.push(word);
            placed.extend(words);
            return placed;
        }
        if let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) {
            let (name, valued) = match option.split_once('=') {
                Some((name, _)) => (name, true),
                None => (option, false),
            };
            let is_named = |arg: &&clap::Arg| match name.strip_prefix('-') {
                Some(long) => arg.get_long() == Some(long),
                None => name.chars().eq(arg.get_short()),
            };
            let known = command.get_arguments().find(is_named);
            let name = name.trim_start_matches('-');
            if known.is_none() && command.has_subcommands() && ANYWHERE.contains(&name) {
                let value = if valued { None } else { words.next() };
                carried.push((name.to_owned(), std::iter::once(word).chain(value).collect()));
                continue;
            }
            let takes = known.or_else(|| program.get_arguments().find(is_named));
            placed.push(word);
            if !valued && takes.is_some_and(|arg| arg.get_action().takes_values()) {
                placed.extend(words.next());
            }
            continue;
        }
        placed.push(word);
        if let Some(next) = command.find_subcommand(&text) {
            command = next;
            let knows = |name: &str| next.get_arguments().any(|arg| arg.get_long() == Some(name));
            let (here, further) =
                carried.into_iter().partition(|(name, _)| knows(name) || !next.has_subcommands());
            carried = further;
            let here: Vec<(String, Vec<OsString>)> = here;
            placed.extend(here.into_iter().flat_map(|one| one.1));
        }
    }
    placed.extend(carried.into_iter().flat_map(|one| one.1));
    placed
}

/// The whole program: reads the command line, runs the command on these models, and ends the process with its exit
/// status.
pub fn main(models: impl Registry + Sync) -> ! {
    let code = match parsed::<Cli>() {
        Err(code) => code,
        Ok(cli) => {
            let ui = Ui::new(&cli.ui);
            let models = WithChildren::new(WithPrograms::new(models));
            let outcome = match cli.command {
                Program::OnModel(command) => command.run(&models, &ui),
                Program::Report(args) => report::run(args, &models, &ui),
            };
            let outcome = ended(outcome, &models, &ui);
            // Their processes and folders go with them.
            drop(models);
            outcome.unwrap_or_else(|error| {
                if nobody_reads() {
                    return ExitCode::SUCCESS;
                }
                ui.error(error.as_ref());
                status::of(error.as_ref()).into()
            })
        }
    };
    // An `ExitCode` does not tell its number, but it can be compared.
    let number = (0..=u8::MAX).find(|&number| ExitCode::from(number) == code);
    std::process::exit(number.map_or(2, i32::from))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    fn program() -> Command {
        let option = |name: &'static str| Arg::new(name).long(name).num_args(1);
        Command::new("p")
            .arg(option("color").global(true))
            .subcommand(
                Command::new("ingest")
                    .subcommand(
                        Command::new("load").arg(option("store")).arg(option("system")).arg(Arg::new("log")),
                    )
                    .subcommand(Command::new("parse").arg(Arg::new("log"))),
            )
            .subcommand(
                Command::new("query")
                    .arg(Arg::new("target"))
                    .arg(option("system").global(true))
                    .arg(option("sql").short('s'))
                    .subcommand(Command::new("past").arg(Arg::new("event"))),
            )
    }

    #[test]
    fn store_and_system_may_stand_before_the_command_that_knows_them() {
        let to = |words: &str| {
            let words = words.split(' ').map(OsString::from).collect();
            let placed = placed(words, &program());
            placed.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        for (typed, expected) in [
            ("p ingest --store S load x", "p ingest load --store S x"),
            ("p --store S ingest --system=a load x", "p ingest load --store S --system=a x"),
            ("p --color load --store S ingest load x", "p --color load ingest load --store S x"),
            ("p ingest load x --store S", "p ingest load x --store S"),
            ("p --system a query t past e", "p query --system a t past e"),
            ("p query t past e --system a", "p query t past e --system a"),
            ("p query --system past t past e", "p query --system past t past e"),
            ("p query -s past t past e", "p query -s past t past e"),
            // Where no command knows it, it stays, and is refused.
            ("p ingest --store S parse x", "p ingest parse --store S x"),
            ("p --store S query t past e", "p query t past --store S e"),
            ("p ingest --store", "p ingest --store"),
            ("p ingest --store S -- load", "p ingest --store S -- load"),
            ("p ingest load -- --store S", "p ingest load -- --store S"),
        ] {
            assert_eq!(to(typed), expected, "{typed}");
        }
    }
}
