//! The Spark model with cached data sets: what tasks ask and tell, whom the scheduler prefers, how often things happen.

use std::collections::BTreeMap;

use crate::recorded::from_records;
use demi_included::{Visitor, with_model};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{EventRecord, Kind, Scenario, Schedule, Step, StepKind};
use serde_json::json;

const SCENARIO: &str = include_str!("../../scenarios/spark-2294-blocks.toml");
const LOCATIONS: &str = "Z2V0TG9jYXRpb25zLWJsb2NrSWRzVG9CbG9ja01hbmFnZXJzLWdldENhY2hlTG9jcw==";
const TASK_0: &str = "MC1hcHBseS1saW5lYXJpemVBc2tXaXRoSUQtYXNrRHJpdmVyV2l0aFJlcGx5";
const TASK_1: &str = "MS1hcHBseS1saW5lYXJpemVBc2tXaXRoSUQtYXNrRHJpdmVyV2l0aFJlcGx5";
const NOBODY: &str = "deadLetters";
const NOWHERE: &str = "List()";
const DRIVER: &str = "ArrayBuffer(BlockManagerId(<driver>))";

struct Replay<'a>(&'a Schedule, bool, u32);

impl Visitor for Replay<'_> {
    type Output = ReplaySummary;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        let rule = demi_schemas::NetworkRule::Fifo;
        replay(&mut sim, self.0, &ReplayOptions { rule, strict: self.1, interval: self.2 }).unwrap()
    }
}

fn strictly(steps: &[Step], scenario: &Scenario) -> ReplaySummary {
    with_model(scenario, Replay(&Schedule::new(steps.to_vec()), true, 1)).unwrap()
}

fn deliver(from: &str, to: &str, payload: &str) -> Step {
    Step {
        from: Some(from.into()),
        payload: Some(payload.into()),
        external: Some(false),
        ..Step::new(StepKind::Deliver, to)
    }
}

/// Up to one worker with an executor, before which nothing of a job happens.
fn executor() -> Vec<Step> {
    let props = "Props(Deploy(,Config(SimpleConfigObject({})),NoRouter,NoScopeGiven,,),class \
                 akka.actor.TypedCreatorFunctionConsumer,Vector(class \
                 org.apache.spark.scheduler.DAGSchedulerEventProcessActor, <function0>))";
    let ask_blocks = "dGVsbC1yZWdpc3RlckJsb2NrTWFuYWdlci1pbml0aWFsaXpl";
    let ask_port = "c3RhcnQtb3JnJGFwYWNoZSRzcGFyayRTcGFya0NvbnRleHQkJGNyZWF0ZVRhc2tTY2hlZHVsZXItPGluaXQ+";
    let ask_props = "aW5pdGlhbGl6ZUV2ZW50UHJvY2Vzc0FjdG9yLTxpbml0Pi08aW5pdD4=";
    let launch = "LaunchExecutor(spark://localhost:1,theOnlyApp,1,ApplicationDescription(Spark Pi),1,512)";
    let worker = Step {
        type_: Some("create_worker".into()),
        fields: Some(json!({"worker": "Worker1"})),
        ..Step::new(StepKind::Action, "")
    };
    vec![
        deliver(ask_blocks, "BlockManagerMaster", "RegisterBlockManager"),
        deliver(ask_port, "Master", "RequestWebUIPort"),
        deliver(ask_props, "DAGSchedulerActorSupervisor", props),
        deliver("leaderElectionAgent", "Master", "ElectedLeader"),
        deliver("AppClient", "Master", "RegisterApplication(ApplicationDescription(Spark Pi))"),
        worker,
        deliver("Worker1", "Master", "(RegisterWorker,Worker1)"),
        deliver("Master", "Worker1", "RegisteredWorker"),
        deliver("Master", "Worker1", launch),
        deliver("executor1", "CoarseGrainedScheduler", "RegisterExecutor(1,1,1)"),
        deliver("CoarseGrainedScheduler", "executor1", "RegisteredExecutor"),
    ]
}

/// A job is handled: the locations of its data sets are looked up, with these answers.
fn job(steps: &mut Vec<Step>, answers: &[(u32, [&str; 4])]) {
    steps.push(deliver(NOBODY, "$a", "(JobSubmitted,0)"));
    for (data_set, answer) in answers {
        let blocks: Vec<String> = (0..4).map(|p| format!("rdd_{data_set}_{p}")).collect();
        let look_up = format!("GetLocationsMultipleBlockIds({})", blocks.join("-"));
        steps.push(deliver(LOCATIONS, "BlockManagerMaster", &look_up));
        steps.push(deliver("BlockManagerMaster", LOCATIONS, &format!("ArraySeq({})", answer.join(", "))));
    }
    steps.push(deliver(NOBODY, "CoarseGrainedScheduler", "ReviveOffers"));
}

