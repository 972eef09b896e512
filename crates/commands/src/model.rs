//! `demi-lineage model check`: tries a model in another language against the protocol.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_child::in_child::run_handlers;
use demi_child::tried::{Trial, try_model};
use demi_replay::Registry;
use demi_schemas::{ChildModel, ModelRef, Scenario};
use serde_json::json;

use crate::Outcome;
use crate::files::read_scenario;
use crate::ui::Ui;

/// Commands about models.
#[derive(clap::Subcommand, Debug)]
pub enum ModelCommand {
    /// Test a model in another language against the protocol, and explain what is wrong.
    Check(CheckArgs),
    /// Run handlers for --in-child of other commands.
    #[command(hide = true)]
    RunHandlers,
}

/// Arguments of `model check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// The scenario file, which names the model's command or socket and gives its switches and settings.
    #[arg(long, value_name = "FILE", required_unless_present = "command")]
    scenario: Option<PathBuf>,
    /// The approximate number of questions to ask.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    questions: u32,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// The model's command, in place of the scenario's.
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
}

/// Runs a command about models.
pub fn run(command: ModelCommand, models: &(impl Registry + Sync), ui: &Ui) -> Outcome {
    match command {
        ModelCommand::Check(args) => check(&args, ui),
        ModelCommand::RunHandlers => Ok(run_handlers(models).map(|()| ExitCode::SUCCESS)?),
    }
}

fn check(args: &CheckArgs, ui: &Ui) -> Outcome {
    let mut scenario = match &args.scenario {
        Some(path) => read_scenario(path)?,
        None => Scenario::parse("model = \"command\"\nnetwork = \"fifo\"\n")?,
    };
    if !args.command.is_empty() {
        let child = ChildModel { command: args.command.clone(), ..ChildModel::default() };
        scenario.model = ModelRef::Child(child);
    }
    let Some(spec) = scenario.model.child().cloned() else {
        let model = scenario.model.as_str();
        return Err(format!(
            "the scenario's model is '{model}', no command and no socket; name a command after --"
        )
        .into());
    };
    if spec.nodes.is_some() {
        return Err("the scenario runs a program as it is, which speaks no model protocol: try it with 'program check'".into());
    }
    let trial = try_model(&spec, &scenario, args.questions as usize)?;
    if args.json {
        let findings: Vec<_> = trial
            .findings
            .iter()
            .map(|f| json!({ "wrong": f.wrong, "what": f.what, "request": f.request }))
            .collect();
        ui.json(&json!({
            "ok": !trial.wrong(),
            "actors": trial.actors,
            "types": trial.types,
            "questions": trial.questions,
            "findings": findings,
        }))?;
    } else {
        ui.result(&text(&trial));
    }
    Ok(ExitCode::from(u8::from(trial.wrong())))
}

fn text(trial: &Trial) -> String {
    let mut text = format!(
        "{} actors: {}\n{} questions; types of messages: {}\n",
        trial.actors.len(),
        trial.actors.join(", "),
        trial.questions,
        if trial.types.is_empty() { "none".to_owned() } else { trial.types.join(", ") },
    );
    for finding in &trial.findings {
        let kind = if finding.wrong { "wrong" } else { "note" };
        text.push_str(&format!("\n{kind}: {}\n", finding.what));
        if !finding.request.is_empty() {
            text.push_str(&format!("  request: {}\n", finding.request));
        }
    }
    text.push_str(match (trial.breaks_the_protocol(), trial.wrong()) {
        (true, _) if trial.actors.is_empty() => "\nthe model did not come to answer",
        (true, _) => "\nthe model does not keep to docs/model-protocol.md",
        (false, true) => {
            "\nthe model keeps to the protocol, but a handler raises: wherever that happens it is a violation"
        }
        (false, false) => {
            "\nthe model keeps to the protocol: it gave the same answers twice, in another order and after a restart"
        }
    });
    text
}
