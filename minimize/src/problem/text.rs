//! Schedules as text: what a simulator executed, written so that any other can replay it.

use demi_replay::model::ExternalMessage;
use demi_replay::script::Act;
use demi_replay::{Model, Simulator};
use demi_schemas::NetworkRule;
use demi_schemas::event::{DEAD_LETTERS, TimerInfo};
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
                Act::Heal(a) => Step::new(StepKind::Heal, name(*a)),
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
                Act::Deliver(want) | Act::Duplicate(want) => {
                    let payload = sim.text(want.payload).to_owned();
                    let kind = match act {
                        Act::Duplicate(_) => StepKind::Duplicate,
                        _ if want.timer => StepKind::Timer,
                        _ => StepKind::Deliver,
                    };
                    let mut step = Step::new(kind, name(want.to));
                    step.from = Some(name(want.from));
                    step.type_ = Some(sim.text(want.type_).to_owned());
                    // Readers take messages from nobody for external ones unless told otherwise.
                    let nobody = !want.timer && step.from.as_deref() == Some(DEAD_LETTERS);
                    let told = kind == StepKind::Deliver && (nobody || want.external.is_some());
                    step.timer = want.which.map(|name| TimerInfo {
                        name: Some(sim.text(name).to_owned()),
                        ..TimerInfo::default()
                    });
                    step.copy = kind == StepKind::Deliver && want.copy;
                    step.external = told.then_some(want.external.is_some());
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
    // Where it would be read as something else otherwise.
    let starts = acts.iter().any(|act| matches!(act, Act::Start(_)));
    let fails = acts.iter().any(|act| matches!(act, Act::Crash(_) | Act::Restart(_)));
    schedule.header.exact = fails || !starts && !sim.model().runtime().starts_by_itself();
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

/// Collects the fields of the external messages of a schedule, under the content that it gives them and under the one
/// that the model writes: the two differ where a scenario shortens payloads, and results are written in the model's.
#[must_use]
pub fn fields_of<M: Model>(sim: &Simulator<M>, schedule: &Schedule) -> Fields {
    let mut names = sim.names().clone();
    let mut all = Fields::new();
    let external =
        |s: &&Step| s.external == Some(true) && matches!(s.kind, StepKind::Deliver | StepKind::External);
    for step in schedule.steps.iter().filter(external) {
        let Some(fields) = &step.fields else { continue };
        let payload = step.payload.as_deref().unwrap_or("");
        let type_ = step.type_.as_deref().unwrap_or("");
        let message = ExternalMessage { type_, payload, fields: Some(fields) };
        if let Ok(msg) = sim.model().logs().external(message, &mut names) {
            let written = sim.model().logs().payload(&msg, &names);
            all.insert(payload_key(&step.to, &written), fields.clone());
        }
        all.insert(payload_key(&step.to, payload), fields.clone());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use demi_akka_raft::AkkaRaft;
    use demi_replay::Names;
    use demi_replay::script::{Script, Want};
    use demi_schemas::Scenario;

    /// A recording of two members lists them in its payload. The scenario has nine, and its payloads list none: read
    /// without its fields the written message would mean all nine.
    #[test]
    fn written_messages_keep_their_fields_where_the_model_writes_less() {
        let text = "model = \"akka-raft\"\nmembers = 9\nnetwork = \"unordered\"\n\
                    [payload]\nbare_change_configuration = true";
        let scenario = Scenario::parse(text).unwrap();
        let mut names = Names::default();
        let model = AkkaRaft::new(&scenario, &mut names).unwrap();
        let mut sim = Simulator::new(model, names, &scenario).unwrap();
        let mut step = Step::new(StepKind::Deliver, "raft-member-1");
        step.type_ = Some("ChangeConfiguration".to_owned());
        let members = "Set(raft-member-1, raft-member-2)";
        step.payload = Some(format!("ChangeConfiguration(StableRaftConfiguration({members}))"));
        (step.from, step.external) = (Some(DEAD_LETTERS.to_owned()), Some(true));
        step.fields = Some(serde_json::json!({"members": ["raft-member-1", "raft-member-2"]}));
        let start = Step::new(StepKind::Start, "raft-member-1");
        let recorded = Schedule::new(vec![start, step]);

        let mut world = sim.empty_world();
        let (script, _) = Script::compile(&mut sim, &recorded).unwrap();
        script.acts[0].perform(&mut sim, &mut world, &[], NetworkRule::Unordered).unwrap();
        let Act::Deliver(want) = &script.acts[1] else { panic!() };
        let at = want.locate(&mut sim, &mut world, NetworkRule::Unordered).unwrap();
        let done = Act::Deliver(Want::of(&sim, &world, &world.pending()[at]));

        let fields = fields_of(&sim, &recorded);
        let written = to_schedule(&sim, &[done], &[], &fields, NetworkRule::Unordered, &[]);
        assert_eq!(written.steps[0].payload.as_deref(), Some("ChangeConfiguration"));
        assert_eq!(written.steps[0].fields, recorded.steps[1].fields);
    }
}
