//! What was kept of executions by DEMi's rule (Scott et al., NSDI 2016, section 3.2), with what the model needs besides.

use std::collections::{BTreeMap, BTreeSet};

use crate::recorded::{from_records, recorded, schedule};
use demi_included::{Visitor, with_model};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay, replay_kept};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{Scenario, Schedule, StepKind};

struct Kept<'a>(&'a Schedule, Option<&'a Schedule>, ReplayOptions);

impl Visitor for Kept<'_> {
    type Output = ReplaySummary;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        match self.1 {
            Some(kept) => replay_kept(&mut sim, self.0, kept, &self.2).unwrap(),
            None => replay(&mut sim, self.0, &self.2).unwrap(),
        }
    }
}

fn run(full: &Schedule, kept: Option<&Schedule>, scenario: &Scenario) -> ReplaySummary {
    let interval = scenario.invariant_check_interval.unwrap_or(1);
    let options = ReplayOptions { rule: scenario.network, strict: false, interval };
    with_model(scenario, Kept(full, kept, options)).unwrap()
}

/// The part of a schedule for whose deliveries `is_kept` says so; what comes from outside is kept.
fn part(full: &Schedule, is_kept: impl Fn(usize) -> bool) -> Schedule {
    let steps = full.steps.iter().enumerate();
    let steps = steps.filter(|(at, step)| step.kind != StepKind::Deliver || is_kept(*at));
    Schedule { header: full.header.clone(), steps: steps.map(|(_, step)| step.clone()).collect() }
}

/// The causal past of the last deliveries of an actor, they included, as logs tell it: of each actor's log a prefix, and
/// with each message its send, unless a thread made it.
fn past(full: &Schedule, affected: &[&str]) -> BTreeSet<usize> {
    let mut by_actor: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut sender: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, step) in full.steps.iter().enumerate().filter(|(_, step)| step.kind == StepKind::Deliver) {
        by_actor.entry(&step.to).or_default().push(at);
        sender.extend(step.sends.iter().map(|sent| (sent.msg_id.as_deref().unwrap(), at)));
    }
    let mut past = BTreeSet::new();
    let mut work: Vec<usize> = affected.iter().filter_map(|actor| by_actor[actor].last().copied()).collect();
    while let Some(at) = work.pop() {
        for &at in by_actor[full.steps[at].to.as_str()].iter().take_while(|&&other| other <= at) {
            if past.insert(at) {
                work.extend(sender.get(full.steps[at].msg_id.as_deref().unwrap()));
            }
        }
    }
    past
}

/// The model follows the part whole and breaks the invariant in it, and the part is smaller than the whole. Without the
/// steps that came back it does not follow it.
fn holds(full: &Schedule, kept: &Schedule, scenario: &Scenario) {
    let deliveries = |s: &Schedule| s.steps.iter().filter(|s| s.kind.is_delivery()).count() as u64;
    let summary = run(full, Some(kept), scenario);
    assert_eq!(summary.divergences, 0, "{:?}", summary.first_divergence);
    assert_eq!((summary.verdict, summary.matches_recorded), (Verdict::Violates, Some(true)));
    assert_eq!(summary.deliveries, deliveries(kept) + summary.added_steps);
    assert!(summary.deliveries < deliveries(full));
    assert!(run(kept, None, scenario).divergences > 0);
}

/// Recorded executions, with what DEMi kept of them.
#[test]
fn the_model_follows_what_was_kept_of_recordings() {
    for case in ["spark-9256", "spark-2294"] {
        let Some(folder) = recorded(case) else { return };
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
        let scenario = Scenario::parse(&read("scenario.toml")).unwrap();
        let full = schedule(&folder);
        let expected: serde_json::Value = serde_json::from_str(&read("expected.json")).unwrap();
        let ids: BTreeSet<&str> = expected["provenance_strict"]["kept_msg_ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap())
            .collect();
        let kept = part(&full, |at| ids.contains(full.steps[at].msg_id.as_deref().unwrap()));
        holds(&full, &kept, &scenario);
    }
}

struct Fuzz<'a>(&'a Scenario, u64);

impl Visitor for Fuzz<'_> {
    type Output = Option<Found>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Option<Found> {
        let options = FuzzOptions::new(self.1, 50, 1500);
        fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap()
    }
}

/// Runs made by the programs, and what is kept of their logs.
#[test]
fn the_model_follows_what_is_kept_of_its_own_logs() {
    for text in [
        include_str!("../../scenarios/spark-9256.toml"),
        include_str!("../../scenarios/spark-3150.toml"),
        include_str!("../../scenarios/spark-2294.toml"),
    ] {
        let scenario = Scenario::parse(text).unwrap();
        for seed in 1..4 {
            let found = with_model(&scenario, Fuzz(&scenario, seed)).unwrap().unwrap();
            let affected: Vec<&str> = found.affected.iter().map(String::as_str).collect();
            let full = from_records(found.records.into_iter().map(|(_, records)| records).collect());
            let past = past(&full, &affected);
            holds(&full, &part(&full, |at| past.contains(&at)), &scenario);
        }
    }
}
