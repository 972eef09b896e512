use std::collections::BTreeMap;

use demi_schemas::schedule::StepKind;
use demi_schemas::{EventRecord, Kind, NetworkRule, Scenario};
use proptest::prelude::*;

use demi_included::{Visitor, with_model};
use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, fuzz};
use demi_replay::{Model, Simulator};

struct Fuzz<'a>(&'a Scenario, FuzzOptions);

impl Visitor for Fuzz<'_> {
    type Output = Option<Found>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Option<Found> {
        fuzz(&mut sim, self.0, &self.1, &mut |_| true).unwrap()
    }
}

fn try_fuzz(scenario: &Scenario, seed: u64, runs: u64, deliveries: u64) -> Option<Found> {
    with_model(scenario, Fuzz(scenario, FuzzOptions::new(seed, runs, deliveries))).unwrap()
}

fn two_phase(network: NetworkRule, buggy: bool, fuzz: &str) -> Scenario {
    let text = format!(
        "model = \"two-phase\"\nnetwork = \"{network}\"\n[switches]\ncommit_on_timeout = {buggy}\n[fuzz]\n{fuzz}"
    );
    Scenario::parse(&text).unwrap()
}

fn lines(found: &Found) -> Vec<String> {
    let records = found.records.iter().flat_map(|(_, records)| records);
    records.map(|r| serde_json::to_string(r).unwrap()).collect()
}

const FAULTS: &str =
    "weight_crash = 1.0\nweight_restart = 1.0\nweight_partition = 1.0\nstrategy = \"mixed\"\n";

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for faults in ["", FAULTS, "weight_isolate = 1.0\nclock_drift = 4.0\n"] {
        let scenario = two_phase(NetworkRule::Fifo, true, faults);
        let (a, b) = (try_fuzz(&scenario, 7, 200, 300).unwrap(), try_fuzz(&scenario, 7, 200, 300).unwrap());
        assert_eq!(lines(&a), lines(&b));
        assert_eq!(a, b);
    }
}

#[test]
fn only_the_buggy_two_phase_commit_breaks() {
    for network in [NetworkRule::Fifo, NetworkRule::FifoLoss, NetworkRule::Unordered] {
        for faults in ["", FAULTS] {
            assert!(try_fuzz(&two_phase(network, true, faults), 1, 200, 300).is_some());
            assert_eq!(try_fuzz(&two_phase(network, false, faults), 1, 200, 300), None);
        }
    }
}

#[test]
fn runs_that_violate_too_soon_are_passed_over() {
    let scenario = two_phase(NetworkRule::Fifo, true, FAULTS);
    let soon = try_fuzz(&scenario, 7, 400, 300).unwrap();
    let options = FuzzOptions {
        at_least: soon.schedule.header.deliveries.unwrap() + 1,
        ..FuzzOptions::new(7, 400, 300)
    };
    let late = with_model(&scenario, Fuzz(&scenario, options)).unwrap().unwrap();
    assert!(late.deliveries >= options.at_least && late.made.runs > soon.made.runs, "{:?}", late.made);
    assert_eq!(soon.made.passed_over, 0);
    assert!(late.made.passed_over > 0);
}

#[test]
fn who_is_cut_off_comes_back() {
    let scenario = two_phase(NetworkRule::Fifo, true, "weight_isolate = 3.0\n");
    let kinds: Vec<_> = (1..40)
        .filter_map(|seed| try_fuzz(&scenario, seed, 200, 300))
        .flat_map(|found| found.schedule.steps.into_iter().map(|step| step.kind))
        .collect();
    for kind in [StepKind::Isolate, StepKind::Heal] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}

#[test]
fn only_a_network_that_repeats_messages_repeats_them() {
    let text = |duplicates: bool| {
        format!(
            "model = \"two-phase\"\nnetwork = \"fifo\"\nduplicates = {duplicates}\n[switches]\ncommit_on_timeout = true\n\
             [fuzz]\nweight_duplicate = 4.0\n"
        )
    };
    let (plain, repeating) = (Scenario::parse(&text(false)).unwrap(), Scenario::parse(&text(true)).unwrap());
    let mut repeated = 0;
    for seed in 1..20 {
        let of = |scenario| try_fuzz(scenario, seed, 200, 300).unwrap();
        let copies = |found: &Found| {
            found.schedule.steps.iter().filter(|step| step.kind == StepKind::Duplicate).count()
        };
        assert_eq!(copies(&of(&plain)), 0);
        let found = of(&repeating);
        assert_eq!(found, of(&repeating));
        // What is delivered twice is received under one number, and nothing else is.
        let mut received: BTreeMap<String, usize> = BTreeMap::new();
        for record in found.records.iter().flat_map(|(_, records)| records) {
            if record.kind == Kind::Receive {
                *received.entry(record.msg_id.clone().unwrap()).or_default() += 1;
            }
        }
        let again: usize = received.values().map(|times| times - 1).sum();
        assert!(again <= copies(&found), "{again} {}", copies(&found));
        repeated += again;
    }
    assert!(repeated > 10, "{repeated}");
}

#[test]
fn timers_of_slow_clocks_fire_later() {
    // With clocks that run far apart, the coordinator's timer is often slow, and more is delivered before it decides.
    let deliveries = |drift: &str| {
        let scenario = two_phase(NetworkRule::Fifo, true, drift);
        let found = (1..200).filter_map(|seed| try_fuzz(&scenario, seed, 50, 300));
        found.map(|found| found.made.executed).sum::<u64>()
    };
    assert!(deliveries("clock_drift = 1000.0\n") > deliveries(""));
}

