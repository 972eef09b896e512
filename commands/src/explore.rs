//! `demi-lineage explore`: every execution that deviates little from a default order, and a promise where none violates.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use demi_common::{Kind, owned};
use demi_explore::moment::Moment;
use demi_explore::{Ended, Scene, SceneError, Told, explore};
use demi_minimize::{Budget, StopFlag};
use demi_replay::fuzz::{Made, written};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{Scenario, Schedule};

use crate::Outcome;
pub use crate::explore_args::ExploreArgs;
use crate::explore_args::{Part, bounds};
use crate::explore_told::{describe, least, summarize};
use crate::files::{read_scenario, read_schedule, write_folder};
use crate::fuzz::logs;
use crate::minimize;
use crate::status::Status;
use crate::ui::Ui;
use crate::verify_explored::RECORDED;

/// How many deliveries before the end of a recording an exploration begins.
const LAST: u64 = 8;

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
