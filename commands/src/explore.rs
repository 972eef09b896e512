//! `demi-lineage explore`: every execution that deviates little from a default order, and a promise where none violates.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use demi_common::{Kind, owned};
use demi_explore::{Bounds, Cost, Ended, Explored, Promise, Scene, SceneError, Spent, Told, explore};
use demi_minimize::{Budget, StopFlag};
use demi_replay::fuzz::{Found, Made, written};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::{ExploreFinding, ExploreLevel, ExplorePromise, ExploreSummary};
use demi_schemas::{NetworkRule, Scenario};

use crate::Outcome;
use crate::files::{read_scenario, write_folder};
use crate::fuzz::logs;
use crate::minimize;
use crate::status::{Expect, Status};
use crate::ui::Ui;

/// Arguments of `explore`.
#[derive(clap::Args, Debug)]
pub struct ExploreArgs {
    /// The scenario file.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// Most that an execution may spend of the cost. All executions that spend less are looked at first.
    #[arg(long, value_name = "N", default_value_t = 2)]
    bound: u32,
    /// What is counted: deviation (1 for anything but the oldest), delay (1 for each choice passed over), or preempt (1 for leaving an
    /// actor that could go on).
    #[arg(long, value_name = "COST", default_value_t)]
    cost: Cost,
    /// Most faults in an execution: failures, restarts, actors cut off or back, messages lost under fifo-loss.
    #[arg(long, value_name = "N", default_value_t = 0)]
    faults: u32,
    /// Client messages, one after the other; replaces the scenario's number.
    #[arg(long, value_name = "N")]
    externals: Option<u32>,
    /// Decides what the client messages are.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Most steps in an execution.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Go on after the first violation, to the cheapest execution of each.
    #[arg(long)]
    all: bool,
    /// How much work to do at most: time (60s, 2m) or configurations (5000000states) [default: no limit].
    #[arg(long, value_name = "BUDGET")]
    budget: Option<Budget>,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    network: Option<NetworkRule>,
    /// The folder for the summary, and for logs and schedules of what is found; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Which outcome is success, as the exit status says it.
    #[arg(long, value_enum, default_value = "none", value_name = "OUTCOME")]
    expect: Expect,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Explores with whichever model the scenario names.
struct Task<'a> {
    scenario: &'a Scenario,
    args: &'a ExploreArgs,
    tell: &'a mut dyn FnMut(Told) -> bool,
}

impl Visitor for Task<'_> {
    /// What was explored, how many client messages there were, and the executions that were found.
    type Output = Result<(Explored, usize, Vec<Found>), SceneError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let (scene, first) = Scene::of(&mut sim, self.scenario, self.args.externals, self.args.seed)?;
        let explored =
            explore(&mut sim, (&scene, first), bounds(self.args), (self.args.all, true), self.tell)?;
        let found = explored
            .findings
            .iter()
            .map(|finding| {
                let parts = (self.scenario, &scene.program);
                written(&mut sim, parts, &finding.choices, &finding.violations, Made::default())
            })
            .collect();
        Ok((explored, scene.clients.len(), found))
    }
}

fn bounds(args: &ExploreArgs) -> Bounds {
    Bounds { cost: args.cost, most: Spent { cost: args.bound, faults: args.faults, steps: args.depth } }
}

