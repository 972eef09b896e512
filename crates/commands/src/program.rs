//! `demi-lineage program`: tries a program that runs as it is, and has it follow the log of a run.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_common::text::{printable, shell_words};
use demi_common::{Kind, owned};
use demi_programs::{Followed, Told, Trial, follow_log, try_program};
use demi_schemas::summary::ProgramWork;
use demi_schemas::{Scenario, Schedule};
use serde_json::json;

use crate::Outcome;
use crate::files::{read_scenario, write_folder};
use crate::status::Status;
use crate::ui::Ui;

/// Commands about programs that run as they are.
#[derive(clap::Subcommand, Debug)]
pub enum ProgramCommand {
    /// Test whether a program can be scheduled: whether it starts, comes to rest, and gives the same answers twice.
    Check(CheckArgs),
    /// Follow the log of a run outside this program, such as Maelstrom's store/latest: the first difference, or a schedule for `minimize`.
    Follow(FollowArgs),
}

/// Arguments of `program follow`.
#[derive(clap::Args, Debug)]
pub struct FollowArgs {
    /// The log: a file, a folder of them, or the folder that Maelstrom keeps of a test.
    log: PathBuf,
    /// The scenario file, which names the program's command and its workload. Names in the log replace those of its nodes and clients.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// The folder for schedule, history and the scenario with the log's names; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
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
        ProgramCommand::Follow(args) => follow(&args, ui),
    }
}

fn follow(args: &FollowArgs, ui: &Ui) -> Outcome {
    let scenario = read_scenario(&args.scenario)?;
    let inputs = [args.scenario.as_path(), args.log.as_path()];
    owned::check(&args.out, Kind::Fuzzed, &inputs)?;
    let followed = follow_log(&scenario, &args.log).map_err(|error| error.to_string())?;
    let mut files = vec![
        ("schedule.jsonl".to_owned(), followed.schedule.to_text()),
        ("scenario.toml".to_owned(), followed.scenario.to_text()),
    ];
    files.extend(history(&followed.scenario, &followed.schedule));
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    write_folder(&args.out, Kind::Fuzzed, &inputs, &files)?;
    if args.json {
        let parting = followed.parting.as_ref().map(|parting| {
            json!({
                "place": parting.place,
                "logged": parting.logged,
                "wrote": parting.wrote,
                "told": parting.told,
            })
        });
        ui.json(&json!({
            "messages": followed.messages,
            "followed": followed.followed,
            "steps": followed.schedule.steps.len(),
            "deliveries": followed.schedule.deliveries(),
            "violation": followed.violation,
            "parting": parting,
        }))?;
    } else {
        ui.result(&followed_text(&followed, &args.out.display().to_string()));
    }
    Ok(match followed.parting {
        Some(_) => Status::Diverged.into(),
        None => Status::There.into(),
    })
}

fn followed_text(followed: &Followed, out: &str) -> String {
    let mut text = format!(
        "{} of {} messages of the log followed: {} steps, {} deliveries\n",
        followed.followed,
        followed.messages,
        followed.schedule.steps.len(),
        followed.schedule.deliveries(),
    );
    if let Some(parting) = &followed.parting {
        let wrote = parting.wrote.as_deref().unwrap_or("nothing that the log has not shown");
        text.push_str(&format!(
            "the program parts from the log at {}: {}\n  the log:     {}\n  the program: {}\n",
            parting.place,
            printable(&parting.told),
            printable(&parting.logged),
            printable(wrote),
        ));
    }
    match followed.violation.is_empty() {
        true => text.push_str("what was followed breaks nothing\n"),
        false => text.push_str(&format!("violation: {}\n", printable(&followed.violation.join(", ")))),
    }
    text.push_str(&format!("wrote {out}"));
    text
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
        let lines: Vec<_> = wrong.lines().map(printable).collect();
        text.push_str(&format!("\nwrong: {}\n", lines.join("\n       ")));
    }
    if let (0, 1..) = trial.answered {
        text.push_str(
            "\nno request was answered: the program may wait for other nodes, who are not there in this trial, or may not know the requests of the \
             workload; `fuzz` says how many operations are answered where all nodes are there\n",
        );
    }
    text.push_str(if trial.wrong.is_empty() {
        "\nthe program can be scheduled: it came to rest after every step, and two runs were equal"
    } else {
        "\nthe program cannot be scheduled as it is"
    });
    text
}
