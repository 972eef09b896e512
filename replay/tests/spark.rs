//! The recorded executions of Spark: the model follows them, and breaks the invariant only with the bug.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::path::{Path, PathBuf};

use demi_replay::models::{Visitor, with_model};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::event::{ENVIRONMENT, MONITOR};
use demi_schemas::schedule::Sent;
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{EventRecord, Kind, Scenario, Schedule, Step, StepKind, Via};

fn recorded(case: &str) -> Option<PathBuf> {
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
fn schedule(folder: &Path) -> Schedule {
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(folder.join("logs")).unwrap().map(|e| e.unwrap().path()).collect();
    logs.sort();
    let mut steps: Vec<Step> = Vec::new();
    let (mut violation, mut via) = (Vec::new(), std::collections::BTreeMap::new());
    for log in logs {
        let mut open = None;
        for line in std::fs::read_to_string(log).unwrap().lines() {
            let r = EventRecord::parse(line.as_bytes()).unwrap();
            if r.actor == MONITOR {
                let fields = r.fields.unwrap();
                violation = fields["fingerprints"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|f| f.as_str().unwrap().to_owned())
                    .collect();
                continue;
            }
            if let (Kind::Send, Some(id), Some(how)) = (r.kind, &r.msg_id, r.via) {
                via.insert(id.clone(), how);
            }
            let kind = match r.kind {
                Kind::Receive => StepKind::Deliver,
                Kind::Action => StepKind::Action,
                Kind::Send if r.actor == ENVIRONMENT => StepKind::External,
                Kind::Send if r.via == Some(Via::Thread) => StepKind::Send,
                Kind::Send => {
                    let sent = Sent {
                        from: r.from,
                        to: r.to.unwrap(),
                        type_: r.type_,
                        msg_id: r.msg_id,
                        payload: r.payload.unwrap(),
                        via: r.via,
                        timer: None,
                    };
                    let open: usize = open.unwrap();
                    steps[open].sends.push(sent);
                    continue;
                }
                other => panic!("{other:?}"),
            };
            let mut step =
                Step::new(kind, if kind == StepKind::Action { "" } else { r.to.as_deref().unwrap() });
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

struct Replay<'a>(&'a Schedule, ReplayOptions);

impl Visitor for Replay<'_> {
    type Output = ReplaySummary;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        replay(&mut sim, self.0, &self.1).unwrap()
    }
}

fn run(schedule: &Schedule, scenario: &Scenario) -> ReplaySummary {
    let interval = scenario.invariant_check_interval.unwrap();
    let options = ReplayOptions { rule: scenario.network, strict: false, interval };
    with_model(scenario, Replay(schedule, options)).unwrap()
}

fn conforms(case: &str, switch: &str, deliveries: u64, violation: &str) {
    let Some(folder) = recorded(case) else { return };
    let text = std::fs::read_to_string(folder.join("scenario.toml")).unwrap();
    let schedule = schedule(&folder);
    let buggy = run(&schedule, &Scenario::parse(&text).unwrap());
    assert_eq!((buggy.deliveries, buggy.divergences), (deliveries, 0), "{:?}", buggy.first_divergence);
    assert_eq!(
        (buggy.violation.as_slice(), buggy.matches_recorded),
        (&[violation.to_owned()][..], Some(true))
    );
    let mended = text.replace(&format!("{switch} = true"), "");
    assert_ne!(mended, text);
    let mended = run(&schedule, &Scenario::parse(&mended).unwrap());
    assert_eq!((mended.deliveries, mended.divergences), (deliveries, 0), "{:?}", mended.first_divergence);
    assert_eq!(mended.verdict, Verdict::DoesNotViolate);
    // A copy of a timer may have been withheld when the recording ended.
    assert!(buggy.unrecorded_sends <= 1, "{}", buggy.unrecorded_sends);
}

#[test]
fn spark_9256_conforms() {
    conforms("spark-9256", "spark9256_duplicate_registration", 300, "DuplicateFileCrash");
}

#[test]
fn spark_2294_conforms() {
    conforms("spark-2294", "spark2294_one_list_removal", 1000, "LocalityInversion:0.0");
}
