//! Schedules that make no sense are run or refused, never more: no text, name or order of steps makes a replay panic.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_replay::models::{Visitor, with_model};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];
const NAMES: [&str; 9] = [
    "coordinator",
    "participant-1",
    "participant-2",
    "raft-member-1",
    "raft-member-2",
    "raft-member-3",
    DEAD_LETTERS,
    "nobody",
    "_environment",
];
const TYPES: [&str; 7] =
    ["Begin", "VoteTimeout", "ChangeConfiguration", "ClientMessage", "ElectionTimeout", "Vote", ""];
const PAYLOADS: [&str; 12] = [
    "Begin(tx1)",
    "Begin(tx1,participant-2)",
    "Begin(tx2,nobody)",
    "Prepare(tx1)",
    "Vote(tx1,yes)",
    "VoteTimeout(tx1)",
    "ChangeConfiguration(StableRaftConfiguration(Set(raft-member-1, raft-member-2, raft-member-3)))",
    "ChangeConfiguration(StableRaftConfiguration(Set()))",
    "TimerFingerprint(election-timer,ElectionTimeout,false,1)",
    "BeginElection",
    "ClientMessage(deadLetters,AppendWord(1))",
    "",
];

struct Replay<'a>(&'a Schedule, ReplayOptions);

impl Visitor for Replay<'_> {
    type Output = Option<ReplaySummary>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        replay(&mut sim, self.0, &self.1).ok()
    }
}

/// Replays on both models; says what came out of it.
fn try_all(schedule: &Schedule, rule: NetworkRule, strict: bool) -> Vec<ReplaySummary> {
    let options = ReplayOptions { rule, strict, interval: 1 };
    ["two-phase", "akka-raft"]
        .iter()
        .filter_map(|model| {
            let text = format!("model = \"{model}\"\nnetwork = \"{rule}\"\nmembers = 3");
            with_model(&Scenario::parse(&text).unwrap(), Replay(schedule, options)).unwrap()
        })
        .collect()
}

fn step() -> impl Strategy<Value = Step> {
    use StepKind::{Action, Crash, Deliver, External, Isolate, Restart, Start, Stop, Timer};
    let kind =
        select(vec![Start, Start, External, Deliver, Deliver, Timer, Crash, Restart, Isolate, Stop, Action]);
    let name = || prop_oneof![12 => select(NAMES.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    let payload = prop_oneof![9 => select(PAYLOADS.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    let fields = select(vec![None, Some(json!({})), Some(json!({"members": ["raft-member-1"], "tx": 1}))]);
    let maybe =
        (prop::option::of(name()), prop::option::of(payload), prop::option::weighted(0.3, any::<bool>()));
    (kind, name(), select(TYPES.to_vec()), maybe, fields).prop_map(
        |(kind, to, type_, (from, payload, external), fields)| Step {
            from,
            type_: Some(type_.to_owned()),
            payload,
            external,
            fields,
            ..Step::new(kind, to)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_a_replay_panic(
        steps in prop::collection::vec(step(), 0..24),
        rule in select(RULES.to_vec()),
        strict in any::<bool>(),
        conformance in any::<bool>(),
    ) {
        let mut schedule = Schedule::new(steps);
        schedule.header.conformance = conformance;
        for summary in try_all(&schedule, rule, strict) {
            prop_assert!(summary.deliveries <= schedule.deliveries() as u64);
            let followed = matches!(summary.verdict, Verdict::Violates | Verdict::DoesNotViolate);
            prop_assert!(summary.divergences == 0 || !strict || !followed, "{:?}", summary);
            prop_assert!(summary.divergences == 0 || summary.first_divergence.is_some());
            // A strict replay ends with the step that diverges, which can differ in what it sends and what it arms.
            prop_assert!(!strict || summary.divergences <= 1 + u64::from(conformance), "{:?}", summary);
        }
    }

    #[test]
    fn nor_does_any_line(lines in prop::collection::vec(("[a-z]{1,8}", "\\PC{0,12}", "\\PC{0,20}"), 0..6)) {
        let line = |(kind, to, payload): &(String, String, String)| {
            let kind = if kind.len() % 2 == 0 { "deliver" } else { kind };
            json!({ "kind": kind, "to": to, "payload": payload }).to_string()
        };
        let text: Vec<String> = lines.iter().map(line).collect();
        if let Ok(schedule) = Schedule::parse(&text.join("\n")) {
            try_all(&schedule, NetworkRule::Fifo, false);
        }
    }
}
