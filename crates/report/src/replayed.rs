//! A schedule as an execution: each step that the model takes is an event, and what sent its message is known.

use demi_lineage::export::{Builder, Content, Joint, Trace};
use demi_minimize::report::{Told, tell};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::event::ENVIRONMENT;
use demi_schemas::schedule::INSTEAD_OF;
use demi_schemas::{Certificate, EventId, Kind, NetworkRule, Scenario, Schedule, Step, StepKind};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::data::TraceData;
use crate::error::ReportError;
use crate::execution::columns;
use crate::timeline::Timeline;

/// The field of a step that says that it was pruned before minimization.
const PRUNED: &str = "pruned";

/// Marks the steps of a recorded schedule that are not in `kept`, so that a page can show what was pruned.
#[must_use]
pub fn mark_kept(full: &Schedule, kept: &Schedule) -> Schedule {
    let known: FxHashSet<&str> = kept.steps.iter().filter_map(|s| s.event.as_deref()).collect();
    let mut marked = full.clone();
    for step in &mut marked.steps {
        if step.event.as_deref().is_some_and(|event| !known.contains(event)) {
            step.attrs.insert(PRUNED.to_owned(), Value::from(true));
        }
    }
    marked
}

/// Replays a schedule on the model.
struct ReplayVisitor<'a>(&'a Schedule, NetworkRule);

impl Visitor for ReplayVisitor<'_> {
    type Output = Result<Vec<Told>, ReportError>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        tell(&sim, self.0, self.1).map_err(|e| ReportError::Replay(e.to_string()))
    }
}

/// A schedule run on the model.
pub(crate) struct Replayed {
    pub(crate) trace: Trace,
    told: Vec<Told>,
    /// By step of the schedule: where it left the default order of an exploration, what would have come instead.
    instead_of: Vec<Option<String>>,
    /// By step told: its event.
    heads: Vec<u32>,
    /// Whether the last step breaks the invariant.
    violates: bool,
}

/// Runs a schedule on the scenario's model, under the rule with which it was made.
pub(crate) fn replayed(
    models: &impl Registry,
    schedule: &Schedule,
    scenario: &Scenario,
) -> Result<Replayed, ReportError> {
    let rule = schedule.header.network.unwrap_or(scenario.network);
    let told = models
        .visit(scenario, ReplayVisitor(schedule, rule))
        .map_err(|e| ReportError::Replay(e.to_string()))??;
    // Timers that never fire are left out: every message sets some, and they say nothing.
    let fired: FxHashSet<(usize, usize)> = told.iter().filter_map(|t| t.cause.zip(t.cause_sent)).collect();
    let mut building = TraceBuilder::default();
    let mut sent: FxHashMap<(usize, usize), u32> = FxHashMap::default();
    let mut joins: Vec<(u32, u32, Joint)> = Vec::new();
    let mut heads = Vec::with_capacity(told.len());
    for (at, one) in told.iter().enumerate() {
        let unsaid = Step::new(StepKind::Start, one.actor.clone());
        let step = one.step.and_then(|i| schedule.steps.get(i)).unwrap_or(&unsaid);
        let kept = step.attrs.get(PRUNED) != Some(&Value::from(true));
        let actor = if one.actor.is_empty() { ENVIRONMENT } else { &one.actor };
        let head = building.push(actor, kind(step.kind), kept, content(step));
        heads.push(head);
        if let Some(send) = one.cause.zip(one.cause_sent).and_then(|cause| sent.get(&cause)) {
            let joint = if step.kind == StepKind::Timer { Joint::Timer } else { Joint::Replayed };
            joins.push((*send, head, joint));
        }
        for (nth, message) in one.sent.iter().enumerate() {
            if message.timer && !fired.contains(&(at, nth)) {
                continue;
            }
            let kind = if message.timer { Kind::TimerSet } else { Kind::Send };
            let from = (message.from != *actor).then(|| message.from.as_str().into());
            let content = Content {
                from,
                to: Some(message.to.as_str().into()),
                type_: Some(message.type_.as_str().into()),
                payload: Some(message.payload.as_str().into()),
                ..Content::default()
            };
            sent.insert((at, nth), building.push(actor, kind, kept, content));
        }
    }
    let mut builder = building.builder;
    joins.into_iter().for_each(|(send, receive, joint)| builder.join(send, receive, joint, true));
    let skeleton = builder.finish();
    let events = (0..skeleton.len() as u32).collect();
    let system = schedule.header.system.clone().unwrap_or_default();
    let violates = !schedule.header.violation.is_empty();
    let trace = Trace { system, skeleton, events, contents: building.contents };
    let instead_of = |step: &Step| step.attrs.get(INSTEAD_OF).and_then(Value::as_str).map(str::to_owned);
    let instead_of = schedule.steps.iter().map(instead_of).collect();
    Ok(Replayed { trace, told, instead_of, heads, violates })
}

