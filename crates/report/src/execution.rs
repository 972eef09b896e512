//! A recorded execution for the page.

use std::path::Path;

use demi_lineage::execution;
use demi_lineage::export::{Selection, Skeleton, Trace};
use demi_lineage::query::Query;
use demi_replay::replay::{ReplayOptions, watched};
use demi_replay::script::Act;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{EventId, InvariantsFile, Kind, Scenario, Schedule};

use crate::columns::ColumnBuilder;
use crate::completeness::completeness;
use crate::data::{Changes, Completeness, Invariant, TraceData};
use crate::error::ReportError;
use crate::invariants::invariants;
use crate::timeline::Timeline;

/// Most events of one page. At ten times what the page is made for it still opens, but slowly.
pub(crate) const MOST: u64 = 500_000;

/// The parts of a page that come from an execution's folder.
pub(crate) struct RecordedPage {
    pub(crate) trace: TraceData,
    pub(crate) completeness: Vec<Completeness>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) warnings: Vec<String>,
}

/// Reads an execution, or a slice of it.
pub(crate) fn recorded(
    models: &impl Registry,
    exec: &Path,
    selection: &Selection,
    scenario: Option<&Scenario>,
    file: Option<&InvariantsFile>,
) -> Result<RecordedPage, ReportError> {
    let summary = execution::load_summary(exec)?;
    if summary.events > MOST && *selection == Selection::default() {
        return Err(ReportError::TooMany { events: summary.events, most: MOST });
    }
    let whole = Trace::load(exec, selection)?;
    if whole.events.len() as u64 > MOST {
        return Err(ReportError::TooMany { events: whole.events.len() as u64, most: MOST });
    }
    let completeness = completeness(&Query::open(exec, false)?.runs()?);
    let trace = whole.compact();
    let invariants = file.map_or(Ok(Vec::new()), |file| invariants(exec, file, &trace.skeleton))?;
    let mut data = columns("recorded", &trace);
    let mut warnings = Vec::new();
    match scenario {
        Some(scenario) => {
            let schedule = execution::load_schedule(exec, false)?;
            let states = states(models, &trace.skeleton, &schedule, scenario)?;
            data.violations.extend(states.violation);
            data.changes = states.changes;
            data.states_from = "model";
            warnings.extend(states.warning);
        }
        None => logged_states(&trace, &mut data),
    }
    data.violations.sort_unstable();
    data.violations.dedup();
    Ok(RecordedPage { trace: data, completeness, invariants, warnings })
}

/// The columns of a whole trace, and the violations that it records.
pub(crate) fn columns(name: &str, trace: &Trace) -> TraceData {
    let s = &trace.skeleton;
    let mut filling = ColumnBuilder::until(s.len() as u32);
    let mut seen = SeenViolations::default();
    for (&e, content) in trace.events.iter().zip(&trace.contents) {
        filling.push(s, e, content);
        seen.note(e, s.kind[e as usize], content.reason.as_deref());
    }
    TraceData {
        name: name.to_owned(),
        actors: s.actors.clone(),
        events: s.len() as u64,
        columns: filling.finish(s),
        violations: seen.chosen(),
        ..TraceData::default()
    }
}

/// Where a violation is seen: at the records that the execution was built for; without them at what it is about, and without that at any record.
#[derive(Default)]
pub(crate) struct SeenViolations {
    wanted: Vec<u32>,
    affected: Vec<u32>,
    any: Vec<u32>,
}

impl SeenViolations {
    /// Takes note of an event, and why it was kept.
    pub(crate) fn note(&mut self, event: u32, kind: Kind, reason: Option<&str>) {
        match reason {
            Some("violation") => self.wanted.push(event),
            Some("affected") => self.affected.push(event),
            _ => {}
        }
        if kind == Kind::Violation {
            self.any.push(event);
        }
    }

    /// The events, in order.
    pub(crate) fn chosen(self) -> Vec<u32> {
        let all = [self.wanted, self.affected, self.any];
        let mut chosen = all.into_iter().find(|some| !some.is_empty()).unwrap_or_default();
        chosen.sort_unstable();
        chosen
    }
}

/// The variables that `state` records tell.
fn logged_states(trace: &Trace, data: &mut TraceData) {
    let mut timeline = Timeline::default();
    for (&e, content) in trace.events.iter().zip(&trace.contents) {
        if let Some(state) = content.state.as_deref().and_then(|text| serde_json::from_str(text).ok()) {
            timeline.note(e, trace.skeleton.actor[e as usize], &state);
        }
    }
    data.changes = timeline.finish();
    data.states_from = if data.changes.event.is_empty() { "" } else { "log" };
}

/// The variables of a replay on the model.
pub(crate) struct States {
    pub(crate) changes: Changes,
    /// The event after which the model first breaks an invariant.
    pub(crate) violation: Option<u32>,
    pub(crate) warning: Option<String>,
}

/// Replays what was recorded and notes the variables after each step.
pub(crate) fn states(
    models: &impl Registry,
    skeleton: &Skeleton,
    schedule: &Schedule,
    scenario: &Scenario,
) -> Result<States, ReportError> {
    let replayed = models.visit(scenario, StateVisitor { skeleton, schedule, scenario });
    replayed.map_err(|e| ReportError::Replay(e.to_string()))?
}

/// Replays a schedule on the model and collects the variables.
struct StateVisitor<'a> {
    skeleton: &'a Skeleton,
    schedule: &'a Schedule,
    scenario: &'a Scenario,
}

impl Visitor for StateVisitor<'_> {
    type Output = Result<States, ReportError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = ReplayOptions {
            rule: self.scenario.network,
            strict: false,
            interval: self.scenario.invariant_check_interval.unwrap_or(1),
        };
        let mut timeline = Timeline::default();
        // By delivery, from 1: the event that it is.
        let mut deliveries: Vec<Option<u32>> = Vec::new();
        let mut last = 0;
        let mut watch =
            |step: Option<usize>, act: &Act, sim: &Simulator<M>, world: &demi_replay::World<M>| {
                let step = step.and_then(|i| self.schedule.steps.get(i));
                let event = step.and_then(|s| s.event.as_deref()).and_then(|name| {
                    EventId::readings(name).ok()?.iter().find_map(|id| self.skeleton.find(id))
                });
                last = event.unwrap_or(last);
                deliveries.resize(world.deliveries() as usize, event);
                if let Some(actor) = act.actor()
                    && let Some(number) = self.skeleton.find_actor(sim.names().get(actor))
                {
                    let state =
                        sim.view(world).state(actor).map(|s| sim.model().logs().describe(s, sim.names()));
                    timeline.note(last, number, &state.unwrap_or_default());
                }
            };
        let summary = watched(&mut sim, self.schedule, &options, &mut watch)
            .map_err(|e| ReportError::Replay(e.to_string()))?;
        let at = summary.violation_at.and_then(|n| usize::try_from(n).ok()).and_then(|n| n.checked_sub(1));
        let warning = summary.first_divergence.map(|d| {
            format!(
                "the model leaves the log at step {}{}: variables shown from there on may be wrong (expected {}, got {})",
                d.step,
                d.event.map(|e| format!(" ({e})")).unwrap_or_default(),
                d.expected,
                d.got
            )
        });
        let violation = at.and_then(|n| deliveries.get(n).copied().flatten());
        Ok(States { changes: timeline.finish(), violation, warning })
    }
}
