//! `demi-lineage verify` on a folder that explore wrote: its promise is checked by enumerating all executions once more, its findings by
//! replaying them.

use std::path::Path;
use std::time::Instant;

use demi_check::promise::{Answer, Claim, RecheckError, Start, recheck};
use demi_common::regular;
use demi_explore::{Cost, Origin, Promise};
use demi_minimize::{Budget, StopFlag};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::ScriptError;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::{ExplorePromise, ExploreSummary, FuzzSummary, Verdict};
use demi_schemas::{Scenario, Schedule};

use crate::files::read_schedule;
use crate::on_model::with_scenario;
use crate::permission::{RunArgs, scenario_of};
use crate::status::{Ended, Status};
use crate::ui::Ui;

/// The recording that was explored around, in the folder.
pub const RECORDED: &str = "recorded.jsonl";

/// Why something is not so.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    /// A claim is not true.
    #[error("{0}")]
    False(String),
    /// The budget ended.
    #[error("the budget ended before the promise was checked, after {0} steps; the findings hold")]
    Budget(u64),
    /// The scenario or the recording makes no sense to the model.
    #[error(transparent)]
    Recheck(#[from] RecheckError),
    /// A schedule makes no sense to the model.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Checks everything that a folder of `explore` claims; says what was checked.
pub fn verify(
    folder: &Path,
    (budget, run): (Budget, RunArgs),
    models: &impl Registry,
    ui: &Ui,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let at = |name: &str| folder.join(name);
    let path = at("summary.json");
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = regular::read_to_string(&path).map_err(|e| named(&e))?;
    if serde_json::from_str::<FuzzSummary>(&text).is_ok() {
        return Err(format!(
            "{} is a run found by fuzz, which claims nothing that could be verified: replay it with `replay {} --scenario FILE --strict`",
            folder.display(),
            folder.display()
        )
        .into());
    }
    let summary: ExploreSummary = serde_json::from_str(&text).map_err(|e| named(&e))?;
    let cost: Cost = summary.cost.parse().map_err(|e: String| named(&e))?;
    let mut scenario = scenario_of(folder, run, ui)?;
    scenario.network = summary.network;
    let recorded = match summary.beginnings.is_empty() {
        true => None,
        false => Some(read_schedule(&at(RECORDED), false)?),
    };
    let mut schedules = Vec::new();
    for finding in &summary.findings {
        schedules.push((read_schedule(&at(&finding.schedule), false)?, finding.violation.clone()));
    }
    let (scenario, stop) = (&scenario, crate::minimize::interruptible());
    let task = Task { scenario, summary: &summary, cost, recorded, schedules, budget, stop };
    let done = with_scenario(models, &at("scenario.toml"), scenario, task)?;
    done.map_err(|e| {
        let status = match e {
            Wrong::False(_) => Status::NotThere,
            Wrong::Budget(_) => Status::BudgetEnded,
            Wrong::Recheck(_) | Wrong::Script(_) => Status::Failed,
        };
        Ended { status, text: named(&e) }.into()
    })
}

struct Task<'a> {
    scenario: &'a Scenario,
    summary: &'a ExploreSummary,
    cost: Cost,
    recorded: Option<Schedule>,
    /// What was found, and what it violates.
    schedules: Vec<(Schedule, Vec<String>)>,
    budget: Budget,
    stop: StopFlag,
}

impl Visitor for Task<'_> {
    type Output = Result<Vec<String>, Wrong>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let mut lines = Vec::new();
        let options = ReplayOptions { rule: self.summary.network, strict: true, interval: 1 };
        for (schedule, violation) in &self.schedules {
            let run = replay(&mut sim, schedule, &options)?;
            if run.verdict != Verdict::Violates || run.violation != *violation {
                return Err(Wrong::False(format!(
                    "it says that {} was found, but strict replay says '{}' ({})",
                    violation.join(", "),
                    run.verdict.as_str(),
                    run.violation.join(", ")
                )));
            }
            lines.push(format!("strict replay violates {}", violation.join(", ")));
        }
        match &self.summary.promise {
            Some(promise) => lines.push(self.promised(&mut sim, promise)?),
            None => lines.push("nothing is promised".to_owned()),
        }
        Ok(lines)
    }
}

impl Task<'_> {
    /// Enumerates all executions that the promise is about.
    fn promised<M: Model>(&self, sim: &mut Simulator<M>, promise: &ExplorePromise) -> Result<String, Wrong> {
        let ExplorePromise { bound, faults, steps, .. } = *promise;
        let clients = u32::try_from(self.summary.clients).unwrap_or(u32::MAX);
        let origin = match &self.recorded {
            Some(_) => Origin::Recorded(self.summary.beginnings.len()),
            None => Origin::Beginning(clients as usize),
        };
        let rule = self.summary.network;
        let words = Promise { cost: self.cost, bound, faults, origin, rule, steps }.to_string();
        if words != promise.text {
            return Err(Wrong::False(format!(
                "the promise in words is not that in figures, which is: {words}"
            )));
        }
        let claim = Claim { cost: self.cost, bound, faults, steps };
        let starts: Vec<Start<'_>> = match &self.recorded {
            Some(recorded) => {
                self.summary.beginnings.iter().map(|&from| Start::Recorded(recorded, from)).collect()
            }
            None => vec![Start::Beginning { clients, seed: self.summary.seed }],
        };
        let began = Instant::now();
        let (mut before, mut made, mut configurations) = (0, 0, 0);
        for start in starts {
            let mut go_on = |steps: u64| {
                made = before + steps;
                let left = match self.budget {
                    Budget::Seconds(most) => began.elapsed().as_secs_f64() < most,
                    Budget::States(most) | Budget::Replays(most) => made < most,
                };
                left && !self.stop.is_set()
            };
            match recheck(sim, self.scenario, claim, start, &mut go_on)? {
                Answer::Kept { configurations: count } => configurations += count,
                Answer::Stopped => return Err(Wrong::Budget(made)),
                Answer::Broken { violation, cost, faults, steps } => {
                    return Err(Wrong::False(format!(
                        "an execution within the promise violates {}: {} {cost}, {faults} faults, {steps} steps",
                        violation.join(", "),
                        self.cost
                    )));
                }
            }
            before = made;
        }
        Ok(format!("{words} ({configurations} configurations, looked at without the search)"))
    }
}
