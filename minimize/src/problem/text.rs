//! Schedules as text: what a simulator executed, written so that any other can replay it.

use demi_replay::script::Act;
use demi_replay::{Model, Simulator};
use demi_schemas::NetworkRule;
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};

/// Structured content of external messages, so that a schedule file can carry it on.
pub type Fields = std::collections::BTreeMap<String, serde_json::Value>;

/// The steps of a script as text. An external message is one `deliver` step: replay injects it where it stands.
pub fn to_schedule<M: Model>(
    sim: &Simulator<M>,
    acts: &[Act],
    actions: &[(String, Option<serde_json::Value>)],
    fields: &Fields,
    rule: NetworkRule,
    violation: &[String],
) -> Schedule {
    let name = |actor| sim.names().get(actor).to_owned();
    let steps = acts
        .iter()
        .filter_map(|act| {
            Some(match act {
                Act::Start(a) => Step::new(StepKind::Start, name(*a)),
                Act::Crash(a) => Step::new(StepKind::Crash, name(*a)),
                Act::Restart(a) => Step::new(StepKind::Restart, name(*a)),
                Act::Isolate(a) => Step::new(StepKind::Isolate, name(*a)),
                Act::Stop(a) => Step::new(StepKind::Stop, name(*a)),
                Act::Inject(..) | Act::Noted(_) | Act::Sent => return None,
                Act::Action(index) => {
                    let (what, fields) = actions.get(*index as usize)?;
                    Step {
                        type_: Some(what.clone()),
                        fields: fields.clone(),
                        ..Step::new(StepKind::Action, "")
                    }
                }
                Act::Deliver(want) => {
                    let payload = sim.text(want.payload).to_owned();
                    let kind = if want.timer { StepKind::Timer } else { StepKind::Deliver };
                    let mut step = Step::new(kind, name(want.to));
                    step.from = Some(name(want.from));
                    step.type_ = Some(sim.text(want.type_).to_owned());
                    // Readers take messages from nobody for external ones unless told otherwise.
                    let nobody = !want.timer && step.from.as_deref() == Some(DEAD_LETTERS);
                    step.external = (nobody || want.external.is_some()).then_some(want.external.is_some());
                    step.fields = want
                        .external
                        .and_then(|_| fields.get(&payload_key(&name(want.to), &payload)))
                        .cloned();
                    // What logs do not show is told by the fingerprint.
                    let fingerprint = sim.text(want.fingerprint);
                    let shown = sim.masked(sim.text(want.type_), &payload);
                    step.fingerprint = (shown != fingerprint).then(|| fingerprint.to_owned());
                    step.payload = Some(payload);
                    step
                }
            })
        })
        .collect();
    let mut schedule = Schedule::new(steps);
    schedule.header.network = Some(rule);
    schedule.header.violation = violation.to_vec();
    schedule.header.deliveries = Some(schedule.deliveries() as u64);
    schedule
}

/// Under which key the fields of an external message are kept.
#[must_use]
pub fn payload_key(to: &str, payload: &str) -> String {
    format!("{to} {payload}")
}

/// Collects the fields of the external messages of a schedule.
#[must_use]
pub fn fields_of(schedule: &Schedule) -> Fields {
    schedule
        .steps
        .iter()
        .filter(|s| s.external == Some(true) && matches!(s.kind, StepKind::Deliver | StepKind::External))
        .filter_map(|s| Some((payload_key(&s.to, s.payload.as_deref().unwrap_or("")), s.fields.clone()?)))
        .collect()
}
