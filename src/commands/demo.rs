//! `demi-lineage demo`: an included incident from raw logs to the minimized trace.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_common::{Kind, Replacement};

use super::{Outcome, write_files};
use demi_commands::ui::Ui;

/// Per-actor logs of a random run of akka-raft that elected two leaders in one term, made by `fuzz`.
const LOGS: &[u8] = include_bytes!("../../examples/demo/logs.jsonl.zst");
const SCENARIO: &str = include_str!("../../examples/demo/scenario.toml");

/// Twice what the proof and all that comes after it take.
const BUDGET: &str = "40000000states";

/// Arguments of `demo`.
#[derive(clap::Args, Debug)]
pub struct DemoArgs {
    /// The folder to work in; an older demo there is replaced.
    #[arg(long, default_value = "demi-demo", value_name = "DIR")]
    out: PathBuf,
}

/// Runs `demo`: each step is the command that a user would type.
pub fn run(args: DemoArgs, ui: &Ui) -> Outcome {
    let note = "A made-up incident: logs of a Raft cluster in which two members led the same term.\n";
    let new = Replacement::begin(&args.out, Kind::Demo, &[])?;
    write_files(new.path(), &[("scenario.toml", SCENARIO.into()), ("README", note.into())])?;
    new.finish()?;
    let at = |name: &str| args.out.join(name).display().to_string();
    let (logs, scenario) = (at("logs.jsonl.zst"), at("scenario.toml"));
    let (exec, min, page) = (at("exec"), at("min"), at("report.html"));
    std::fs::write(&logs, LOGS).map_err(|e| format!("{logs}: {e}"))?;
    let lines = [
        vec!["build", &logs, "--system", "demo", "--out", &exec],
        vec!["replay", &exec, "--scenario", &scenario],
        // Work is counted and not timed, so that the demo ends in the same way on every machine.
        vec!["minimize", &exec, "--scenario", &scenario, "--budget", BUDGET, "--out", &min],
        vec!["report", &min, "--original", &exec, "--html", &page],
    ];
    for line in lines {
        ui.result(&format!("\n$ demi-lineage {}", line.join(" ")));
        let code = crate::run_line(&line, ui)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    ui.result(&format!(
        "\nOpen {page} in a browser to step through it; {} tells it in words.\nNext: demi-lineage replay {} --scenario {scenario} --strict",
        at("min/trace.md"),
        at("min/schedule.jsonl"),
    ));
    Ok(ExitCode::SUCCESS)
}
