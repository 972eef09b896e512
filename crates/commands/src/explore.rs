//! `demi-lineage explore`: every execution that deviates little from a default order, and a promise where none violates.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use demi_common::{Kind, Replacement, owned};
use demi_explore::moment::Moment;
use demi_explore::{Ended, Saved, Scene, SceneError, Told, explore};
use demi_minimize::{Budget, StopFlag};
use demi_replay::fuzz::{Made, written};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::schedule::INSTEAD_OF;
use demi_schemas::{Scenario, Schedule};

use crate::Outcome;
pub use crate::explore_args::ExploreArgs;
use crate::explore_args::{Part, bounds, options};
use crate::explore_told::{describe, deviations, least, summarize};
use crate::explore_unfinished::{self, Settings, Unfinished};
use crate::files::{read_scenario, read_schedule, write_files};
use crate::logs::logs;
use crate::minimize;
use crate::permission;
use crate::status::Status;
use crate::tolerance::strays;
use crate::ui::Ui;
use crate::verify_explored::RECORDED;

/// How many deliveries before the end of a recording an exploration begins.
const LAST: u64 = 8;

/// Explores with whichever model the scenario names.
struct Task<'a> {
    scenario: &'a Scenario,
    args: &'a ExploreArgs,
    recorded: Option<&'a Schedule>,
    /// What an earlier exploration came to from each of its beginnings.
    unfinished: &'a [Unfinished],
    tell: &'a mut dyn FnMut(Told) -> bool,
}

impl Visitor for Task<'_> {
    type Output = Result<Vec<Part>, SceneError>;

    fn visit<M: Model>(mut self, mut sim: Simulator<M>) -> Self::Output {
        let mut done = (0, 0);
        let Some(recorded) = self.recorded else {
            let begin = Scene::of(&mut sim, self.scenario, self.args.externals, self.args.seed)?;
            return Ok(vec![self.part(&mut sim, None, begin, (&mut done, 1))?]);
        };
        // What comes after the violation is not before it.
        let violation = Scene::violation_of(&mut sim, self.scenario, recorded)?;
        let beginnings = beginnings(self.args, violation);
        let mut parts = Vec::new();
        for &from in &beginnings {
            let begin = Scene::around(&mut sim, self.scenario, recorded, from)?;
            let part = self.part(&mut sim, Some(from), begin, (&mut done, beginnings.len()))?;
            let ended = part.explored.ended;
            parts.push(part);
            if ended == Ended::Stopped {
                break;
            }
        }
        Ok(parts)
    }
}

impl Task<'_> {
    /// Explores from one of `of` beginnings, where so many of them are done already, with so many steps.
    fn part<M: Model>(
        &mut self,
        sim: &mut Simulator<M>,
        from: Option<u64>,
        (scene, first): (Scene, Moment<M>),
        (done, of): (&mut (usize, u64), usize),
    ) -> Result<Part, SceneError> {
        let earlier =
            self.unfinished.iter().find(|earlier| earlier.from == from).map(|earlier| &earlier.saved);
        let before = earlier.map_or(0, Saved::steps);
        let (parts, steps) = *done;
        // Steps of an earlier exploration are not paid for once more.
        let mut tell = |told: Told| {
            let (steps, part) = (steps + told.steps - before, (parts as f64 + told.part) / of as f64);
            (self.tell)(Told { steps, part, ..told })
        };
        let options = options(self.args, earlier);
        let explored = explore(sim, (&scene, first), bounds(self.args), options, &mut tell)?;
        *done = (parts + 1, steps + explored.saved.steps() - before);
        let found = explored
            .findings
            .iter()
            .map(|finding| {
                let parts = (self.scenario, &scene.program);
                let mut found = written(sim, parts, &finding.choices, &finding.violations, Made::default());
                for (step, deviation) in deviations(finding, &found) {
                    if let Some(step) = found.schedule.steps.get_mut(step) {
                        step.attrs.insert(INSTEAD_OF.to_owned(), deviation.instead_of.clone().into());
                    }
                }
                found
            })
            .collect();
        Ok(Part { from, explored, found, clients: scene.clients.len() })
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

/// Runs `explore`.
pub fn run(args: &ExploreArgs, models: &(impl Registry + Sync), ui: &Ui) -> Outcome {
    args.tolerance.apply(models);
    if let Some(Budget::Replays(_)) = args.budget {
        return Err(
            "explore replays nothing: its budget is time (60s) or configurations (5000000states)".into()
        );
    }
    let mut scenario = read_scenario(&args.scenario)?;
    let mut text = fs::read_to_string(&args.scenario)?;
    let own = scenario.clone();
    args.tolerance.ask(&mut scenario);
    scenario.network = args.network.unwrap_or(scenario.network);
    if scenario != own {
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

    let settings = Settings::of(args, &text, recorded.as_ref());
    let unfinished = if args.resume { explore_unfinished::read(&args.out, &settings)? } else { Vec::new() };

    let stop: StopFlag = minimize::interruptible();
    models.stop_with(stop.shared());
    let bar = ui.progress();
    let start = Instant::now();
    let mut shown = 0;
    let mut tell = |told: Told| {
        let seconds = start.elapsed().as_secs_f64();
        // Writing the message takes longer than a step does.
        if told.steps >= shown {
            shown = told.steps + 1024;
            bar.set_message(format!(
                "{} {}, {} faults, {} steps deep: {} steps, {} configurations wait, {:.0}/s, about {:.1} % done, {} violations",
                args.cost,
                told.at.cost,
                told.at.faults,
                told.at.steps,
                told.steps,
                told.waiting,
                told.steps as f64 / seconds.max(1e-3),
                told.part * 100.0,
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
    let recorded = recorded.as_ref();
    let task = Task { scenario: &scenario, args, recorded, unfinished: &unfinished, tell: &mut tell };
    let done = models.visit(&scenario, task).map_err(|e| format!("{}: {e}", args.scenario.display()));
    bar.finish_and_clear();
    if models.fault().is_some() {
        // What the model could not answer counts as no violation, so nothing is known.
        return Ok(Status::Failed.into());
    }
    let parts =
        done?.map_err(|e| format!("{}: {e}", args.from.as_ref().unwrap_or(&args.scenario).display()))?;

    let least = least(&parts);
    let summary = summarize(args, &scenario, &parts, &least, strays(models));
    let mut files = Vec::new();
    for (finding, (_, _, found)) in summary.findings.iter().zip(&least) {
        files.push((finding.schedule.clone(), found.schedule.to_text()));
    }
    if let Some((_, _, first)) = least.first() {
        files.extend(logs(first)?);
    }
    files.push(("scenario.toml".into(), text));
    if let Some(recorded) = recorded {
        files.push((RECORDED.into(), recorded.to_text()));
    }
    files.push(("summary.json".into(), serde_json::to_string_pretty(&summary)? + "\n"));
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    let stopped = parts.iter().any(|part| part.explored.ended == Ended::Stopped);
    let new = Replacement::begin(&args.out, Kind::Explored, &inputs)?;
    write_files(new.path(), &files)?;
    if stopped {
        explore_unfinished::write(new.path(), &settings, &parts)?;
    }
    new.finish()?;
    permission::wrote(&args.out, &scenario, ui);
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&describe(&summary, args));
    }
    let status = match (stopped, least.is_empty()) {
        (_, false) => Status::There,
        (true, true) => return Ok(Status::BudgetEnded.into()),
        (false, true) => Status::NotThere,
    };
    Ok(args.expect.status(status as u8))
}
