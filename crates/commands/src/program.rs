//! `demi-lineage program check`: tries a program that runs as it is.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_common::text::{printable, shell_words};
use demi_programs::{Told, Trial, try_program};
use demi_schemas::summary::ProgramWork;
use demi_schemas::{Scenario, Schedule};
use serde_json::json;

use crate::Outcome;
use crate::files::read_scenario;
use crate::ui::Ui;

/// Commands about programs that run as they are.
#[derive(clap::Subcommand, Debug)]
pub enum ProgramCommand {
    /// Test whether a program can be scheduled: whether it starts, comes to rest, and gives the same answers twice.
    Check(CheckArgs),
}

/// Arguments of `program check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// The scenario file, which names the program's command, its nodes and its workload.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// The number of requests to each node.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    requests: u32,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs a command about programs.
///
/// # Errors
/// When the scenario names no program that runs as it is.
pub fn run(command: ProgramCommand, ui: &Ui) -> Outcome {
    match command {
        ProgramCommand::Check(args) => check(&args, ui),
    }
}

fn check(args: &CheckArgs, ui: &Ui) -> Outcome {
    let scenario = read_scenario(&args.scenario)?;
    let Some(spec) = scenario.model.child().filter(|spec| spec.nodes.is_some()) else {
        return Err(format!(
            "{}: the scenario's model is no program that runs as it is: that is a table with 'command' and 'nodes'",
            args.scenario.display()
        )
        .into());
    };
    let trial = try_program(spec, &scenario, args.requests as usize)
        .map_err(|what| format!("{}: {what}", args.scenario.display()))?;
    if args.json {
        ui.json(&json!({
            "ok": trial.wrong.is_empty(),
            "command": trial.command,
            "nodes": trial.nodes,
            "threads": trial.threads,
            "steps": trial.steps,
            "answered": trial.answered.0,
            "requests": trial.answered.1,
            "start_ms": trial.start.as_secs_f64() * 1e3,
            "delivery_ms": trial.median.as_secs_f64() * 1e3,
            "wrong": trial.wrong,
        }))?;
    } else {
        ui.result(&text(&trial));
    }
    Ok(ExitCode::from(u8::from(!trial.wrong.is_empty())))
}

/// The history of the clients of a schedule, where the scenario's model is a program that runs as it is.
pub(crate) fn history(scenario: &Scenario, schedule: &Schedule) -> Option<(String, String)> {
    scenario.model.child().filter(|spec| spec.nodes.is_some())?;
    let told = Told::of(scenario, schedule).ok()?;
    Some(("history.jsonl".to_owned(), told.history()))
}

/// What processes did, in a line.
pub(crate) fn told(done: &ProgramWork) -> String {
    format!(
        "{} steps of nodes, {:.1} % of them from memory; processes made {}: {} started (one for {} steps), {} copied",
        done.steps,
        done.from_memory * 100.0,
        done.executed,
        done.starts,
        done.steps / done.starts.max(1),
        done.copies
    )
}

fn text(trial: &Trial) -> String {
    let mut text = format!(
        "program:   {}\nnodes:     {}, of {} threads at rest\nsteps:     {} in two runs of each node; {} of {} requests answered\nspeed:     \
         {:.2} ms a delivery, {:.0} ms a start (medians)\n",
        shell_words(&trial.command),
        trial.nodes,
        trial.threads,
        trial.steps,
        trial.answered.0,
        trial.answered.1,
        trial.median.as_secs_f64() * 1e3,
        trial.start.as_secs_f64() * 1e3,
    );
    for wrong in &trial.wrong {
        text.push_str(&format!("\nwrong: {}\n", printable(wrong)));
    }
    text.push_str(if trial.wrong.is_empty() {
        "\nthe program can be scheduled: it came to rest after every step, and two runs were equal"
    } else {
        "\nthe program cannot be scheduled as it is"
    });
    text
}
