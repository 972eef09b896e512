//! `demi-lineage explore`: every execution that deviates little from a default order, and a promise where none violates.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use demi_common::{Kind, owned};
use demi_explore::moment::Moment;
use demi_explore::{Bounds, Cost, Ended, Explored, Scene, SceneError, Spent, Told, explore};
use demi_minimize::{Budget, StopFlag};
use demi_replay::fuzz::{Found, Made, written};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario, Schedule};

use crate::Outcome;
use crate::explore_told::{describe, least, summarize};
use crate::files::{read_scenario, read_schedule, write_folder};
use crate::fuzz::logs;
use crate::minimize;
use crate::status::{Expect, Status};
use crate::ui::Ui;
use crate::verify_explored::RECORDED;

/// How many deliveries before the end of a recording an exploration begins.
const LAST: u64 = 8;

/// Arguments of `explore`.
#[derive(clap::Args, Debug)]
pub struct ExploreArgs {
    /// The scenario file.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// A recorded execution or a schedule: explore around it instead of from the scenario's beginning. Its own order costs nothing.
    #[arg(long, value_name = "EXEC|FILE")]
    from: Option<PathBuf>,
    /// With --from: begin after so many of its deliveries.
    #[arg(long, value_name = "N", requires = "from", conflicts_with_all = ["every", "last"])]
    at: Option<u64>,
    /// With --from: begin at the start and after every N deliveries.
    #[arg(long, value_name = "N", requires = "from", conflicts_with = "last", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// With --from: begin so many deliveries before its violation, or its end where there is none [default: 8].
    #[arg(long, value_name = "N", requires = "from")]
    last: Option<u64>,
    /// Most that an execution may spend of the cost. All executions that spend less are looked at first.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub bound: u32,
    /// What is counted: deviation (1 for anything but the oldest), delay (1 for each choice passed over), or preempt (1 for leaving an
    /// actor that could go on).
    #[arg(long, value_name = "COST", default_value_t)]
    pub cost: Cost,
    /// Most faults in an execution: failures, restarts, actors cut off or back, messages lost under fifo-loss, messages repeated where the network does.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub faults: u32,
    /// Client messages, one after the other; replaces the scenario's number.
    #[arg(long, value_name = "N")]
    externals: Option<u32>,
    /// Decides what the client messages are.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Most steps in an execution.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,
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
    pub out: PathBuf,
    /// Which outcome is success, as the exit status says it.
    #[arg(long, value_enum, default_value = "none", value_name = "OUTCOME")]
    expect: Expect,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// What was explored from one beginning: after so many deliveries of the recording, or at the scenario's beginning.
pub struct Part {
    /// After how many deliveries.
    pub from: Option<u64>,
    /// What came of it.
    pub explored: Explored,
    /// What is written of each finding.
    pub found: Vec<Found>,
    /// How many client messages there were.
    pub clients: usize,
}

/// Explores with whichever model the scenario names.
struct Task<'a> {
    scenario: &'a Scenario,
    args: &'a ExploreArgs,
    recorded: Option<&'a Schedule>,
    tell: &'a mut dyn FnMut(Told) -> bool,
}

impl Visitor for Task<'_> {
    type Output = Result<Vec<Part>, SceneError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let Task { scenario, args, recorded, tell } = self;
        let Some(recorded) = recorded else {
            let begin = Scene::of(&mut sim, scenario, args.externals, args.seed)?;
            return Ok(vec![part(&mut sim, None, begin, args, scenario, tell)?]);
        };
        // What comes after the violation is not before it.
        let violation = Scene::violation_of(&mut sim, scenario, recorded)?;
        let mut parts = Vec::new();
        for from in beginnings(args, violation) {
            let begin = Scene::around(&mut sim, scenario, recorded, from)?;
            let part = part(&mut sim, Some(from), begin, args, scenario, tell)?;
            let ended = part.explored.ended;
            parts.push(part);
            if ended == Ended::Stopped {
                break;
            }
        }
        Ok(parts)
    }
}

