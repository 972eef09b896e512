//! Certificates: what is written holds when it is checked from scratch, and what is changed does not.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_akka_raft::AkkaRaft;
use demi_check::{CertificateError, certify, verify};
use demi_minimize::Meter;
use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::names::Names;
use demi_replay::{Model, Simulator};
use demi_schemas::schedule::StepKind;
use demi_schemas::{Certificate, Scenario, Schedule};

const RAFT: &str = include_str!("../../../replay/scenarios/raft-46.toml");
const RAFT_56: &str = include_str!("../../../replay/scenarios/raft-56.toml");

fn raft(scenario: &str) -> Simulator<AkkaRaft> {
    let scenario = Scenario::parse(scenario).unwrap();
    let mut names = Names::default();
    let model = AkkaRaft::new(&scenario, &mut names).unwrap();
    Simulator::new(model, names, &scenario).unwrap()
}

fn meter() -> Meter {
    Meter::new(Budget::Seconds(1e6), StopFlag::default())
}

fn check(schedule: &Schedule, certificate: &Certificate) -> Result<Vec<String>, CertificateError> {
    verify(&raft(RAFT), schedule, certificate, &mut meter())
}

/// The result of the first find of a seed.
fn minimized(scenario: &str, deliveries: u64) -> Outcome {
    let sim = raft(scenario);
    let scenario = Scenario::parse(scenario).unwrap();
    let limits = FuzzOptions::new(1, 200_000, deliveries);
    let found = fuzz(&mut sim.clone(), &scenario, &limits, &mut |_| true).unwrap().unwrap();
    let recorded = crate::recorded::schedule(&found);
    let options = Options {
        rule: scenario.network,
        budget: Budget::Replays(400_000),
        jobs: 2,
        phases: Phases::All,
        objective: Objective::Steps,
        stop: StopFlag::default(),
    };
    minimize(&sim, &recorded, None, &options, &|_| {}).unwrap()
}

#[test]
fn raft_56_takes_twenty_one_deliveries() {
    let done = minimized(RAFT_56, 3_000);
    let shortest = done.certificate.shortest.clone().unwrap();
    assert_eq!((done.summary.deliveries, done.summary.externals), (21, 8));
    assert_eq!((shortest.at_least, shortest.optimal, shortest.starts_at_any_time), (21, true, true));
    let lines = verify(&raft(RAFT_56), &done.schedule, &done.certificate, &mut meter()).unwrap();
    assert!(lines.last().unwrap().contains("fewer than 21"), "{lines:?}");
}

#[test]
fn what_was_proven_holds_and_what_is_changed_does_not() {
    let (sim, rule) = (raft(RAFT), Scenario::parse(RAFT).unwrap().network);
    let done = minimized(RAFT, 400);
    let shortest = done.certificate.shortest.clone().unwrap();
    assert_eq!((done.schedule.deliveries(), shortest.at_least, shortest.optimal), (22, 22, true));
    assert_eq!(sim.model().actors().len(), 4);
    let lines = check(&done.schedule, &done.certificate).unwrap();
    assert!(lines.last().unwrap().contains("fewer than 22"), "{lines:?}");

    let refused = |change: &dyn Fn(&mut Certificate), word: &str| {
        let mut certificate = done.certificate.clone();
        change(&mut certificate);
        let error = check(&done.schedule, &certificate).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&|c| c.schema = "demi-certificate/9".into(), "demi-certificate/9");
    refused(&|c| c.deliveries = 20, "22 deliveries");
    refused(&|c| c.removals[3].digest = "0".into(), "as written");
    refused(&|c| c.shortest.as_mut().unwrap().at_least = 23, "at least");
    refused(&|c| c.shortest.as_mut().unwrap().externals.clear(), "external messages");
    assert!(shortest.starts_at_any_time);
    let mut of_first = done.certificate.clone();
    of_first.shortest.as_mut().unwrap().starts_at_any_time = false;
    let lines = check(&done.schedule, &of_first).unwrap();
    assert!(lines.last().unwrap().contains("in which all actors start first"), "{lines:?}");
    refused(
        &|c| {
            let shortest = c.shortest.as_mut().unwrap();
            (shortest.at_least, shortest.optimal) = (23, false);
        },
        "a violating execution of 22 deliveries",
    );

    // A step that does nothing: some removal violates then.
    let mut longer = done.schedule.clone();
    let timer = longer.steps.iter().position(|s| s.kind == StepKind::Timer).unwrap();
    let mut extra = longer.steps[timer].clone();
    extra.payload = Some("StateTimeout".into());
    longer.steps.insert(timer + 1, extra);
    assert!(check(&longer, &done.certificate).is_err());
    // A certificate that says so holds, for it claims no more; one that denies it does not.
    let mut honest =
        certify(&sim, &longer, rule, &done.certificate.violation, ("", false), None, &meter()).unwrap();
    let idle = honest.removals.iter().position(|r| r.violates).unwrap();
    assert_eq!(honest.removals[idle].why(), "without it the rest still violates");
    let lines = check(&longer, &honest).unwrap();
    assert!(lines.iter().any(|line| line.contains("not 1-minimal")), "{lines:?}");
    honest.removals[idle].violates = false;
    let error = check(&longer, &honest).unwrap_err().to_string();
    assert_eq!(error, format!("without step {} the rest still violates", idle + 1));
    // A budget that is too small is said to be.
    for (budget, error) in
        [(Budget::Seconds(0.0), CertificateError::Removals), (Budget::States(10), CertificateError::Budget)]
    {
        let mut none = Meter::new(budget, StopFlag::default());
        let result = verify(&raft(RAFT), &done.schedule, &done.certificate, &mut none);
        assert_eq!(result, Err(error));
    }
}
