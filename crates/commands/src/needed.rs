//! Which switches of a scenario a violating schedule needs: each is switched off, one after the other, and stays off where the schedule can be
//! followed and breaks the invariant all the same.

use std::path::Path;
use std::time::Instant;

use demi_minimize::{
    Budget, Criteria, MinimizeError, Options, Outcome as Minimized, Phases, Progress, Repeat, minimize_with,
};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::{MinimizeSummary, NeededSummary, ReducedSummary, Verdict};
use demi_schemas::{NetworkRule, Scenario, Schedule};

use crate::on_model::with_scenario;

/// The switches that are on in a scenario.
fn on(scenario: &Scenario) -> Vec<&str> {
    scenario.switches.iter().filter(|(_, on)| **on).map(|(name, _)| name.as_str()).collect()
}

/// How often a schedule is run at most to tell which switches it needs.
pub fn runs(scenario: &Scenario) -> usize {
    match on(scenario).len() {
        0 => 0,
        switches => 2 * switches + 1,
    }
}

/// A scenario with some of its switches off.
fn without<'a>(scenario: &Scenario, off: impl IntoIterator<Item = &'a str>) -> Scenario {
    let mut scenario = scenario.clone();
    for name in off {
        scenario.switches.insert(name.to_owned(), false);
    }
    scenario
}

/// Which of the switches that are on a schedule needs: with all others off it is followed step by step and breaks the invariant. Nothing where none
/// is on. Where one switch can stand for another, those that come later by name are kept.
///
/// # Errors
/// When the model refuses a scenario.
pub fn needed(
    models: &impl Registry,
    (path, scenario): (&Path, &Scenario),
    schedule: &Schedule,
    rule: NetworkRule,
) -> Result<Option<NeededSummary>, Box<dyn std::error::Error>> {
    let names = on(scenario);
    if names.is_empty() {
        return Ok(None);
    }
    let breaks = |off: &[&str]| {
        let scenario = without(scenario, off.iter().copied());
        with_scenario(models, path, &scenario, Breaks { schedule, rule })
    };
    let mut alone = Vec::new();
    for name in &names {
        if !breaks(&[*name])? {
            alone.push(*name);
        }
    }
    let others: Vec<&str> = names.iter().copied().filter(|name| !alone.contains(name)).collect();
    let mut off = if breaks(&others)? { others } else { Vec::new() };
    // What one switch is needed for another may be needed for as well, so that each is asked for again.
    for name in &names {
        if !off.contains(name) {
            off.push(name);
            if !breaks(&off)? {
                off.pop();
            }
        }
    }
    let needed: Vec<String> =
        names.iter().filter(|name| !off.contains(name)).map(|name| (*name).to_owned()).collect();
    Ok(Some(NeededSummary { sole: needed.len() == alone.len(), switches: needed }))
}

/// Follows a schedule strictly, and says whether the invariant is broken.
struct Breaks<'a> {
    schedule: &'a Schedule,
    rule: NetworkRule,
}

impl Visitor for Breaks<'_> {
    type Output = bool;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> bool {
        let options = ReplayOptions { rule: self.rule, strict: true, interval: 1 };
        // What a system cannot even read, it cannot break on.
        replay(&mut sim, self.schedule, &options).is_ok_and(|run| {
            run.verdict == Verdict::Violates
                && run.violation.iter().any(|v| self.schedule.header.violation.contains(v))
        })
    }
}

/// What a search is held to: the recording, reduced, and the switches that it needs.
pub struct Held {
    /// The scenario with all other switches off.
    pub scenario: Scenario,
    /// The recording, or what local passes left of it where the recording is not one with the other switches off.
    pub input: Schedule,
    /// Whether it is the recording.
    pub whole: bool,
    /// What is left of the budget.
    pub budget: Budget,
    reduced: Schedule,
    size: Option<ReducedSummary>,
    needs: NeededSummary,
    off: Vec<String>,
    /// Steps, deliveries and external events of the recording.
    initial: [u64; 3],
}