/// Runs `explore`.
pub fn run(args: &ExploreArgs, models: &(impl Registry + Sync), ui: &Ui) -> Outcome {
    if let Some(Budget::Replays(_)) = args.budget {
        return Err(
            "explore replays nothing: its budget is time (60s) or configurations (5000000states)".into()
        );
    }
    let mut scenario = read_scenario(&args.scenario)?;
    let mut text = fs::read_to_string(&args.scenario)?;
    if let Some(rule) = args.network.filter(|&rule| rule != scenario.network) {
        scenario.network = rule;
        text = scenario.to_text();
    }
    owned::check(&args.out, Kind::Explored, &[&args.scenario])?;

    let stop: StopFlag = minimize::interruptible();
    let bar = ui.progress();
    let start = Instant::now();
    let mut tell = |told: Told| {
        let seconds = start.elapsed().as_secs_f64();
        bar.set_message(format!(
            "{} {}, {} faults, {} steps deep: {} steps, {} configurations wait, {:.0}/s, {} violations",
            args.cost,
            told.at.cost,
            told.at.faults,
            told.at.steps,
            told.steps,
            told.waiting,
            told.steps as f64 / seconds.max(1e-3),
            told.found,
        ));
        let left = match args.budget {
            Some(Budget::Seconds(most)) => seconds < most,
            Some(Budget::States(most)) => told.steps < most,
            Some(Budget::Replays(_)) | None => true,
        };
        left && !stop.is_set() && models.fault().is_none()
    };
    let task = Task { scenario: &scenario, args, tell: &mut tell };
    let done = models.visit(&scenario, task).map_err(|e| format!("{}: {e}", args.scenario.display()));
    bar.finish_and_clear();
    let (explored, clients, found) = done?.map_err(|e| format!("{}: {e}", args.scenario.display()))?;

    let summary = summarize(args, &scenario, clients, &explored, &found);
    let mut files = Vec::new();
    for (finding, found) in summary.findings.iter().zip(&found) {
        files.push((finding.schedule.clone(), found.schedule.to_text()));
    }
    if let Some(first) = found.first() {
        files.extend(logs(first)?);
    }
    files.push(("scenario.toml".into(), text));
    files.push(("summary.json".into(), serde_json::to_string_pretty(&summary)? + "\n"));
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    write_folder(&args.out, Kind::Explored, &[&args.scenario], &files)?;
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&describe(&summary, args));
    }
    let status = match (explored.ended, found.is_empty()) {
        (_, false) => Status::There,
        (Ended::Stopped, true) => return Ok(Status::BudgetEnded.into()),
        (_, true) => Status::NotThere,
    };
    Ok(args.expect.status(status as u8))
}

fn summarize(
    args: &ExploreArgs,
    scenario: &Scenario,
    clients: usize,
    explored: &Explored,
    found: &[Found],
) -> ExploreSummary {
    let promise = Promise::of(explored, bounds(args), scenario.network, clients);
    let finding = |(at, (finding, found)): (usize, (&demi_explore::Finding, &Found))| ExploreFinding {
        violation: found.violation.clone(),
        affected: found.affected.clone(),
        cost: finding.spent.cost,
        faults: finding.spent.faults,
        deliveries: found.deliveries,
        externals: found.externals,
        schedule: match at {
            0 => "schedule.jsonl".into(),
            at => format!("schedule-{}.jsonl", at + 1),
        },
    };
    let level = |(cost, level): (usize, &demi_explore::Level)| ExploreLevel {
        cost: cost as u32,
        configurations: level.moments,
        steps: level.steps,
        known: level.known,
        ends: level.ends,
        cut: level.cut,
    };
    ExploreSummary {
        cost: args.cost.to_string(),
        bound: args.bound,
        faults: args.faults,
        clients: clients as u64,
        seed: args.seed,
        depth: args.depth,
        network: scenario.network,
        ended: match explored.ended {
            Ended::Complete => "complete",
            Ended::Found => "found",
            Ended::Stopped => "stopped",
        }
        .into(),
        promise: promise.map(|promise| ExplorePromise {
            bound: promise.bound,
            faults: promise.faults,
            steps: promise.steps,
            text: promise.to_string(),
        }),
        findings: explored.findings.iter().zip(found).enumerate().map(finding).collect(),
        levels: explored.levels.iter().enumerate().map(level).collect(),
    }
}

fn describe(summary: &ExploreSummary, args: &ExploreArgs) -> String {
    let mut text = String::new();
    for finding in &summary.findings {
        text.push_str(&format!(
            "{} at {}: {} {}, {} faults, {} deliveries, {} external events: {}\n",
            finding.violation.join(", "),
            finding.affected.join(", "),
            summary.cost,
            finding.cost,
            finding.faults,
            finding.deliveries,
            finding.externals,
            args.out.join(&finding.schedule).display(),
        ));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut table = demi_common::Table::new([
        summary.cost.as_str(),
        "configurations",
        "steps",
        "known",
        "ends",
        "cut off",
    ]);
    for level in &summary.levels {
        let counts =
            [u64::from(level.cost), level.configurations, level.steps, level.known, level.ends, level.cut];
        table.row(counts.map(|count| count.to_string()));
    }
    text.push_str(&table.to_string());
    text.push_str("\n\n");
    text.push_str(match &summary.promise {
        Some(promise) => promise.text.as_str(),
        None => "Nothing is promised: not even the default order is done without a violation.",
    });
    if summary.ended == "stopped" {
        text.push_str("\nThe budget ended before the bound.");
    }
    text.push_str(&format!("\nwrote {}", args.out.display()));
    text
}
