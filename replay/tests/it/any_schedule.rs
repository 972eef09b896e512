//! Schedules that make no sense are run or refused, never more: no text, name or order of steps makes a replay panic.

use demi_included::{Visitor, with_model};
use demi_replay::replay::{ReplayOptions, replay, replay_kept};
use demi_replay::{Model, Simulator};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];
const NAMES: [&str; 14] = [
    "coordinator",
    "participant-1",
    "participant-2",
    "raft-member-1",
    "raft-member-2",
    "raft-member-3",
    DEAD_LETTERS,
    "nobody",
    "_environment",
    "Master",
    "Worker1",
    "$a",
    "CoarseGrainedScheduler",
    "ScheduleFunctionPlaceholder",
];
const TYPES: [&str; 11] = [
    "Begin",
    "VoteTimeout",
    "ChangeConfiguration",
    "ClientMessage",
    "ElectionTimeout",
    "Vote",
    "create_worker",
    "create_master",
    "submit_job",
    "RequestSubmitDriver",
    "",
];
const PAYLOADS: [&str; 18] = [
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
    "ElectedLeader",
    "ReviveOffers",
    "(JobSubmitted,0)",
    "(RegisterWorker,Worker1)",
    "RegisterApplication(ApplicationDescription(Spark Pi))",
    "RequestSubmitDriver(DriverDescription ())",
    "",
];
/// How the system that shares memory starts up.
const STARTED: [(&str, &str, &str); 3] = [
    ("dGVsbC1yZWdpc3RlckJsb2NrTWFuYWdlci1pbml0aWFsaXpl", "BlockManagerMaster", "RegisterBlockManager"),
    (
        "c3RhcnQtb3JnJGFwYWNoZSRzcGFyayRTcGFya0NvbnRleHQkJGNyZWF0ZVRhc2tTY2hlZHVsZXItPGluaXQ+",
        "Master",
        "RequestWebUIPort",
    ),
    (
        "aW5pdGlhbGl6ZUV2ZW50UHJvY2Vzc0FjdG9yLTxpbml0Pi08aW5pdD4=",
        "DAGSchedulerActorSupervisor",
        "Props(Deploy(,Config(SimpleConfigObject({})),NoRouter,NoScopeGiven,,),class \
         akka.actor.TypedCreatorFunctionConsumer,Vector(class \
         org.apache.spark.scheduler.DAGSchedulerEventProcessActor, <function0>))",
    ),
];

struct Replay<'a>(&'a Schedule, ReplayOptions);

impl Visitor for Replay<'_> {
    type Output = Option<ReplaySummary>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        replay(&mut sim, self.0, &self.1).ok()
    }
}

struct Kept<'a>(&'a Schedule, &'a Schedule, ReplayOptions);

impl Visitor for Kept<'_> {
    type Output = Option<ReplaySummary>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        replay_kept(&mut sim, self.0, self.1, &self.2).ok()
    }
}

/// Replays on all models; says what came out of it.
fn try_all(schedule: &Schedule, rule: NetworkRule, strict: bool) -> Vec<ReplaySummary> {
    let options = ReplayOptions { rule, strict, interval: 1 };
    [("two-phase", "members = 3"), ("akka-raft", "members = 3"), ("spark", "")]
        .iter()
        .filter_map(|(model, rest)| {
            let text = format!("model = \"{model}\"\nnetwork = \"{rule}\"\n{rest}");
            with_model(&Scenario::parse(&text).unwrap(), Replay(schedule, options)).unwrap()
        })
        .collect()
}

fn step() -> impl Strategy<Value = Step> {
    use StepKind::{Action, Crash, Deliver, External, Heal, Isolate, Restart, Send, Start, Stop, Timer};
    let kind = vec![
        Start, Start, External, Deliver, Deliver, Timer, Crash, Restart, Isolate, Heal, Stop, Action, Send,
    ];
    let kind = select(kind);
    let name = || prop_oneof![12 => select(NAMES.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    let payload = prop_oneof![9 => select(PAYLOADS.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    let some = json!({"members": ["raft-member-1"], "tx": 1, "worker": "Worker1", "job": 1});
    let fields = select(vec![None, Some(json!({})), Some(some)]);
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

    /// Logs of a system that shares memory, with messages numbered at will, and any part of them.
    #[test]
    fn nor_do_logs_in_any_order(
        steps in prop::collection::vec((step(), 1_u64..12, any::<bool>()), 1..40),
        from in select(vec![0, 3]),
        cached in any::<bool>(),
    ) {
        let started = STARTED[..from].iter().map(|(from, to, payload)| Step {
            from: Some((*from).to_owned()),
            payload: Some((*payload).to_owned()),
            ..Step::new(StepKind::Deliver, *to)
        });
        let is_kept: Vec<bool> = (0..from).map(|_| true).chain(steps.iter().map(|s| s.2)).collect();
        let numbered = steps.into_iter().map(|(step, id, _)| Step { msg_id: Some(id.to_string()), ..step });
        let mut full = Schedule::new(started.chain(numbered).collect());
        full.header.conformance = true;
        for (at, step) in full.steps.iter_mut().enumerate() {
            step.msg_id.get_or_insert_with(|| (100 + at).to_string());
            step.event = Some(format!("log/{at}"));
        }
        let mut kept = full.clone();
        let mut at = 0..;
        kept.steps.retain(|_| at.next().is_some_and(|at| is_kept[at]));
        let text = format!("model = \"spark\"\nnetwork = \"fifo\"\n[settings]\ncached_data_sets = {cached}");
        let scenario = Scenario::parse(&text).unwrap();
        let options = ReplayOptions { rule: NetworkRule::Fifo, strict: false, interval: 1 };
        let whole = with_model(&scenario, Replay(&full, options)).unwrap();
        let part = with_model(&scenario, Kept(&full, &kept, options)).unwrap();
        if let (Some(whole), Some(part)) = (whole, part) {
            prop_assert!(part.deliveries <= full.deliveries() as u64);
            // Where the whole can be followed, so can the part with what it needs.
            prop_assert!(whole.divergences > 0 || part.divergences == 0, "{:?}", part);
        }
    }
}
