//! What is reported: an execution's folder, or a result's folder with the execution it came from.

use std::path::{Path, PathBuf};

use demi_lineage::execution::{SCHEDULE, SUMMARY, is_execution, load_summary};
use demi_lineage::export::{Selection, Trace};
use demi_replay::Registry;
use demi_schemas::certificate::Shortest;
use demi_schemas::summary::{BackwardStamps, BuildSummary, ExploreSummary, FuzzSummary, MinimizeSummary};
use demi_schemas::{Certificate, InvariantsFile, Scenario, Schedule};

use crate::align::align;
use crate::data::{Page, TraceData};
use crate::error::ReportError;
use crate::execution::recorded;
use crate::replayed::replayed;

/// Name of the scenario in a result's folder.
const SCENARIO: &str = "scenario.toml";
/// Name of the schedule that was minimized.
const ORIGINAL: &str = "original.jsonl";
/// Name of the certificate.
const CERTIFICATE: &str = "certificate.json";

/// A folder that can be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Written by `build`.
    Execution(PathBuf),
    /// Written by `minimize`, `explore` or `fuzz`.
    Result(PathBuf),
}

impl Input {
    /// What a folder holds.
    ///
    /// # Errors
    /// When it is neither.
    pub fn of(path: &Path) -> Result<Input, ReportError> {
        if is_execution(path) {
            Ok(Input::Execution(path.to_owned()))
        } else if path.join(SCHEDULE).is_file() && path.join(SUMMARY).is_file() {
            Ok(Input::Result(path.to_owned()))
        } else {
            Err(ReportError::Neither(path.to_owned()))
        }
    }
}

/// Options of making a page.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The scenario on whose model the variables of actors are found; a result's folder has its own.
    pub scenario: Option<Scenario>,
    /// For a result: the execution it came from, or its schedule; where absent, the schedule that the folder keeps.
    pub original: Option<PathBuf>,
    /// Invariants to be checked in the recorded execution.
    pub invariants: Option<InvariantsFile>,
    /// Which events of the recorded execution are shown.
    pub selection: Selection,
    /// What else the page warns of.
    pub warnings: Vec<String>,
}

/// Reads a folder into a page; `models` are those that scenarios may name.
///
/// # Errors
/// When a file is missing or is not what it should be, the selection names what is not there, the model cannot
/// follow, or there are more events than a page shows.
pub fn load(models: &impl Registry, path: &Path, options: &LoadOptions) -> Result<Page, ReportError> {
    match Input::of(path)? {
        Input::Execution(exec) => execution_page(models, &exec, options),
        Input::Result(out) => result_page(models, &out, options),
    }
}

/// Reads a folder as a trace for export: an execution, or the schedule of a result run on the model.
///
/// # Errors
/// As [`load`].
pub fn open_trace(
    models: &impl Registry,
    path: &Path,
    scenario: Option<&Scenario>,
    selection: &Selection,
) -> Result<Trace, ReportError> {
    match Input::of(path)? {
        Input::Execution(exec) => Ok(Trace::load(&exec, selection)?),
        Input::Result(out) => {
            let own = result_scenario(&out, scenario)?;
            let replayed = replayed(models, &read_schedule(&out.join(SCHEDULE))?, &own)?;
            Ok(replayed.trace.select(selection)?)
        }
    }
}

fn read(path: &Path) -> Result<String, ReportError> {
    demi_common::regular::read_to_string(path).map_err(ReportError::io(path))
}

fn read_schedule(path: &Path) -> Result<Schedule, ReportError> {
    Schedule::parse(&read(path)?).map_err(ReportError::file(path))
}

fn result_scenario(out: &Path, given: Option<&Scenario>) -> Result<Scenario, ReportError> {
    let path = out.join(SCENARIO);
    match given {
        Some(scenario) => Ok(scenario.clone()),
        None => Scenario::parse(&read(&path)?).map_err(ReportError::file(&path)),
    }
}

/// The head of a page about an execution.
pub(crate) fn describe(page: &mut Page, summary: &BuildSummary) {
    page.violation.clone_from(&summary.violation);
    page.fact("events", thousands(summary.events));
    page.fact("deliveries", thousands(summary.deliveries));
    page.fact(
        "causal past of the violation",
        format!("{} events, {} deliveries", thousands(summary.kept), thousands(summary.kept_deliveries)),
    );
    page.fact("longest causal chain", thousands(summary.depth));
    page.fact("messages joined", thousands(summary.matched));
    page.fact("channels", if summary.channels_in_order { "in order" } else { "not all in order" });
    if !summary.affected.is_empty() {
        page.fact("affected", summary.affected.join(", "));
    }
    let u = &summary.unmatched;
    let unmatched = [
        ("in flight at the end", u.in_flight),
        ("lost", u.lost),
        ("sender's log missing", u.sender_missing),
        ("delivered twice", u.duplicate),
        ("from outside", u.external),
    ];
    page.unmatched = unmatched.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    page.warnings.extend(BackwardStamps::told(&summary.backwards));
    page.warnings.extend(summary.warnings.iter().cloned());
}

fn execution_page(models: &impl Registry, exec: &Path, options: &LoadOptions) -> Result<Page, ReportError> {
    let summary = load_summary(exec)?;
    let mut page = Page::new(summary.system.clone());
    describe(&mut page, &summary);
    let recorded =
        recorded(models, exec, &options.selection, options.scenario.as_ref(), options.invariants.as_ref())?;
    page.invariants = recorded.invariants;
    if recorded.trace.events < summary.events {
        page.fact("shown here", format!("{} events", thousands(recorded.trace.events)));
    }
    page.completeness = recorded.completeness;
    page.warnings.extend(recorded.warnings);
    page.warnings.extend(options.warnings.iter().cloned());
    page.traces.push(recorded.trace);
    Ok(page)
}