impl Held {
    /// Reduces a recording by local passes and switches off what the result does not need.
    ///
    /// # Errors
    /// When no switch is on, the model refuses a scenario, or there is nothing to reduce.
    pub fn to_recording(
        models: &impl Registry,
        (path, scenario): (&Path, &Scenario),
        (full, kept): (&Schedule, Option<&Schedule>),
        (options, repeat): (&Options, Repeat),
        tell: &(dyn Fn(&Progress<'_>) + Sync),
    ) -> Result<Held, Box<dyn std::error::Error>> {
        if on(scenario).is_empty() {
            return Err(format!(
                "{}: no switch is on, so there is nothing that --cause could hold the search to",
                path.display()
            )
            .into());
        }
        let began = Instant::now();
        let options = Options { phases: Phases::Local, ..options.clone() };
        let local = Local { full, kept, options: &options, repeat, tell };
        let done = with_scenario(models, path, scenario, local)??;
        let summary = &done.summary;
        let budget = match options.budget {
            Budget::Seconds(s) => Budget::Seconds((s - began.elapsed().as_secs_f64()).max(0.0)),
            Budget::Replays(n) => Budget::Replays(n.saturating_sub(summary.replays)),
            Budget::States(n) => Budget::States(n.saturating_sub(summary.executed)),
        };
        let size = ReducedSummary {
            steps: summary.steps,
            deliveries: summary.deliveries,
            externals: summary.externals,
            one_minimal: summary.one_minimal,
            seconds: summary.seconds,
        };
        let needs = needed(models, (path, scenario), &done.schedule, options.rule)?.unwrap_or_default();
        let off: Vec<String> = on(scenario)
            .into_iter()
            .filter(|name| !needs.switches.iter().any(|needed| needed == name))
            .map(str::to_owned)
            .collect();
        let initial = [summary.initial_steps, summary.initial_deliveries, summary.initial_externals];
        let scenario = without(scenario, off.iter().map(String::as_str));
        let mut input = full.clone();
        input.header.violation.clone_from(&done.schedule.header.violation);
        let whole = with_scenario(models, path, &scenario, Breaks { schedule: &input, rule: options.rule })?;
        if !whole {
            input = done.schedule.clone();
        }
        Ok(Held {
            scenario,
            input,
            whole,
            budget,
            reduced: done.schedule,
            size: Some(size),
            needs,
            off,
            initial,
        })
    }

    /// The recording, reduced.
    pub fn reduced(&self) -> &Schedule {
        &self.reduced
    }

    /// Puts what is known of the recording into the result.
    pub fn note(self, done: &mut Minimized) {
        done.reduced = Some(self.reduced);
        done.summary.reduced = self.size;
        done.summary.reduced_needs = Some(self.needs);
        done.summary.switched_off = self.off;
        // What was searched from may be what local passes left.
        let summary = &mut done.summary;
        [summary.initial_steps, summary.initial_deliveries, summary.initial_externals] = self.initial;
    }
}

struct Local<'a> {
    full: &'a Schedule,
    kept: Option<&'a Schedule>,
    options: &'a Options,
    repeat: Repeat,
    tell: &'a (dyn Fn(&Progress<'_>) + Sync),
}

impl Visitor for Local<'_> {
    type Output = Result<Minimized, MinimizeError>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let criteria = Criteria { repeat: self.repeat, ..Criteria::default() };
        minimize_with(&sim, self.full, self.kept, self.options, &criteria, self.tell)
    }
}

/// What is to be said of the defects behind a result and behind what happened, for people; nothing where there is nothing to say.
pub fn told(summary: &MinimizeSummary) -> Option<String> {
    let names = |needs: &NeededSummary| match needs.switches.is_empty() {
        true => "no switch".to_owned(),
        false => needs.switches.join(", "),
    };
    let other = summary.reduced.as_ref().is_some_and(|reduced| reduced.steps != summary.steps);
    match (&summary.reduced_needs, &summary.needs) {
        (Some(happened), Some(result)) if happened.switches == result.switches => {
            Some(format!("what happened and the shortest need the same switches: {}", names(happened)))
        }
        (Some(happened), Some(result)) if result.switches.iter().all(|s| happened.switches.contains(s)) => {
            Some(format!(
                "what happened needs {}; the shortest needs {} of these",
                names(happened),
                names(result)
            ))
        }
        (Some(happened), Some(result)) => Some(format!(
            "what happened needs {}; the shortest needs {}: it may be another defect than the one that happened{}",
            names(happened),
            names(result),
            if summary.switched_off.is_empty() { " (--cause holds the search to it)" } else { "" }
        )),
        _ if other => Some("the shortest may be another defect than the one that happened".to_owned()),
        _ => None,
    }
}