/// A task is launched and says that it runs.
fn launch(steps: &mut Vec<Step>, task: u32) {
    steps.push(deliver("CoarseGrainedScheduler", "executor1", "LaunchTask"));
    steps.push(deliver("executor1", "CoarseGrainedScheduler", &format!("(StatusUpdate,1,{task},RUNNING)")));
}

fn update(partition: u32) -> String {
    format!("(UpdateBlockInfo,rdd_0_{partition},StorageLevel(false, true, false, true, 1))")
}

fn finish(task: u32) -> Step {
    deliver("executor1", "CoarseGrainedScheduler", &format!("(StatusUpdate,1,{task},FINISHED)"))
}

#[test]
fn a_task_whose_block_is_cached_is_better_placed() {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut steps = executor();
    // The data set itself, made of nothing: one look-up.
    job(&mut steps, &[(0, [NOWHERE; 4])]);
    launch(&mut steps, 0);
    // Until the task has asked and told it is not done.
    let mut hasty = steps.clone();
    hasty.push(finish(0));
    assert_eq!(strictly(&hasty, &scenario).first_divergence.unwrap().step, hasty.len() as u64);
    steps.push(deliver(TASK_0, "BlockManagerMaster", "GetLocations(rdd_0_0)"));
    assert_eq!(strictly(&[steps.clone(), vec![finish(0)]].concat(), &scenario).divergences, 1);
    steps.push(deliver(TASK_0, "BlockManagerMaster", &update(0)));
    // A mapping of it: two look-ups, of which the second knows of one partition.
    job(&mut steps, &[(1, [NOWHERE; 4]), (0, [DRIVER, NOWHERE, NOWHERE, NOWHERE])]);
    steps.push(finish(0));
    for task in 1..4 {
        launch(&mut steps, task);
        let name = [TASK_1, "Mi1hcHBseS1saW5lYXJpemVBc2tXaXRoSUQtYXNrRHJpdmVyV2l0aFJlcGx5"];
        let name = name.get(task as usize - 1).copied();
        let name = name.unwrap_or("My1hcHBseS1saW5lYXJpemVBc2tXaXRoSUQtYXNrRHJpdmVyV2l0aFJlcGx5");
        steps.push(deliver(name, "BlockManagerMaster", &format!("GetLocations(rdd_0_{task})")));
        steps.push(deliver(name, "BlockManagerMaster", &update(task)));
        steps.push(finish(task));
    }
    // The second job's: every block is there now. The first task is the well placed one, the second is not.
    launch(&mut steps, 4);
    let before = strictly(&steps, &scenario);
    assert_eq!((before.verdict, before.divergences), (Verdict::DoesNotViolate, 0), "{before:?}");
    steps.push(finish(4));
    let after = strictly(&steps, &scenario);
    assert_eq!(after.violation, ["LocalityInversion:1.0"], "{:?}", after.first_divergence);
    // Launched tasks that leave all lists are no better placed ones.
    let mended = Scenario { switches: BTreeMap::default(), ..scenario };
    let mended = strictly(&steps, &mended);
    assert_eq!((mended.verdict, mended.divergences), (Verdict::DoesNotViolate, 0));
}

/// A second task for a block that is being computed waits for the first.
#[test]
fn a_block_is_computed_once() {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut steps = executor();
    let worker = |n: u32, step: &Step| {
        let text = serde_json::to_string(step).unwrap();
        let text =
            text.replace("Worker1", &format!("Worker{n}")).replace("executor1", &format!("executor{n}"));
        let text = text.replace(",theOnlyApp,1,", &format!(",theOnlyApp,{n},"));
        let text = text.replace("RegisterExecutor(1,1,1)", &format!("RegisterExecutor({n},{n},1)"));
        serde_json::from_str::<Step>(&text).unwrap()
    };
    let first = executor();
    for n in 2..6 {
        steps.extend(first[5..].iter().map(|step| worker(n, step)));
    }
    let mut of_jobs = Vec::new();
    job(&mut of_jobs, &[(0, [NOWHERE; 4])]);
    job(&mut of_jobs, &[(1, [NOWHERE; 4]), (0, [NOWHERE; 4])]);
    steps.extend(of_jobs);
    // Five executors: four tasks of the first job, and one of the second, which needs the first block, too.
    for n in [1, 5] {
        steps.push(deliver("CoarseGrainedScheduler", &format!("executor{n}"), "LaunchTask"));
    }
    let status = |n: u32, task: u32, state: &str| {
        let payload = format!("(StatusUpdate,{n},{task},{state})");
        deliver(&format!("executor{n}"), "CoarseGrainedScheduler", &payload)
    };
    steps.extend([status(1, 0, "RUNNING"), status(5, 4, "RUNNING")]);
    steps.push(deliver(TASK_0, "BlockManagerMaster", "GetLocations(rdd_0_0)"));
    assert_eq!(strictly(&[steps.clone(), vec![status(5, 4, "FINISHED")]].concat(), &scenario).divergences, 1);
    steps.push(deliver(TASK_0, "BlockManagerMaster", &update(0)));
    steps.extend([status(5, 4, "FINISHED"), status(1, 0, "FINISHED")]);
    let summary = strictly(&steps, &scenario);
    assert_eq!(summary.divergences, 0, "{:?}", summary.first_divergence);
}