fn result_page(models: &impl Registry, out: &Path, options: &LoadOptions) -> Result<Page, ReportError> {
    let path = out.join(SUMMARY);
    let text = read(&path)?;
    let scenario = result_scenario(out, options.scenario.as_ref())?;
    let schedule = read_schedule(&out.join(SCHEDULE))?;
    let found = serde_json::from_str::<ExploreSummary>(&text).is_ok()
        || serde_json::from_str::<FuzzSummary>(&text).is_ok();
    if found && options.invariants.is_some() {
        return Err(ReportError::NoStates);
    }
    if let Ok(summary) = serde_json::from_str::<ExploreSummary>(&text) {
        let mut page = found_page(models, &schedule, &scenario, "explored")?;
        explored(&mut page, &summary);
        return Ok(page);
    }
    if let Ok(summary) = serde_json::from_str::<FuzzSummary>(&text) {
        let mut page = found_page(models, &schedule, &scenario, "found")?;
        page.fact("seed", summary.seed);
        page.fact("run", summary.run);
        return Ok(page);
    }
    let summary: MinimizeSummary = serde_json::from_str(&text).map_err(ReportError::file(&path))?;
    let path = out.join(CERTIFICATE);
    let certificate: Option<Certificate> = match path.is_file() {
        true => Some(serde_json::from_str(&read(&path)?).map_err(ReportError::file(&path))?),
        false => None,
    };
    let mut page = Page::new(schedule.header.system.clone().unwrap_or_default());
    let mut small = replayed(models, &schedule, &scenario)?.data("minimized", certificate.as_ref());
    if let Some(original) = original(models, out, options, &scenario, &mut page)? {
        small.align = align(&small, &original);
        page.traces.push(original);
    }
    page.traces.push(small);
    page.violation.clone_from(&summary.violation);
    let change = |from: u64, to: u64| format!("{} → {}", thousands(from), thousands(to));
    page.fact("deliveries", change(summary.initial_deliveries, summary.deliveries));
    page.fact("external events", change(summary.initial_externals, summary.externals));
    page.fact("timers", summary.timers);
    page.fact("network", summary.network);
    page.fact("replays", thousands(summary.replays));
    page.fact("seconds", format!("{:.1}", summary.seconds));
    page.fact(
        "locally minimal",
        if summary.one_minimal { "yes: no single step can be left out" } else { "not shown" },
    );
    match certificate.as_ref().and_then(|c| c.shortest.as_ref()) {
        Some(s) if s.optimal => {
            page.fact("shorter executions", format!("none with these external events{}", starts(s)))
        }
        Some(s) => {
            page.fact("shorter executions", format!("none below {} deliveries{}", s.at_least, starts(s)))
        }
        None => {}
    }
    page.warnings.extend(summary.not_schedulable.map(|why| {
        format!("no run of the system can follow this schedule under the scenario's network rule: {why}")
    }));
    page.warnings.extend(summary.others.iter().map(|other| {
        format!(
            "another result, {}, has {} deliveries and {} external events",
            other.file, other.deliveries, other.externals
        )
    }));
    (page.curve, page.phases) = (summary.curve, summary.phases);
    Ok(page)
}

/// A violation that `fuzz` or `explore` found.
fn found_page(
    models: &impl Registry,
    schedule: &Schedule,
    scenario: &Scenario,
    name: &'static str,
) -> Result<Page, ReportError> {
    let mut page = Page::new(schedule.header.system.clone().unwrap_or_default());
    page.traces.push(replayed(models, schedule, scenario)?.data(name, None));
    page.violation.clone_from(&schedule.header.violation);
    if let Some(deliveries) = schedule.header.deliveries {
        page.fact("deliveries", thousands(deliveries));
    }
    page.fact("network", schedule.header.network.unwrap_or(scenario.network));
    Ok(page)
}

/// What `explore` says besides.
fn explored(page: &mut Page, summary: &ExploreSummary) {
    if let Some(least) = summary.findings.first() {
        page.fact("external events", thousands(least.externals));
        page.fact(&summary.cost, least.cost);
        page.fact("faults", least.faults);
    }
    page.fact("violations found", summary.findings.len());
    if let Some(promise) = &summary.promise {
        page.fact("promise", &promise.text);
    }
}

/// What a proof leaves out.
fn starts(shortest: &Shortest) -> &'static str {
    if shortest.starts_at_any_time { "" } else { ", all actors started first" }
}

/// The execution that was minimized, if it is known.
fn original(
    models: &impl Registry,
    out: &Path,
    options: &LoadOptions,
    scenario: &Scenario,
    page: &mut Page,
) -> Result<Option<TraceData>, ReportError> {
    let kept = out.join(ORIGINAL);
    let path = match &options.original {
        Some(path) => path,
        None if kept.is_file() => &kept,
        None if options.invariants.is_some() => return Err(ReportError::NoStates),
        None => return Ok(None),
    };
    if !path.is_dir() {
        if options.invariants.is_some() {
            return Err(ReportError::NoStates);
        }
        return Ok(Some(replayed(models, &read_schedule(path)?, scenario)?.data("recorded", None)));
    }
    let summary = load_summary(path)?;
    page.warnings.extend(BackwardStamps::told(&summary.backwards));
    page.warnings.extend(summary.warnings);
    let recorded = recorded(models, path, &options.selection, Some(scenario), options.invariants.as_ref())?;
    page.invariants = recorded.invariants;
    page.completeness = recorded.completeness;
    page.warnings.extend(recorded.warnings);
    Ok(Some(recorded.trace))
}

/// A number with thin gaps between thousands.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(c);
    }
    text
}
