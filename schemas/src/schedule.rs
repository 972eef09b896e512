//! The schedule file `demi-schedule/1`: JSON lines, a header and then one step a line.
//!
//! Steps name messages by content (from, to, type, payload), never by an id of one run, so that a schedule
//! survives a changed program. A schedule lifted from logs also carries what the log says each step sent,
//! which is what conformance checking compares.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{DEAD_LETTERS, TimerInfo, Via};
use crate::scenario::NetworkRule;

/// The `schema` value of the header of this version.
pub const SCHEDULE_SCHEMA: &str = "demi-schedule/1";

/// First line of a schedule file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleHeader {
    /// `demi-schedule/1`.
    pub schema: String,
    /// The recorded system, if the schedule came from logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The network rule under which the schedule was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRule>,
    /// Fingerprints of the violation that the schedule is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violation: Vec<String>,
    /// The actors that the violation names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<String>,
    /// Number of deliveries, timers and external deliveries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<u64>,
    /// Whether steps carry what the log says they sent (`sends`), so that conformance can be checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conformance: bool,
    /// Whether the steps are all that happens, each as it stands: no actor starts but where a step says so, and every failure and restart is
    /// one of its own. Without it a schedule in which nobody starts begins with the start of every actor, and a failure or a restart may
    /// only tell what an earlier step brought about, as logs do. `minimize` writes it where it matters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// Names of timers whose settings the log records (`timer_sets`); others are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers_recorded: Vec<String>,
    /// Fields this version does not know, kept as they came.
    #[serde(flatten)]
    pub attrs: BTreeMap<String, Value>,
}

/// The field of a step that left the default order of an exploration: what would have come instead.
pub const INSTEAD_OF: &str = "instead_of";

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Start the actor `to`.
    Start,
    /// Put a message from outside among the pending ones; its delivery is a `deliver` step.
    External,
    /// A thread of the actor `from` sent a message outside any handler; the model sends it by itself.
    Send,
    /// Deliver a pending message.
    #[serde(alias = "receive")]
    Deliver,
    /// Let a timer of `to` fire.
    #[serde(alias = "timer_fire")]
    Timer,
    /// The actor `to` fails.
    Crash,
    /// The actor `to` begins a new, blank incarnation.
    Restart,
    /// The actor `to` is cut off from the network.
    Isolate,
    /// The actor `to`, which was cut off, is back on the network.
    Heal,
    /// The network makes a second copy of a pending message. Both are then delivered by a `deliver` step each.
    Duplicate,
    /// The actor `to` is gone for good.
    Stop,
    /// Code outside the actors runs.
    Action,
}

impl StepKind {
    /// Whether the step counts as a delivery: a message (external ones included) or a timer.
    #[must_use]
    pub fn is_delivery(self) -> bool {
        matches!(self, StepKind::Deliver | StepKind::Timer)
    }
}

/// A message that the log says a step sent, or a timer it says the step set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// Sender address as logged, where it is not the step's own actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Receiver.
    pub to: String,
    /// Message type tag.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Its number in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<String>,
    /// Full content.
    #[serde(default)]
    pub payload: String,
    /// Set where `from` is not the actor that sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The timer, for an entry of `timer_sets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerInfo>,
}

/// One step of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// Sender address; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The actor it happens at.
    #[serde(default, skip_serializing_if = "String::is_empty", alias = "actor")]
    pub to: String,
    /// Message type tag; for timers what they carry; for actions what is run.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The message's number in the log. Steps are never matched by it: it tells in which order messages were sent,
    /// where logs number them so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<String>,
    /// Full content of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The masked content by which it is matched; `payload` under the scenario's masks where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Whether it came from outside: the message, the fault, the start. Where nothing is said, messages did not,
    /// faults and starts did; `false` marks a failure or a new incarnation that the actor brought about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<bool>,
    /// Whether the copy that the network made is delivered, where the message itself may be pending too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copy: bool,
    /// Set where `from` is not the actor that sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// Structured content, from which a model re-creates an external message or runs an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
    /// What is known of the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerInfo>,
    /// What the log says was sent while handling this step, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends: Vec<Sent>,
    /// Timers the log says were set while handling this step, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timer_sets: Vec<Sent>,
    /// The logged event this step replays, as `ACTOR/SEQ`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// File of the raw log line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Byte offset of the raw log line in `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Fields this version does not know, kept as they came.
    #[serde(flatten)]
    pub attrs: BTreeMap<String, Value>,
}

impl Step {
    /// A step of that kind at that actor, with nothing else said.
    #[must_use]
    pub fn new(kind: StepKind, to: impl Into<String>) -> Self {
        Step {
            kind,
            from: None,
            to: to.into(),
            type_: None,
            msg_id: None,
            payload: None,
            fingerprint: None,
            external: None,
            copy: false,
            via: None,
            fields: None,
            timer: None,
            sends: Vec::new(),
            timer_sets: Vec::new(),
            event: None,
            source: None,
            offset: None,
            attrs: BTreeMap::new(),
        }
    }
}

impl Step {
    /// Whether it counts as an external event: a delivered message from outside, or a fault, a start or an action
    /// that nobody inside brought about. Putting a message among the pending ones does not count.
    #[must_use]
    pub fn is_external(&self) -> bool {
        match self.kind {
            StepKind::Deliver => self.external == Some(true),
            StepKind::Timer | StepKind::External | StepKind::Send => false,
            _ => self.external != Some(false),
        }
    }
}

