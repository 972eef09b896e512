//! What is reported: an execution's folder, or a result's folder with the execution it came from.

use std::path::{Path, PathBuf};

use demi_common::stays_inside;
use demi_lineage::execution::{SCHEDULE, SUMMARY, is_execution, load_summary};
use demi_lineage::export::{Selection, Trace};
use demi_replay::Registry;
use demi_schemas::certificate::Shortest;
use demi_schemas::summary::{BackwardStamps, BuildSummary, ExploreSummary, FuzzSummary, MinimizeSummary};
use demi_schemas::{Certificate, InvariantsFile, Scenario, Schedule};

use crate::align::{align, differences};
use crate::data::{NOTHING, Page, TraceData};
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
    /// A schedule, as such a folder holds several; its scenario lies beside it.
    Schedule(PathBuf),
}

impl Input {
    /// What a folder holds.
    ///
    /// # Errors
    /// When it is none.
    pub fn of(path: &Path) -> Result<Input, ReportError> {
        if is_execution(path) {
            Ok(Input::Execution(path.to_owned()))
        } else if path.join(SCHEDULE).is_file() && path.join(SUMMARY).is_file() {
            Ok(Input::Result(path.to_owned()))
        } else if path.is_file() {
            Ok(Input::Schedule(path.to_owned()))
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
    /// What is shown beside it: an execution, a result or a schedule, with its scenario as for the first.
    pub with: Option<(PathBuf, Option<Scenario>)>,
    /// What else the page warns of.
    pub warnings: Vec<String>,
}

/// Reads a folder into a page; `models` are those that scenarios may name.
///
/// # Errors
/// When a file is missing or is not what it should be, the selection names what is not there, the model cannot
/// follow, or there are more events than a page shows.
pub fn load(models: &impl Registry, path: &Path, options: &LoadOptions) -> Result<Page, ReportError> {
    if let Some((with, scenario)) = &options.with {
        return compared_page(models, path, with, scenario.as_ref(), options);
    }
    match Input::of(path)? {
        Input::Execution(exec) => execution_page(models, &exec, options),
        Input::Result(out) => result_page(models, &out, &out.join(SCHEDULE), options),
        Input::Schedule(schedule) => match folder_of(&schedule) {
            out if out.join(SUMMARY).is_file() => result_page(models, out, &schedule, options),
            _ => {
                let scenario = result_scenario(folder_of(&schedule), options.scenario.as_ref())?;
                found_page(models, &read_schedule(&schedule)?, &scenario, "schedule")
            }
        },
    }
}

/// The folder in which a file lies.
#[must_use]
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An execution by itself: as it was recorded, or a schedule as the model follows it.
fn one(
    models: &impl Registry,
    path: &Path,
    scenario: Option<&Scenario>,
    options: &LoadOptions,
) -> Result<(TraceData, Vec<String>, Vec<String>), ReportError> {
    let schedule = match Input::of(path)? {
        Input::Execution(exec) => {
            let summary = load_summary(&exec)?;
            let recorded = recorded(models, &exec, &options.selection, scenario, None)?;
            let mut warnings = summary.warnings;
            warnings.extend(recorded.warnings);
            return Ok((recorded.trace, summary.violation, warnings));
        }
        Input::Result(out) => out.join(SCHEDULE),
        Input::Schedule(schedule) => schedule,
    };
    let scenario = result_scenario(folder_of(&schedule), scenario)?;
    let schedule = read_schedule(&schedule)?;
    let trace = replayed(models, &schedule, &scenario)?.data("", None);
    Ok((trace, schedule.header.violation, Vec::new()))
}

/// Two executions side by side: what only one of them has, and where their logs first differ.
fn compared_page(
    models: &impl Registry,
    path: &Path,
    with: &Path,
    with_scenario: Option<&Scenario>,
    options: &LoadOptions,
) -> Result<Page, ReportError> {
    let (mut first, violation, warnings) = one(models, path, options.scenario.as_ref(), options)?;
    let (mut second, other_violation, other_warnings) = one(models, with, with_scenario, options)?;
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    (first.name, second.name) = match (last(path), last(with)) {
        (Some(a), Some(b)) if a != b => (a, b),
        _ if path != with => (path.display().to_string(), with.display().to_string()),
        _ => (path.display().to_string(), format!("{} again", with.display())),
    };
    second.align = align(&second, &first);
    let alike = second.align.iter().filter(|to| **to != NOTHING).count();
    let mut page = Page::new(format!("{} and {}", first.name, second.name));
    page.differences = differences(&first, &second);
    for (trace, violation) in [(&first, &violation), (&second, &other_violation)] {
        let what =
            if violation.is_empty() { "no violation recorded".to_owned() } else { violation.join(", ") };
        page.fact(&trace.name, format!("{} events, {what}", thousands(trace.events)));
    }
    page.fact("events alike", thousands(alike as u64));
    for trace in [&first, &second] {
        page.fact(&format!("only in {}", trace.name), thousands(trace.events.saturating_sub(alike as u64)));
    }
    page.fact("logs that differ", page.differences.len());
    for (name, warnings) in [(&first.name, warnings), (&second.name, other_warnings)] {
        page.warnings.extend(warnings.into_iter().map(|warning| format!("{name}: {warning}")));
    }
    page.warnings.extend(options.warnings.iter().cloned());
    page.traces = vec![first, second];
    Ok(page)
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
        of @ (Input::Result(_) | Input::Schedule(_)) => {
            let schedule = match of {
                Input::Result(out) => out.join(SCHEDULE),
                Input::Schedule(file) | Input::Execution(file) => file,
            };
            let own = result_scenario(folder_of(&schedule), scenario)?;
            let replayed = replayed(models, &read_schedule(&schedule)?, &own)?;
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

/// `shown` is the schedule of the result that is shown first.
fn result_page(
    models: &impl Registry,
    out: &Path,
    shown: &Path,
    options: &LoadOptions,
) -> Result<Page, ReportError> {
    let path = out.join(SUMMARY);
    let text = read(&path)?;
    let scenario = result_scenario(out, options.scenario.as_ref())?;
    let schedule = read_schedule(shown)?;
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
    // What breaks without a step is known of the shortest alone.
    let is_shortest = shown.file_name().is_some_and(|name| name == SCHEDULE);
    let certificate = certificate.filter(|_| is_shortest);
    let name = if is_shortest { "minimized".to_owned() } else { file_name(shown) };
    let small = replayed(models, &schedule, &scenario)?.data(&name, certificate.as_ref());
    let recorded = original(models, out, options, &scenario, &mut page)?;
    page.traces.extend(recorded);
    page.traces.push(small);
    for other in summary
        .others
        .iter()
        .filter(|other| Some(other.file.as_str()) != shown.file_name().and_then(|n| n.to_str()))
    {
        // Somebody may have sent the folder: what its summary names lies in it, or is not read.
        if !stays_inside(Path::new(&other.file)) {
            page.warnings.push(format!("{} is not shown: it is no file of the result", other.file));
            continue;
        }
        let replay = || replayed(models, &read_schedule(&out.join(&other.file))?, &scenario);
        match replay() {
            Ok(replayed) => page
                .traces
                .push(replayed.data(&format!("{} steps, {} external", other.steps, other.externals), None)),
            Err(e) => page.warnings.push(format!("{} is not shown: {e}", other.file)),
        }
    }
    if let [first, others @ ..] = page.traces.as_mut_slice() {
        others.iter_mut().for_each(|other| other.align = align(other, first));
    }
    page.violation.clone_from(&summary.violation);
    let change = |from: u64, to: u64| format!("{} → {}", thousands(from), thousands(to));
    if summary.steps > 0 {
        page.fact("steps", change(summary.initial_steps, summary.steps));
    }
    page.fact("deliveries", change(summary.initial_deliveries, summary.deliveries));
    page.fact("external events", change(summary.initial_externals, summary.externals));
    page.fact("objective", &summary.objective);
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

/// The last part of a path.
fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A violation that `fuzz` or `explore` found.
fn found_page(
    models: &impl Registry,
    schedule: &Schedule,
    scenario: &Scenario,
    name: &str,
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