/// Where to begin in a recording with so many deliveries until its violation or its end, what is nearest to that first.
fn beginnings(args: &ExploreArgs, deliveries: u64) -> Vec<u64> {
    if let Some(at) = args.at {
        return vec![at.min(deliveries)];
    }
    match args.every {
        Some(every) => (0..deliveries.div_ceil(every).max(1)).rev().map(|n| n * every).collect(),
        None => vec![deliveries.saturating_sub(args.last.unwrap_or(LAST))],
    }
}

fn part<M: Model>(
    sim: &mut Simulator<M>,
    from: Option<u64>,
    (scene, first): (Scene, Moment<M>),
    args: &ExploreArgs,
    scenario: &Scenario,
    tell: &mut dyn FnMut(Told) -> bool,
) -> Result<Part, SceneError> {
    let explored = explore(sim, (&scene, first), bounds(args), (args.all, true), tell)?;
    let found = explored
        .findings
        .iter()
        .map(|finding| {
            let parts = (scenario, &scene.program);
            written(sim, parts, &finding.choices, &finding.violations, Made::default())
        })
        .collect();
    Ok(Part { from, explored, found, clients: scene.clients.len() })
}

/// The bounds that the arguments ask for.
pub fn bounds(args: &ExploreArgs) -> Bounds {
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
    let inputs: Vec<&Path> =
        [Some(&args.scenario), args.from.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    owned::check(&args.out, Kind::Explored, &inputs)?;
    let recorded = args.from.as_ref().map(|path| read_schedule(path, false)).transpose()?;
    if recorded.is_some() && args.externals.is_some() {
        return Err(
            "--externals is for the scenario's beginning: a recording has its own messages from outside"
                .into(),
        );
    }

    let stop: StopFlag = minimize::interruptible();
    let bar = ui.progress();
    let start = Instant::now();
    let mut shown = 0;
    let mut tell = |told: Told| {
        let seconds = start.elapsed().as_secs_f64();
        // Writing the message takes longer than a step does.
        if told.steps >= shown {
            shown = told.steps + 1024;
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
        }
        let left = match args.budget {
            Some(Budget::Seconds(most)) => seconds < most,
            Some(Budget::States(most)) => told.steps < most,
            Some(Budget::Replays(_)) | None => true,
        };
        left && !stop.is_set() && models.fault().is_none()
    };
    let task = Task { scenario: &scenario, args, recorded: recorded.as_ref(), tell: &mut tell };
    let done = models.visit(&scenario, task).map_err(|e| format!("{}: {e}", args.scenario.display()));
    bar.finish_and_clear();
    let parts =
        done?.map_err(|e| format!("{}: {e}", args.from.as_ref().unwrap_or(&args.scenario).display()))?;

    let least = least(&parts);
    let summary = summarize(args, &scenario, &parts, &least);
    let mut files = Vec::new();
    for (finding, (_, _, found)) in summary.findings.iter().zip(&least) {
        files.push((finding.schedule.clone(), found.schedule.to_text()));
    }
    if let Some((_, _, first)) = least.first() {
        files.extend(logs(first)?);
    }
    files.push(("scenario.toml".into(), text));
    if let Some(recorded) = &recorded {
        files.push((RECORDED.into(), recorded.to_text()));
    }
    files.push(("summary.json".into(), serde_json::to_string_pretty(&summary)? + "\n"));
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    write_folder(&args.out, Kind::Explored, &inputs, &files)?;
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&describe(&summary, args));
    }
    let stopped = parts.iter().any(|part| part.explored.ended == Ended::Stopped);
    let status = match (stopped, least.is_empty()) {
        (_, false) => Status::There,
        (true, true) => return Ok(Status::BudgetEnded.into()),
        (false, true) => Status::NotThere,
    };
    Ok(args.expect.status(status as u8))
}
