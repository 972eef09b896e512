//! `demi-lineage verify`: check the certificate of a minimized schedule, or the promise of an exploration, from scratch.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_check::{CertificateError, verify, verify_settled};
use demi_common::regular;
use demi_minimize::Meter;
use demi_minimize::{Budget, StopFlag};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::{MinimizeSummary, Verdict};
use demi_schemas::{Certificate, Schedule};

use crate::Outcome;
use crate::files::read_schedule;
use crate::input::{Wanted, expect};
use crate::on_model::with_scenario;
use crate::permission::{RunArgs, scenario_of};
use crate::status::{Ended, Status};
use crate::ui::Ui;
use crate::verify_explored;

/// Arguments of `verify`.
#[derive(clap::Args, Debug)]
pub struct VerifyArgs {
    /// A folder written by minimize or explore.
    #[arg(value_name = "OUT")]
    folder: PathBuf,
    /// The most work for the check of the lower bound or of the guarantee: time (10m) or configurations (5000000states).
    #[arg(long, default_value = "10m", value_name = "BUDGET")]
    budget: Budget,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs `verify`.
pub fn run(args: VerifyArgs, models: &impl Registry, ui: &Ui) -> Outcome {
    expect(&args.folder, Wanted::Claims)?;
    args.run.in_child.apply(models);
    let at = |name: &str| args.folder.join(name);
    if !at("certificate.json").exists() && at("summary.json").exists() {
        let lines = verify_explored::verify(&args.folder, (args.budget, args.run), models, ui)?;
        return told(&args, &lines, "all of it holds", ui);
    }
    let scenario = scenario_of(&args.folder, args.run, ui)?;
    let schedule = read_schedule(&at("schedule.jsonl"), false)?;
    let path = at("certificate.json");
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = regular::read_to_string(&path).map_err(|e| named(&e))?;
    let certificate: Certificate = serde_json::from_str(&text).map_err(|e| named(&e))?;
    let recorded = certificate.settled.map(|_| read_schedule(&at("original.jsonl"), false)).transpose()?;
    let task = Task { schedule: &schedule, recorded, certificate: &certificate, budget: args.budget };
    let lines = with_scenario(models, &at("scenario.toml"), &scenario, task)?.map_err(|e| {
        let status = match e {
            CertificateError::False(_) | CertificateError::Shorter(..) => Status::NotThere,
            CertificateError::Budget | CertificateError::Removals => Status::BudgetEnded,
            _ => Status::Failed,
        };
        Ended { status, text: named(&e) }
    })?;
    // Only the summary claims that the result is 1-minimal.
    let path = at("summary.json");
    if path.exists() {
        let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = regular::read_to_string(&path).map_err(|e| named(&e))?;
        let summary: MinimizeSummary = serde_json::from_str(&text).map_err(|e| named(&e))?;
        if summary.one_minimal && certificate.removals.is_empty() {
            let why = "it says 1-minimal, but the certificate has no single removals";
            return Err(Ended { status: Status::NotThere, text: named(&why) }.into());
        }
        let violating = certificate.removals.iter().find(|r| r.violates && !r.breaks_others);
        if let Some(removal) = violating.filter(|_| summary.one_minimal) {
            let why = format!("it says 1-minimal, but without step {} the rest still violates", removal.step);
            return Err(Ended { status: Status::NotThere, text: named(&why) }.into());
        }
    }
    told(&args, &lines, "the certificate holds", ui)
}

/// Prints what was checked.
fn told(args: &VerifyArgs, lines: &[String], what: &str, ui: &Ui) -> Outcome {
    if args.json {
        ui.json(&serde_json::json!({"holds": true, "checked": lines}))?;
    } else {
        ui.result(&format!("{what}\n  {}", lines.join("\n  ")));
    }
    Ok(ExitCode::SUCCESS)
}

struct Task<'a> {
    schedule: &'a Schedule,
    /// What was recorded, where something is said of all of it.
    recorded: Option<Schedule>,
    certificate: &'a Certificate,
    budget: Budget,
}

impl Visitor for Task<'_> {
    type Output = Result<Vec<String>, CertificateError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = ReplayOptions { rule: self.certificate.network, strict: true, interval: 1 };
        let fresh = sim.clone();
        let run = replay(&mut sim, self.schedule, &options)?;
        let same = run.digest == self.certificate.digest
            && run.violation.iter().any(|v| self.certificate.violation.contains(v));
        if run.verdict != Verdict::Violates || !same {
            let broken =
                if run.violation.is_empty() { "nothing".to_owned() } else { run.violation.join(", ") };
            let hint = match run.verdict {
                Verdict::Violates => "",
                _ => ": the model or the scenario is not the one that the schedule was found with",
            };
            let why = format!(
                "strict replay says '{}' and breaks {broken}, digest {}{hint}",
                run.verdict.as_str(),
                run.digest
            );
            return Err(CertificateError::False(why));
        }
        let mut lines = vec![format!("strict replay violates {}", run.violation.join(", "))];
        let mut meter = Meter::new(self.budget, StopFlag::default());
        lines.extend(verify(&fresh, self.schedule, self.certificate, &mut meter)?);
        if let Some(recorded) = &self.recorded {
            lines.extend(verify_settled(&fresh, recorded, self.certificate, &mut meter)?);
        }
        Ok(lines)
    }
}
