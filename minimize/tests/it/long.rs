//! Long recordings: what a share of the budget does not get far with is gone on with, and nothing is done outside the
//! budget that takes as long as the square of their length.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_akka_raft::AkkaRaft;
use demi_check::verify;
use demi_minimize::Meter;
use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_replay::Simulator;
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::names::Names;
use demi_schemas::certificate::Removal;
use demi_schemas::{Certificate, Scenario};

const RAFT_66: &str = include_str!("../../../replay/scenarios/raft-66.toml");

struct Long {
    sim: Simulator<AkkaRaft>,
    found: Found,
}

impl Long {
    /// An execution of nine thousand deliveries, after some of which thousands of messages are on their way.
    fn made() -> Long {
        let scenario = Scenario::parse(RAFT_66).unwrap();
        let mut names = Names::default();
        let model = AkkaRaft::new(&scenario, &mut names).unwrap();
        let mut sim = Simulator::new(model, names, &scenario).unwrap();
        let limits = FuzzOptions::new(11, 20_000, 11_250);
        let found = fuzz(&mut sim, &scenario, &limits, &mut |_| true).unwrap().unwrap();
        assert!(found.deliveries > 9_000, "{}", found.deliveries);
        Long { sim, found }
    }

    fn minimized(&self, budget: Budget) -> Outcome {
        let options = Options {
            rule: self.found.schedule.header.network.unwrap(),
            budget,
            jobs: 2,
            phases: Phases::All,
            objective: Objective::Steps,
            stop: StopFlag::default(),
        };
        minimize(&self.sim, &self.found.schedule, None, &options, &|_| {}).unwrap()
    }
}

#[test]
fn a_long_recording_becomes_short() {
    let long = Long::made();
    // Each of the first twelve starts may make a tenth to a quarter of the steps of one test of the whole; after them
    // 5,582 deliveries are left.
    let done = long.minimized(Budget::States(1_000_000));
    assert!(done.summary.deliveries <= 60, "{}", done.summary.deliveries);

    // What is left where the budget ends at once is as long as the recording, and its certificate claims no more than
    // that it violates.
    let done = long.minimized(Budget::Replays(1));
    assert!(done.summary.deliveries > 5_000 && !done.summary.one_minimal);
    assert!(done.certificate.removals.is_empty());
    let mut meter = Meter::new(Budget::Seconds(1e6), StopFlag::default());
    let lines = verify(&long.sim, &done.schedule, &done.certificate, &mut meter).unwrap();
    assert!(lines.iter().any(|line| line.contains("no single removals were tried")), "{lines:?}");
    let mut claimed = done.certificate.clone();
    claimed.deliveries -= 1;
    assert!(verify(&long.sim, &done.schedule, &claimed, &mut meter).is_err());
    // What claims some removals claims all.
    let some =
        Removal { step: 1, violates: false, impossible: None, digest: String::new(), breaks_others: false };
    let claimed = Certificate { removals: vec![some], ..done.certificate };
    assert!(verify(&long.sim, &done.schedule, &claimed, &mut meter).is_err());
}