#[test]
fn bad_settings_are_named() {
    let options = FuzzOptions::new(1, 1, 10);
    struct Visit<'a>(&'a Scenario, FuzzOptions);
    impl Visitor for Visit<'_> {
        type Output = FuzzError;
        fn visit<M: Model>(self, mut sim: Simulator<M>) -> FuzzError {
            fuzz(&mut sim, self.0, &self.1, &mut |_| true).unwrap_err()
        }
    }
    for (text, word) in
        [("wait_for = \"moon\"", "moon"), ("timer_putback = 2.0", "putback"), ("weight_crash = nan", "crash")]
    {
        let scenario = two_phase(NetworkRule::Fifo, true, text);
        assert!(with_model(&scenario, Visit(&scenario, options)).unwrap().to_string().contains(word));
    }
}

#[test]
fn progress_can_stop_the_search() {
    struct Visit<'a>(&'a Scenario);
    impl Visitor for Visit<'_> {
        type Output = u64;
        fn visit<M: Model>(self, mut sim: Simulator<M>) -> u64 {
            let options = FuzzOptions::new(1, 100, 10);
            let mut calls = 0;
            let found = fuzz(&mut sim, self.0, &options, &mut |made| {
                calls = made.runs;
                calls < 3
            });
            assert_eq!(found.unwrap(), None);
            calls
        }
    }
    let scenario = two_phase(NetworkRule::Fifo, false, "");
    assert_eq!(with_model(&scenario, Visit(&scenario)).unwrap(), 3);
}

/// Checks what holds in every run's logs, and channel order where the network keeps it.
fn check_logs(found: &Found, rule: NetworkRule) {
    let mut sent: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut received: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut deliveries = 0;
    for (name, records) in &found.records {
        let (mut incarnation, mut seq) = (0, 0);
        for record in records {
            let text = serde_json::to_vec(record).unwrap();
            assert_eq!(EventRecord::parse(&text).unwrap(), *record);
            assert_eq!(&record.actor, name);
            if record.kind == Kind::Restart {
                (incarnation, seq) = (incarnation + 1, 0);
            }
            seq += 1;
            assert_eq!((record.incarnation, record.seq), (incarnation, seq));
            deliveries += u64::from(record.kind.is_delivery());
            let ends = || (record.from.clone().unwrap(), record.to.clone().unwrap());
            match (record.kind, record.external, record.msg_id.clone()) {
                (Kind::Send, Some(false), Some(id)) => sent.entry(ends()).or_default().push(id),
                (Kind::Receive, Some(false), Some(id)) => received.entry(ends()).or_default().push(id),
                (Kind::Send | Kind::Receive, None, _) => panic!("{record:?}"),
                _ => {}
            }
        }
    }
    assert_eq!(deliveries, found.deliveries);
    for (channel, ids) in received {
        // Numbers are given in the order of sending, so forwarded copies have their place too.
        let mut order = sent.remove(&channel).unwrap_or_default();
        order.sort_by_key(|id| id.parse::<u64>().unwrap());
        match rule {
            NetworkRule::Fifo => assert_eq!(ids[..], order[..ids.len()], "{channel:?}"),
            NetworkRule::FifoLoss => {
                let mut rest = order.iter();
                assert!(ids.iter().all(|id| rest.any(|s| s == id)), "{channel:?}");
            }
            NetworkRule::Unordered => assert!(ids.iter().all(|id| order.contains(id)), "{channel:?}"),
        }
    }
}

const RAFT: [&str; 3] = [
    include_str!("../../scenarios/raft-58a.toml"),
    include_str!("../../scenarios/raft-62.toml"),
    include_str!("../../scenarios/raft-58b.toml"),
];

#[test]
fn scenarios_that_come_with_the_tool_are_found() {
    for file in RAFT {
        let scenario = Scenario::parse(file).unwrap();
        let found = try_fuzz(&scenario, 1, 2_000, 2_000).unwrap();
        check_logs(&found, scenario.network);
        assert_eq!(lines(&found), lines(&try_fuzz(&scenario, 1, 2_000, 2_000).unwrap()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn logs_keep_the_rules(
        seed in any::<u64>(), faults in any::<bool>(),
        rule in prop::sample::select(vec![NetworkRule::Fifo, NetworkRule::FifoLoss, NetworkRule::Unordered]),
    ) {
        let scenario = two_phase(rule, true, if faults { FAULTS } else { "strategy = \"bursts\"\n" });
        if let Some(found) = try_fuzz(&scenario, seed, 50, 400) {
            check_logs(&found, rule);
        }
    }

    #[test]
    fn raft_logs_keep_the_rules(
        seed in any::<u64>(), file in prop::sample::select(RAFT.to_vec()),
        rule in prop::sample::select(vec![NetworkRule::Fifo, NetworkRule::FifoLoss, NetworkRule::Unordered]),
    ) {
        let scenario = Scenario { network: rule, ..Scenario::parse(file).unwrap() };
        if let Some(found) = try_fuzz(&scenario, seed, 20, 400) {
            check_logs(&found, rule);
        }
    }
}
