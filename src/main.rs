//! `demi-lineage`: from production logs to the shortest execution that still breaks the invariant.
//!
//! This binary reads arguments, shows progress and prints results; every decision is made in the libraries.

mod commands;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use demi_commands::{IncludedModels, new_model, parsed, status, ui};

/// Each step of a search makes several short-lived copies: a third of its time goes into the allocator of the C library, and half as much into
/// this one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// From per-actor production logs to the shortest execution that still breaks the invariant.
#[derive(Parser)]
#[command(
    name = "demi-lineage",
    version,
    propagate_version = true,
    after_help = status::TABLE
)]
struct Cli {
    #[command(flatten)]
    ui: ui::UiArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Put logs into the event store.
    #[command(subcommand)]
    Ingest(commands::ingest::IngestCommand),
    /// Compute what happened before what, and keep what led to the violation.
    Build(commands::build::BuildArgs),
    /// Keep the tables in which engines of relational plans find causal pasts.
    #[command(subcommand)]
    Lineage(commands::lineage::LineageCommand),
    /// Answer questions about the order: what happened before what, what was in flight, how one event led
    /// to another.
    Query(commands::query::QueryArgs),
    /// Find likely invariants: conditions that hold in all recorded states.
    Infer(commands::infer::InferArgs),
    /// Check the invariants of a file in executions, stores and logs.
    Check(commands::check::CheckArgs),
    #[command(flatten)]
    OnModel(demi_commands::Command),
    /// Create a project for a model of your own, in Rust, Python or JavaScript.
    NewModel(new_model::NewModelArgs),
    /// Make a page that shows an execution or a minimized schedule, or serve it.
    Report(commands::report::ReportArgs),
    /// Read the schedules that tests of threads leave: `cargo test` with the crate `demi-threads` writes them.
    #[command(subcommand)]
    Threads(commands::threads::ThreadsCommand),
    /// Keep violations as incidents: work on them, find which are one bug, and read their pages.
    #[command(subcommand)]
    Incident(commands::incident::IncidentCommand),
    /// Take an included incident from raw logs to the minimized trace.
    Demo(commands::demo::DemoArgs),
    /// Print a script that completes command lines in a shell.
    Completions(commands::manual::CompletionsArgs),
    /// Write the manual pages, one a command.
    Man(commands::manual::ManArgs),
}

fn main() -> ExitCode {
    demi_incidents::child::become_child();
    let cli = match parsed::<Cli>() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let ui = ui::Ui::new(&cli.ui);
    let models = IncludedModels::default();
    let outcome = dispatch(cli.command, &models, &ui);
    match models.ended(outcome, &ui) {
        Ok(code) => code,
        Err(_) if demi_commands::out::nobody_reads() => ExitCode::SUCCESS,
        Err(error) => {
            ui.error(error.as_ref());
            status::of(error.as_ref()).into()
        }
    }
}

fn dispatch(command: Command, models: &IncludedModels, ui: &ui::Ui) -> commands::Outcome {
    match command {
        Command::Ingest(command) => commands::ingest::run(command, ui),
        Command::Build(args) => commands::build::run(args, ui),
        Command::Lineage(command) => commands::lineage::run(&command, ui),
        Command::Query(args) => commands::query::run(args, ui),
        Command::Infer(args) => commands::infer::run(&args, ui),
        Command::Check(args) => commands::check::run(&args, ui),
        Command::OnModel(command) => models.run(command, ui),
        Command::NewModel(args) => new_model::run(&args, ui),
        Command::Report(args) => commands::report::run(args, models, ui),
        Command::Threads(command) => commands::threads::run(&command, ui),
        Command::Incident(command) => commands::incident::run(command, ui),
        Command::Demo(args) => commands::demo::run(args, ui),
        Command::Completions(args) => commands::manual::completions(&args, Cli::command()),
        Command::Man(args) => commands::manual::man(&args, Cli::command(), ui),
    }
}

/// Runs a command line given as words, as a user would type it.
fn run_line(words: &[&str], ui: &ui::Ui) -> commands::Outcome {
    let cli = Cli::try_parse_from(std::iter::once("demi-lineage").chain(words.iter().copied()))?;
    dispatch(cli.command, &IncludedModels::default(), ui)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use demi_commands::examples;

    use super::*;

    /// By its words each command that has none within it.
    fn commands(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name()).trim().to_owned();
            let within = sub.has_subcommands();
            commands(sub, &path, found);
            if !within {
                found.push(path);
            }
        }
    }

    /// The words of a line as a shell reads them.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (c, quote) {
                (c, Some(q)) if c == q => quote = None,
                ('\'' | '"', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (' ', None) => words.extend(word.take()),
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn every_command_has_examples_that_are_understood() {
        let mut all = Vec::new();
        commands(&Cli::command(), "", &mut all);
        assert!(all.len() > 30, "{all:?}");
        for path in &all {
            let examples = examples::of(path);
            assert!(!examples.is_empty(), "{path} has no example");
            for (line, _) in examples {
                let line = line.split(" > ").next().unwrap_or(line);
                let read = Cli::try_parse_from(std::iter::once("demi-lineage".to_owned()).chain(words(line)));
                assert!(read.is_ok(), "{line}: {}", read.err().map(|e| e.to_string()).unwrap_or_default());
                let named: BTreeSet<&str> = path.split(' ').collect();
                let used = words(line);
                assert!(
                    named.iter().all(|word| used.iter().any(|w| w == word)),
                    "{line} is no example of {path}"
                );
            }
        }
    }

    #[test]
    fn every_command_stands_in_a_group_of_the_help() {
        let mut program = examples::explained(Cli::command());
        let help = program.render_help().to_string();
        for command in Cli::command().get_subcommands() {
            let line = help.lines().filter(|line| line.starts_with(&format!("  {} ", command.get_name())));
            assert_eq!(line.count(), 1, "{}: {help}", command.get_name());
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}
