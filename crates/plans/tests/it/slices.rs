//! A build of what an engine fetches keeps what a build of everything keeps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use demi_common::sealed::SealedFile;
use demi_lineage::generate::Mix;
use demi_lineage::{BuildOptions, ViolationSpec, build, execution};
use demi_plans::{ClosedBy, Engine, Options, PlanError, Session};
use demi_schemas::summary::ProvenanceRule;

use crate::common::{Made, corpus, engines, generated, recorded};
use crate::topologies::{Faults, Running, Topology};

const INCLUSIVE: ProvenanceRule = ProvenanceRule::Inclusive;

/// The kept steps by what they are of, and how many events were kept.
fn kept(
    files: &[SealedFile],
    violation: &ViolationSpec,
    rule: ProvenanceRule,
    out: &Path,
) -> (BTreeSet<String>, u64, u64) {
    let options =
        BuildOptions { system: "s".into(), violation: violation.clone(), rule, ..BuildOptions::default() };
    let summary = build(files, &options, out, &mut |_| {}).unwrap();
    let schedule = execution::load_schedule(out, true).unwrap();
    let steps = schedule.steps.iter().map(|step| serde_json::to_value(step).unwrap());
    let named = steps.map(|mut step| {
        // The number of a step counts those before it, kept or not.
        step.as_object_mut().unwrap().remove("step");
        step.to_string()
    });
    (named.collect(), summary.kept, summary.kept_deliveries)
}

fn slice(
    made: &Made,
    engine: &mut dyn Engine,
    violation: &ViolationSpec,
    rule: ProvenanceRule,
    scratch: &Path,
) -> Vec<PathBuf> {
    let systems = ["s".to_owned()];
    let mut session = Session::open(engine, &made.store, &systems, Options::default(), scratch).unwrap();
    session.slices(&[("s".into(), violation.clone())], rule, u64::MAX).unwrap().swap_remove(0).files
}

fn compare(made: &Made, engine: &mut dyn Engine, violation: &ViolationSpec, what: &str) {
    let scratch = made.scratch();
    let all = made.store.event_files("s").unwrap();
    for rule in [ProvenanceRule::Inclusive, ProvenanceRule::Strict] {
        let files = slice(made, engine, violation, rule, scratch.path());
        let files: Vec<SealedFile> = files.into_iter().map(Into::into).collect();
        let whole = kept(&all, violation, rule, &scratch.path().join("whole"));
        let fetched = kept(&files, violation, rule, &scratch.path().join("fetched"));
        let name = engine.name();
        assert_eq!((fetched.1, fetched.2), (whole.1, whole.2), "{what}, {name}, {rule:?}");
        assert_eq!(fetched.0, whole.0, "{what}, {name}, {rule:?}");
    }
}

#[test]
fn a_build_of_a_slice_keeps_the_same() {
    let mut engines = engines();
    let base = Mix { actors: 8, events: 1200, ..Mix::default() };
    let mixes = [
        ("chatty", base.clone()),
        (
            "faults",
            Mix { seed: 1, loss: 0.05, duplicate: 0.05, restart: 0.01, in_order: false, ..base.clone() },
        ),
        ("outside", Mix { seed: 2, thread: 0.1, environment: 0.1, timer: 0.1, forward: 0.1, ..base.clone() }),
        ("spans", Mix { seed: 5, spans: 0.2, environment: 0.05, ..base.clone() }),
        ("clocks", Mix { seed: 4, clocks: true, hidden: 0.2, ..base }),
    ];
    for (what, mix) in mixes {
        let records = generated(&mix);
        let made = Made::of(&records);
        let ordinary = records.iter().filter(|record| !record.actor.starts_with('_'));
        let names: Vec<String> = ordinary.map(|record| record.id().to_string()).collect();
        let mut violations = vec![ViolationSpec::Recorded];
        violations.extend([5, 2, 1].map(|part| ViolationSpec::Event(names[names.len() / part - 1].clone())));
        violations.push(ViolationSpec::Event(format!(
            "{},{}",
            names[names.len() / 3],
            names[names.len() / 2]
        )));
        for violation in &violations {
            for engine in &mut engines {
                compare(&made, &mut **engine, violation, &format!("{what} {violation:?}"));
            }
        }
    }
}

#[test]
fn recorded_violations_keep_the_same() {
    let cases = corpus();
    let mut engines = if cases.is_empty() { Vec::new() } else { engines() };
    for case in &cases {
        let made = Made::of(&recorded(case));
        for engine in &mut engines {
            compare(&made, &mut **engine, &ViolationSpec::Recorded, &case.display().to_string());
        }
    }
}