/// Events are named by their place among those of their actor in the schedule, not in its log.
#[derive(Default)]
struct TraceBuilder {
    builder: Builder,
    contents: Vec<Content>,
    counts: FxHashMap<String, u64>,
}

impl TraceBuilder {
    fn push(&mut self, actor: &str, kind: Kind, kept: bool, content: Content) -> u32 {
        let count = self.counts.entry(actor.to_owned()).or_default();
        *count += 1;
        let id = EventId { actor: actor.to_owned(), incarnation: 0, seq: *count };
        self.contents.push(content);
        let e = self.builder.push(&id, kind, kept, false);
        if kind == Kind::Send {
            self.builder.open(e, Joint::InFlight);
        }
        e
    }
}

fn kind(step: StepKind) -> Kind {
    match step {
        StepKind::Start => Kind::Start,
        StepKind::External | StepKind::Send => Kind::Send,
        StepKind::Deliver => Kind::Receive,
        StepKind::Timer => Kind::TimerFire,
        StepKind::Crash => Kind::Crash,
        StepKind::Restart => Kind::Restart,
        StepKind::Isolate => Kind::Isolate,
        StepKind::Heal => Kind::Heal,
        // The copy that it sends stands beside it.
        StepKind::Duplicate => Kind::Action,
        StepKind::Stop => Kind::Stop,
        StepKind::Action => Kind::Action,
    }
}

fn content(step: &Step) -> Content {
    let boxed = |text: &Option<String>| text.as_deref().map(Box::from);
    Content {
        msg_id: boxed(&step.msg_id),
        from: boxed(&step.from),
        to: (!step.to.is_empty()).then(|| step.to.as_str().into()),
        type_: boxed(&step.type_),
        payload: boxed(&step.payload),
        fields: step.fields.as_ref().map(|f| f.to_string().into()),
        external: step.is_external(),
        source: boxed(&step.source),
        offset: step.offset,
        ..Content::default()
    }
}

impl Replayed {
    /// The data of the page; with a certificate, what breaks without each step is said.
    pub(crate) fn data(&self, name: &str, certificate: Option<&Certificate>) -> TraceData {
        let mut data = columns(name, &self.trace);
        let s = &self.trace.skeleton;
        let mut timeline = Timeline::default();
        for (told, &e) in self.told.iter().zip(&self.heads) {
            timeline.note(e, s.actor[e as usize], &told.state);
            let removal = told.step.and_then(|step| certificate?.removals.get(step));
            data.notes.extend(removal.map(|removal| (e, removal.why())));
            let step = told.step.and_then(|step| self.instead_of.get(step));
            if let Some(instead_of) = step.and_then(Option::as_ref) {
                data.deviations.push(e);
                data.notes.push((e, instead_of.clone()));
            }
        }
        data.changes = timeline.finish();
        data.states_from = "model";
        if self.violates {
            data.violations.extend(self.heads.last());
        }
        data
    }
}
