//! Recorded executions as schedules, read from logs without any order between actors.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "shared with other tests and benchmarks"
)]

use std::path::{Path, PathBuf};

use demi_schemas::event::{ENVIRONMENT, ViolationFields};
use demi_schemas::schedule::Sent;
use demi_schemas::{EventRecord, Kind, Schedule, Step, StepKind, Via};

/// The folder of a recorded case, or nothing where recordings are not at hand.
pub fn recorded(case: &str) -> Option<PathBuf> {
    let corpus = std::env::var_os("DEMI_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus"), PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let found = [corpus, beside].into_iter().map(|c| c.join("demi").join(case)).find(|c| c.is_dir());
    if found.is_none() {
        println!("SKIPPED: no recording {case} (set DEMI_CORPUS)");
    }
    found
}

/// The steps of a recording, one actor after the other: no order between actors is given.
pub fn schedule(folder: &Path) -> Schedule {
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(folder.join("logs")).unwrap().map(|e| e.unwrap().path()).collect();
    logs.sort();
    let read = |log: &PathBuf| std::fs::read_to_string(log).unwrap();
    let parse = |text: String| text.lines().map(|l| EventRecord::parse(l.as_bytes()).unwrap()).collect();
    from_records(logs.iter().map(read).map(parse).collect())
}

/// The steps that logs tell of, one log after the other.
pub fn from_records(logs: Vec<Vec<EventRecord>>) -> Schedule {
    let mut steps: Vec<Step> = Vec::new();
    let mut violation = Vec::new();
    let mut via = std::collections::BTreeMap::new();
    for log in logs {
        let mut open = None;
        for r in log {
            if let (Kind::Send, Some(id), Some(how)) = (r.kind, &r.msg_id, r.via) {
                via.insert(id.clone(), how);
            }
            let kind = match r.kind {
                Kind::Receive => StepKind::Deliver,
                Kind::Action => StepKind::Action,
                Kind::Isolate => StepKind::Isolate,
                Kind::Heal => StepKind::Heal,
                Kind::Stop => StepKind::Stop,
                Kind::Send if r.actor == ENVIRONMENT => StepKind::External,
                Kind::Send if r.via == Some(Via::Thread) => StepKind::Send,
                Kind::Send => {
                    let (type_, msg_id, payload) = (r.type_, r.msg_id, r.payload.unwrap());
                    let sent = Sent {
                        from: r.from,
                        to: r.to.unwrap(),
                        type_,
                        msg_id,
                        payload,
                        via: r.via,
                        timer: None,
                    };
                    let open: usize = open.unwrap();
                    steps[open].sends.push(sent);
                    continue;
                }
                Kind::Violation => {
                    let found: ViolationFields = serde_json::from_value(r.fields.unwrap()).unwrap();
                    violation = found.fingerprints;
                    continue;
                }
                other => panic!("{other:?}"),
            };
            let to = match kind {
                StepKind::Action => "",
                _ => r.to.as_deref().unwrap_or(&r.actor),
            };
            let mut step = Step::new(kind, to);
            if !matches!(kind, StepKind::Send | StepKind::External) {
                open = Some(steps.len());
            }
            step.event = Some(r.id().to_string());
            (step.from, step.type_, step.msg_id, step.payload) = (r.from, r.type_, r.msg_id, r.payload);
            (step.external, step.via, step.fields) = (r.external, r.via, r.fields);
            steps.push(step);
        }
    }
    for step in &mut steps {
        if let Some(how) = step.msg_id.as_ref().and_then(|id| via.get(id)) {
            step.via = Some(*how);
        }
    }
    let mut schedule = Schedule::new(steps);
    schedule.header.conformance = true;
    schedule.header.violation = violation;
    schedule
}