#[test]
fn many_systems_are_one_loop() {
    let systems: Vec<String> =
        (0..std::env::var("DEMI_PLAN_SYSTEMS").ok().and_then(|n| n.parse().ok()).unwrap_or(6))
            .map(|n| format!("s{n}"))
            .collect();
    let mut engines = engines();
    if engines.is_empty() {
        return;
    }
    let mut made = Made::new();
    let mut wanted = Vec::new();
    for (n, system) in (0..).zip(&systems) {
        let records = generated(&Mix { seed: n, actors: 4, events: 150, ..Mix::default() });
        made.load(system, &records);
        wanted.push((system.clone(), ViolationSpec::Recorded));
    }
    systems.iter().for_each(|system| {
        made.refresh(system, false);
    });
    for engine in &mut engines {
        let scratch = made.scratch();
        let mut alone = Vec::new();
        let mut slowest = 0;
        for one in wanted.iter().take(6) {
            let names = [one.0.clone()];
            let mut session =
                Session::open(&mut **engine, &made.store, &names, Options::default(), scratch.path())
                    .unwrap();
            let slice =
                session.slices(std::slice::from_ref(one), INCLUSIVE, u64::MAX).unwrap().swap_remove(0);
            slowest = slice.summary.effort.rounds.max(slowest);
            alone.push(events_of(&slice.files, &scratch.path().join("alone")));
        }
        let mut session =
            Session::open(&mut **engine, &made.store, &systems, Options::default(), scratch.path()).unwrap();
        let slices = session.slices(&wanted, INCLUSIVE, u64::MAX).unwrap();
        if systems.len() <= 6 {
            assert_eq!(slices[0].summary.effort.rounds, slowest, "{}", engine.name());
        }
        for (slice, alone) in slices.iter().zip(&alone) {
            assert_eq!(events_of(&slice.files, &scratch.path().join("together")), *alone);
        }
    }
}

/// The kept steps of a build of these files.
fn events_of(files: &[PathBuf], out: &Path) -> BTreeSet<String> {
    let files: Vec<SealedFile> = files.iter().map(|file| file.clone().into()).collect();
    kept(&files, &ViolationSpec::Recorded, ProvenanceRule::Inclusive, out).0
}

#[test]
fn a_ring_is_handed_over_and_limits_are_kept() {
    let records: Vec<_> = Running::new(Topology::Ring, 60, 600, 0, Faults::default()).collect();
    let made = Made::of(&records);
    let last = records.last().unwrap().id().to_string();
    let query = made.query("s");
    let number = query.index().event(&last).unwrap();
    for engine in &mut engines() {
        let scratch = made.scratch();
        let options = Options { max_rounds: 8, ..Options::default() };
        let systems = ["s".to_owned()];
        let mut session =
            Session::open(&mut **engine, &made.store, &systems, options, scratch.path()).unwrap();
        let (answers, effort) = session.past_answers("s", std::slice::from_ref(&last)).unwrap();
        assert_eq!((effort.rounds, effort.closed_by), (8, ClosedBy::Driver));
        assert_eq!(answers[0], query.past(number).unwrap());
        let refused = session.slices(&[("s".into(), ViolationSpec::Event(last.clone()))], INCLUSIVE, 100);
        assert!(matches!(refused, Err(PlanError::TooMany { events: 600, limit: 100 })), "{refused:?}");
        let unknown =
            session.slices(&[("s".into(), ViolationSpec::Event("nobody/3".into()))], INCLUSIVE, 100);
        assert!(unknown.unwrap_err().to_string().contains("no log of actor 'nobody'"));
        let text = session.slices(&[("s".into(), ViolationSpec::Unknown("text:x".into()))], INCLUSIVE, 100);
        assert!(text.unwrap_err().to_string().contains("which no engine has"));
    }
}

#[test]
fn without_tables_the_way_is_told() {
    for engine in &mut engines() {
        let mut made = Made::new();
        made.load("s", &generated(&Mix { events: 50, ..Mix::default() }));
        let scratch = made.scratch();
        let systems = ["s".to_owned()];
        let opened = Session::open(&mut **engine, &made.store, &systems, Options::default(), scratch.path());
        let Err(error) = opened else { panic!("there are no tables") };
        assert!(error.to_string().contains("lineage refresh --store"), "{error}");
    }
}