/// A header and steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// What the schedule is about.
    pub header: ScheduleHeader,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

/// An error of reading a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is nothing in it.
    #[error("empty: expected a header line {{\"schema\":\"{SCHEDULE_SCHEMA}\"}} and one step per line")]
    Empty,
    /// The header names another version.
    #[error("line 1: schema is '{0}', this version reads '{SCHEDULE_SCHEMA}'")]
    Version(String),
    /// A line is not what it should be.
    #[error("line {line}: {reason}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl Schedule {
    /// A schedule with an otherwise empty header of this version.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        let header = ScheduleHeader { schema: SCHEDULE_SCHEMA.into(), ..ScheduleHeader::default() };
        Schedule { header, steps }
    }

    /// Number of deliveries: messages, external messages and timers.
    #[must_use]
    pub fn deliveries(&self) -> usize {
        self.steps.iter().filter(|s| s.kind.is_delivery()).count()
    }

    /// Number of external events as DEMi counts them: delivered external messages and started actors, and with
    /// them every injected crash, restart, isolation, stop and action.
    #[must_use]
    pub fn externals(&self) -> usize {
        self.steps.iter().filter(|s| s.is_external()).count()
    }

    /// Reads a schedule file. Lines that hold steps alone, without a header, are read too: hand-written
    /// schedules often have none. Empty lines are skipped.
    ///
    /// # Errors
    /// On the first line that is neither, or on a header of another version.
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()).peekable();
        let (first_no, first) = *lines.peek().ok_or(ScheduleError::Empty)?;
        let value: Value = serde_json::from_str(first)
            .map_err(|e| ScheduleError::Line { line: first_no + 1, reason: format!("not JSON: {e}") })?;
        let header = if value.get("kind").is_some() {
            Schedule::new(Vec::new()).header
        } else {
            lines.next();
            match value.get("schema").and_then(Value::as_str) {
                Some(SCHEDULE_SCHEMA) => {}
                Some(other) => return Err(ScheduleError::Version(other.to_owned())),
                None => {
                    let reason = format!("the header has no \"schema\":\"{SCHEDULE_SCHEMA}\"");
                    return Err(ScheduleError::Line { line: first_no + 1, reason });
                }
            }
            serde_json::from_value(value)
                .map_err(|e| ScheduleError::Line { line: first_no + 1, reason: e.to_string() })?
        };
        let steps = lines
            .map(|(no, line)| {
                let bad = |reason: String| ScheduleError::Line { line: no + 1, reason };
                let mut step: Step = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
                if step.to.is_empty() && step.kind != StepKind::Action {
                    return Err(bad("the step names no actor ('to')".into()));
                }
                // Records of messages from outside may leave the flag out: the sender tells.
                let from_nobody = step.kind == StepKind::Deliver
                    && step.from.as_deref() == Some(DEAD_LETTERS)
                    && step.via.is_none();
                if step.kind == StepKind::External || (from_nobody && step.external.is_none()) {
                    step.external = Some(true);
                }
                Ok(step)
            })
            .collect::<Result<_, _>>()?;
        Ok(Schedule { header, steps })
    }

    /// The text of the schedule file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = to_json(&self.header);
        text.push('\n');
        for step in &self.steps {
            text.push_str(&to_json(step));
            text.push('\n');
        }
        text
    }
}

/// JSON of one of our own types; these have string keys only, so it cannot fail.
fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_counts() {
        let mut deliver = Step::new(StepKind::Deliver, "a");
        deliver.from = Some(DEAD_LETTERS.into());
        deliver.external = Some(true);
        deliver.payload = Some("P".into());
        let steps = vec![
            Step::new(StepKind::Start, "a"),
            Step { kind: StepKind::External, ..deliver.clone() },
            deliver,
            Step::new(StepKind::Timer, "a"),
            Step { external: Some(false), ..Step::new(StepKind::Crash, "a") },
        ];
        let schedule = Schedule::new(steps);
        assert_eq!((schedule.deliveries(), schedule.externals()), (2, 2));
        assert_eq!(Schedule::parse(&schedule.to_text()).unwrap(), schedule);
    }

    #[test]
    fn other_versions_and_broken_lines_are_named() {
        assert_eq!(Schedule::parse("\n"), Err(ScheduleError::Empty));
        assert!(matches!(Schedule::parse(r#"{"schema":"demi-schedule/9"}"#), Err(ScheduleError::Version(_))));
        let text = "{\"schema\":\"demi-schedule/1\"}\n{\"kind\":\"deliver\",\"to\":\"a\"}\n{\"kind\":\"leap\",\"to\":\"a\"}";
        let error = Schedule::parse(text).unwrap_err().to_string();
        assert!(error.starts_with("line 3:") && error.contains("leap"), "{error}");
    }

    #[test]
    fn steps_without_a_header_are_read() {
        let text = r#"{"kind":"receive","from":"deadLetters","to":"a","type":"T","payload":"P"}"#;
        let schedule = Schedule::parse(text).unwrap();
        assert_eq!(schedule.steps[0].kind, StepKind::Deliver);
        assert!(schedule.steps[0].is_external());
    }
}