struct Fuzz<'a>(&'a Scenario, u64);

impl Visitor for Fuzz<'_> {
    type Output = Option<Found>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Option<Found> {
        let options = FuzzOptions::new(self.1, 200, 1500);
        fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap()
    }
}

/// The program finds the bug; what it would have logged conforms, also without the bug. That helps where the cached
/// partitions come first. Otherwise a task that is launched before them is not the best placed one, whatever the lists.
#[test]
fn the_program_finds_the_bug_and_its_logs_conform() {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mended = Scenario { switches: BTreeMap::default(), ..scenario.clone() };
    let mut seen = [false; 2];
    for seed in 1..21 {
        let found = with_model(&scenario, Fuzz(&scenario, seed)).unwrap().unwrap();
        assert_eq!(found.violation, ["LocalityInversion:1.0"]);
        let records = || found.records.iter().flat_map(|(_, records)| records);
        let mut answers =
            records().filter(|r| r.kind == Kind::Send && r.type_.as_deref() == Some("ArraySeq"));
        let known = |r: &EventRecord| {
            let payload = r.payload.clone().unwrap();
            let known: Vec<bool> = payload.split(", ").map(|p| p.contains(DRIVER)).collect();
            known.is_sorted_by(|a, b| a >= b)
        };
        let first = answers.all(known);
        seen[usize::from(first)] = true;
        let logs = from_records(found.records.into_iter().map(|(_, records)| records).collect());
        let buggy = with_model(&scenario, Replay(&logs, false, 1)).unwrap();
        assert_eq!((buggy.divergences, buggy.matches_recorded), (0, Some(true)), "{buggy:?}");
        let calm = with_model(&mended, Replay(&logs, false, 1)).unwrap();
        assert_eq!((calm.divergences, calm.verdict == Verdict::DoesNotViolate), (0, first), "{calm:?}");
    }
    assert_eq!(seen, [true, true]);
}

/// How often things happen in a run to its end, whatever the order.
#[test]
fn every_run_sends_the_same_work() {
    let mut scenario = Scenario::parse(SCENARIO).unwrap();
    scenario.invariant_check_interval = Some(1500);
    for seed in 1..6 {
        let found = with_model(&scenario, Fuzz(&scenario, seed)).unwrap().unwrap();
        let records: Vec<&EventRecord> = found.records.iter().flat_map(|(_, records)| records).collect();
        let sent = |type_: &str, near: &str| {
            let of_type = |r: &&&EventRecord| r.kind == Kind::Send && r.type_.as_deref() == Some(type_);
            let near = |r: &&&EventRecord| r.payload.as_deref().is_some_and(|p| p.contains(near));
            records.iter().filter(of_type).filter(near).count()
        };
        for (type_, near, count) in [
            ("JobSubmitted", "0", 2),
            ("GetLocationsMultipleBlockIds", "rdd_", 3),
            ("ArraySeq", "", 3),
            ("LaunchExecutor", "", 3),
            ("ExecutorAdded", "Worker", 3),
            ("RegisteredWorker", "", 3),
            ("RegisterExecutor", "", 3),
            ("BeginEvent", "", 8),
            ("LaunchTask", "", 8),
            ("StatusUpdate", "RUNNING", 8),
            ("StatusUpdate", "FINISHED", 8),
            ("CompletionEvent", "", 8),
            ("GetLocations", "rdd_0_", 4),
            ("UpdateBlockInfo", "rdd_0_", 4),
        ] {
            assert_eq!(sent(type_, near), count, "{type_} {near} of seed {seed}");
        }
    }
}
