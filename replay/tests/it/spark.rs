//! The recorded executions of Spark: the model follows them, and breaks the invariant only with the bug.

use crate::recorded::{from_records, recorded, schedule};
use demi_included::{Visitor, with_model};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario, Schedule};

struct Replay<'a>(&'a Schedule, ReplayOptions);

impl Visitor for Replay<'_> {
    type Output = ReplaySummary;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        replay(&mut sim, self.0, &self.1).unwrap()
    }
}

fn run(schedule: &Schedule, scenario: &Scenario) -> ReplaySummary {
    let interval = scenario.invariant_check_interval.unwrap_or(1);
    let options = ReplayOptions { rule: scenario.network, strict: false, interval };
    with_model(scenario, Replay(schedule, options)).unwrap()
}

/// The model follows the recording and breaks the invariant; mended, under `mended_rule`, it follows it and does not.
fn conforms(case: &str, switch: &str, deliveries: u64, violation: &str, mended_rule: NetworkRule) {
    let Some(folder) = recorded(case) else { return };
    let text = std::fs::read_to_string(folder.join("scenario.toml")).unwrap();
    let schedule = schedule(&folder);
    let buggy = run(&schedule, &Scenario::parse(&text).unwrap());
    assert_eq!((buggy.deliveries, buggy.divergences), (deliveries, 0), "{:?}", buggy.first_divergence);
    assert_eq!(
        (buggy.violation.as_slice(), buggy.matches_recorded),
        (&[violation.to_owned()][..], Some(true))
    );
    assert_eq!(buggy.unrecorded_sends, 0);
    // Copies of timers were withheld when the recording ended, and when a master was stopped.
    assert!(buggy.withheld_copies <= 2, "{}", buggy.withheld_copies);
    let mended = text.replace(&format!("{switch} = true"), "");
    assert_ne!(mended, text);
    let mended = Scenario { network: mended_rule, ..Scenario::parse(&mended).unwrap() };
    let mended = run(&schedule, &mended);
    assert_eq!((mended.deliveries, mended.divergences), (deliveries, 0), "{:?}", mended.first_divergence);
    assert_eq!(mended.verdict, Verdict::DoesNotViolate);
}

/// A mended master finds its workers free after the recovery and gives them work, which stands before the recorded
/// messages in their channels: without channel order these can be received all the same.
#[test]
fn spark_3150_conforms() {
    conforms("spark-3150", "spark3150_unset_worker", 600, "CrashUponRecovery", NetworkRule::Unordered);
}

#[test]
fn spark_9256_conforms() {
    conforms("spark-9256", "spark9256_duplicate_registration", 300, "DuplicateFileCrash", NetworkRule::Fifo);
}

#[test]
fn spark_2294_conforms() {
    conforms("spark-2294", "spark2294_one_list_removal", 1000, "LocalityInversion:0.0", NetworkRule::Fifo);
}

struct Fuzz<'a>(&'a Scenario, FuzzOptions);

impl Visitor for Fuzz<'_> {
    type Output = Option<Found>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Option<Found> {
        fuzz(&mut sim, self.0, &self.1, &mut |_| true).unwrap()
    }
}

const PROGRAMS: [(&str, &str, u64); 4] = [
    (include_str!("../../scenarios/spark-9256.toml"), "DuplicateFileCrash", 0),
    (include_str!("../../scenarios/spark-3150.toml"), "CrashUponRecovery", 20),
    (include_str!("../../scenarios/spark-2294.toml"), "LocalityInversion", 30),
    (include_str!("../../scenarios/spark-2294-blocks.toml"), "LocalityInversion:1.0", 0),
];

/// The programs find their bugs, and nothing without them; what they would have logged conforms.
#[test]
fn programs_find_their_bugs() {
    for (text, violation, externals) in PROGRAMS {
        let scenario = Scenario::parse(text).unwrap();
        for seed in 1..25 {
            let options = FuzzOptions::new(seed, 200, 1500);
            let found = with_model(&scenario, Fuzz(&scenario, options)).unwrap().unwrap();
            assert!(
                found.violation.len() == 1 && found.violation[0].starts_with(violation),
                "{:?}",
                found.violation
            );
            assert!(found.externals >= externals, "{violation}: {}", found.externals);
            let records: Vec<_> = found.records.into_iter().map(|(_, records)| records).collect();
            let summary = run(&from_records(records), &scenario);
            assert_eq!(
                (summary.divergences, summary.matches_recorded),
                (0, Some(true)),
                "{violation}, seed {seed}: {:?}",
                summary.first_divergence
            );
        }
        // With cached data the repair is none where a task's data is cached and that of one before it is not.
        if !text.contains("cached_data_sets") {
            let mended = Scenario { switches: std::collections::BTreeMap::default(), ..scenario.clone() };
            let options = FuzzOptions::new(1, 20, 1500);
            assert!(with_model(&mended, Fuzz(&mended, options)).unwrap().is_none(), "{violation}");
        }
    }
}

/// Logs that run on for long after the bug, as those of recordings do.
#[test]
fn long_logs_conform() {
    for (text, violation, _) in PROGRAMS {
        let mut scenario = Scenario::parse(text).unwrap();
        scenario.invariant_check_interval = Some(3000);
        for seed in 1..5 {
            let options = FuzzOptions::new(seed, 5, 3000);
            let found = with_model(&scenario, Fuzz(&scenario, options)).unwrap().unwrap();
            let records: Vec<_> = found.records.into_iter().map(|(_, records)| records).collect();
            let summary = run(&from_records(records), &scenario);
            assert_eq!(
                (summary.deliveries, summary.divergences),
                (3000, 0),
                "{violation}, seed {seed}: {:?}",
                summary.first_divergence
            );
        }
    }
}
