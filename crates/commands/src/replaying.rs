//! `demi-lineage replay`: replay a schedule on the model and say whether it conforms and whether it violates.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use demi_replay::replay::{ReplayOptions, replay, replay_kept};
use demi_replay::script::ScriptError;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario, Schedule};

use crate::Outcome;
use crate::files::{read_scenario, read_schedule};
use crate::on_model::with_scenario;
use crate::states;
use crate::status::{Ended, Expect, Status};
use crate::stepping::{Stepping, SteppingError};
use crate::tolerance::Tolerance;
use crate::ui::Ui;

/// Arguments of `replay`.
#[derive(clap::Args, Debug)]
pub struct ReplayArgs {
    /// An execution written by build, or a schedule file. An execution is replayed in full and compared with the log.
    #[arg(value_name = "EXEC|SCHEDULE")]
    input: PathBuf,
    /// The scenario file: model, switches, network rule, invariants.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    network: Option<NetworkRule>,
    /// Stop at the first step that cannot be followed, instead of skipping it.
    #[arg(long)]
    strict: bool,
    /// Replay only the causal past of the violation, and the steps that the model needs besides: logs do not record why threads and schedulers send.
    #[arg(long)]
    kept: bool,
    /// Replay step by step, forwards and backwards, as commanded on standard input: n or an empty line for the next one, p for the previous one, a
    /// number to go there, s for the states, l for what is pending, q to end. With --json one object a line.
    #[arg(long, conflicts_with_all = ["kept", "expect", "no_self_check"])]
    step: bool,
    /// Write the logs of the replayed execution to a folder, with a state record at the end of each handler that changed the state, for infer and
    /// check. Every step must be possible.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kept", "step"])]
    state: Option<PathBuf>,
    /// Skip the second run, which checks that the model is deterministic.
    #[arg(long)]
    no_self_check: bool,
    /// The outcome that counts as success in the exit status.
    #[arg(long, value_enum, default_value_t, value_name = "OUTCOME")]
    expect: Expect,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tolerance: Tolerance,
}

/// Runs `replay`.
pub fn run(args: ReplayArgs, models: &impl Registry, ui: &Ui) -> Outcome {
    args.tolerance.apply(models);
    let mut scenario = read_scenario(&args.scenario)?;
    args.tolerance.ask(&mut scenario);
    let schedule = read_schedule(&args.input, false)?;
    let kept = if args.kept { Some(read_schedule(&args.input, true)?) } else { None };
    let options = ReplayOptions {
        rule: args.network.unwrap_or(scenario.network),
        strict: args.strict,
        interval: scenario.invariant_check_interval.unwrap_or(1),
    };
    if args.step {
        let (input, output) = (&mut std::io::stdin().lock(), &mut std::io::stdout().lock());
        let task = Stepping { schedule: &schedule, options, input, output, json: args.json };
        return match with_scenario(models, &args.scenario, &scenario, task)? {
            // Who has seen enough closes the pipe.
            Err(SteppingError::Io(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            done => done.map(|()| ExitCode::SUCCESS).map_err(Into::into),
        };
    }
    if let Some(out) = &args.state {
        let scenario = Scenario { network: options.rule, ..scenario };
        let told = states::write((&args.scenario, &scenario), (&args.input, &schedule), out, models)?;
        ui.result(&told);
        return Ok(ExitCode::SUCCESS);
    }
    let task = Task { schedule: &schedule, kept: kept.as_ref(), options, self_check: !args.no_self_check };
    let summary = with_scenario(models, &args.scenario, &scenario, task)??;
    if summary.deterministic == Some(false) {
        let text =
            "two runs of the same schedule gave different digests: the model is not deterministic".to_owned();
        return Err(Ended { status: Status::Diverged, text }.into());
    }
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&text(&summary, &args.input));
    }
    Ok(args.expect.status(summary.verdict.exit_code()))
}

struct Task<'a> {
    schedule: &'a Schedule,
    /// The part of it to replay, if not all.
    kept: Option<&'a Schedule>,
    options: ReplayOptions,
    self_check: bool,
}

impl Visitor for Task<'_> {
    type Output = Result<ReplaySummary, ScriptError>;

    fn visit<M: Model>(self, simulator: Simulator<M>) -> Self::Output {
        let once = || match self.kept {
            Some(kept) => replay_kept(&mut simulator.clone(), self.schedule, kept, &self.options),
            None => replay(&mut simulator.clone(), self.schedule, &self.options),
        };
        let began = Instant::now();
        let mut summary = once()?;
        summary.seconds = began.elapsed().as_secs_f64();
        if self.self_check {
            let again = once()?;
            summary.deterministic = Some(again.digest == summary.digest);
        }
        Ok(summary)
    }
}

fn text(summary: &ReplaySummary, input: &Path) -> String {
    let mut text = match summary.verdict {
        Verdict::Violates => format!("violates: {}", summary.violation.join(", ")),
        Verdict::DoesNotViolate => "does not violate".to_owned(),
        Verdict::Diverged => {
            format!("diverged: {} steps could not be followed as they stand", summary.divergences)
        }
    };
    if summary.verdict == Verdict::Diverged && !summary.violation.is_empty() {
        text.push_str(&format!("\n  (and yet it ends in {})", summary.violation.join(", ")));
    }
    text.push_str(&format!(
        "\n  {}: {} deliveries, {} external events, network {}, {:.3} s",
        input.display(),
        summary.deliveries,
        summary.externals,
        summary.network,
        summary.seconds
    ));
    if let Some(at) = summary.violation_at {
        text.push_str(&format!("\n  the violation was first seen after delivery {at}"));
    }
    if !summary.round.is_empty() {
        text.push_str("\n  from here on it goes round for ever:");
        summary.round.iter().for_each(|step| text.push_str(&format!("\n    {step}")));
    }
    if summary.added_steps > 0 {
        text.push_str(&format!(
            "\n  {} steps were added to the causal past: the model needs them, and logs do not tell that they are causes",
            summary.added_steps
        ));
    }
    if summary.unrecorded_sends > 0 {
        text.push_str(&format!("\n  the model sent {} messages that no log has", summary.unrecorded_sends));
    }
    if summary.matches_recorded == Some(false) {
        text.push_str("\n  this is not the violation that the schedule names");
    }
    if let Some(d) = &summary.first_divergence {
        let event = d.event.as_deref().map(|e| format!(" ({e})")).unwrap_or_default();
        text.push_str(&format!(
            "\n  first divergence at step {}{event}, after {} deliveries\n    expected: {}\n    got:      {}\n    state:    {}",
            d.step, d.delivery, d.expected, d.got, d.state
        ));
        if let Some(source) = &d.source {
            text.push_str(&format!("\n    log line: {source}, byte {}", d.offset.unwrap_or_default()));
        }
    } else {
        text.push_str("\n  every step was followed exactly");
    }
    text.push_str(&format!("\n  digest {}", summary.digest));
    text
}
