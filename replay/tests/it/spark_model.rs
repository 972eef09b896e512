//! The Spark model, step by step: the shortest schedules known of its three bugs, and the rules they rest on.

use demi_included::{Visitor, with_model};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Scenario, Schedule, Step, StepKind};
use serde_json::json;

const ASK_BLOCKS: &str = "dGVsbC1yZWdpc3RlckJsb2NrTWFuYWdlci1pbml0aWFsaXpl";
const ASK_PORT: &str = "c3RhcnQtb3JnJGFwYWNoZSRzcGFyayRTcGFya0NvbnRleHQkJGNyZWF0ZVRhc2tTY2hlZHVsZXItPGluaXQ+";
const ASK_PROPS: &str = "aW5pdGlhbGl6ZUV2ZW50UHJvY2Vzc0FjdG9yLTxpbml0Pi08aW5pdD4=";
const LOCATIONS: &str = "Z2V0TG9jYXRpb25zLWJsb2NrSWRzVG9CbG9ja01hbmFnZXJzLWdldENhY2hlTG9jcw==";
const PROPS: &str = "Props(Deploy(,Config(SimpleConfigObject({})),NoRouter,NoScopeGiven,,),class \
                     akka.actor.TypedCreatorFunctionConsumer,Vector(class \
                     org.apache.spark.scheduler.DAGSchedulerEventProcessActor, <function0>))";
const REGISTER: &str = "RegisterApplication(ApplicationDescription(Spark Pi))";
const RETRY_CLIENT: &str =
    "ScheduleBlock-AppClient.scala:registerWithMaster-AppClient.scala:preStart-ActorCell.scala:create";
const NOBODY: &str = "deadLetters";

fn deliver(from: &str, to: &str, payload: &str) -> Step {
    Step {
        from: Some(from.into()),
        payload: Some(payload.into()),
        external: Some(false),
        ..Step::new(StepKind::Deliver, to)
    }
}

fn action(name: &str, fields: serde_json::Value) -> Step {
    Step { type_: Some(name.into()), fields: Some(fields), ..Step::new(StepKind::Action, "") }
}

/// The three questions of the start-up, with the election of the master.
fn started() -> Vec<Step> {
    vec![
        deliver(ASK_BLOCKS, "BlockManagerMaster", "RegisterBlockManager"),
        deliver(ASK_PORT, "Master", "RequestWebUIPort"),
        deliver(ASK_PROPS, "DAGSchedulerActorSupervisor", PROPS),
        deliver("leaderElectionAgent", "Master", "ElectedLeader"),
    ]
}

fn duplicate_file() -> Vec<Step> {
    let mut steps = started();
    steps.push(deliver("AppClient", "Master", REGISTER));
    steps.push(deliver(NOBODY, "ScheduleFunctionPlaceholder", RETRY_CLIENT));
    steps.push(deliver("AppClient", "Master", REGISTER));
    steps
}

fn crash_upon_recovery() -> Vec<Step> {
    let mut steps = started();
    steps.push(Step {
        type_: Some("RequestSubmitDriver".into()),
        external: Some(true),
        ..deliver(NOBODY, "Master", "RequestSubmitDriver(DriverDescription ())")
    });
    steps.push(Step::new(StepKind::Stop, "Master"));
    steps.push(action("create_master", json!({})));
    steps.push(deliver("leaderElectionAgent", "Master", "ElectedLeader"));
    steps.push(deliver(NOBODY, "Master", "CompleteRecovery"));
    steps
}

fn locality_inversion() -> Vec<Step> {
    let mut steps = started();
    steps.push(deliver("AppClient", "Master", REGISTER));
    steps.push(action("create_worker", json!({"worker": "Worker1"})));
    steps.push(deliver("Worker1", "Master", "(RegisterWorker,Worker1)"));
    steps.push(deliver("Master", "Worker1", "RegisteredWorker"));
    let launch = "LaunchExecutor(spark://localhost:1,theOnlyApp,1,ApplicationDescription(Spark Pi),1,512)";
    steps.push(deliver("Master", "Worker1", launch));
    steps.push(deliver(NOBODY, "$a", "(JobSubmitted,0)"));
    for set in [1, 0] {
        let blocks: Vec<String> = (0..4).map(|p| format!("rdd_{set}_{p}")).collect();
        let look_up = format!("GetLocationsMultipleBlockIds({})", blocks.join("-"));
        steps.push(deliver(LOCATIONS, "BlockManagerMaster", &look_up));
        let answer = "ArraySeq(List(), List(), List(), List())";
        steps.push(deliver("BlockManagerMaster", LOCATIONS, answer));
    }
    steps.push(deliver("executor1", "CoarseGrainedScheduler", "RegisterExecutor(1,1,1)"));
    steps.push(deliver("CoarseGrainedScheduler", "executor1", "RegisteredExecutor"));
    for task in 0..2 {
        steps.push(deliver("CoarseGrainedScheduler", "executor1", "LaunchTask"));
        for state in ["RUNNING", "FINISHED"] {
            let update = format!("(StatusUpdate,1,{task},{state})");
            steps.push(deliver("executor1", "CoarseGrainedScheduler", &update));
        }
    }
    steps
}

struct Strictly<'a>(&'a Schedule);

impl Visitor for Strictly<'_> {
    type Output = ReplaySummary;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> ReplaySummary {
        let options = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };
        replay(&mut sim, self.0, &options).unwrap()
    }
}

fn run(settings: &str, switches: &str, steps: Vec<Step>) -> ReplaySummary {
    let text =
        format!("model = \"spark\"\nnetwork = \"fifo\"\n[settings]\n{settings}\n[switches]\n{switches}\n");
    with_model(&Scenario::parse(&text).unwrap(), Strictly(&Schedule::new(steps))).unwrap()
}

#[test]
fn the_shortest_schedules_known_violate_at_their_last_step_and_only_with_their_bug() {
    let names = "disk = false\nlookup_payload = \"names\"";
    for (settings, switch, steps, violation, deliveries, externals) in [
        ("", "spark9256_duplicate_registration", duplicate_file(), "DuplicateFileCrash", 7, 0),
        ("", "spark3150_unset_worker", crash_upon_recovery(), "CrashUponRecovery", 7, 3),
        (names, "spark2294_one_list_removal", locality_inversion(), "LocalityInversion:0.0", 21, 1),
    ] {
        let buggy = run(settings, &format!("{switch} = true"), steps.clone());
        assert_eq!(buggy.violation, [violation], "{:?}", buggy.first_divergence);
        assert_eq!((buggy.verdict, buggy.violation_at), (Verdict::Violates, Some(deliveries)));
        assert_eq!((buggy.deliveries, buggy.externals), (deliveries, externals));
        let mended = run(settings, "", steps);
        assert_eq!((mended.verdict, mended.divergences), (Verdict::DoesNotViolate, 0), "{violation}");
    }
}

#[test]
fn nothing_can_be_done_from_outside_before_the_system_has_started() {
    let mut steps = started();
    steps.insert(2, action("create_worker", json!({"worker": "Worker1"})));
    let summary = run("", "", steps);
    let divergence = summary.first_divergence.unwrap();
    assert_eq!((divergence.step, divergence.got.contains("not started")), (3, true), "{divergence:?}");
}

#[test]
fn the_job_actor_takes_nothing_while_it_waits_for_locations() {
    let mut steps = started();
    steps.push(action("submit_job", json!({"job": 1})));
    steps.push(deliver(NOBODY, "$a", "(JobSubmitted,1)"));
    steps.push(deliver(NOBODY, "$a", "(JobSubmitted,0)"));
    let divergence = run("", "", steps.clone()).first_divergence.unwrap();
    assert_eq!((divergence.step, divergence.got.contains("does not take it")), (7, true), "{divergence:?}");
    steps.truncate(6);
    for _ in 0..2 {
        steps.push(deliver(LOCATIONS, "BlockManagerMaster", "GetLocationsMultipleBlockIds"));
        steps.push(deliver("BlockManagerMaster", LOCATIONS, "ArraySeq(List())"));
    }
    steps.push(deliver(NOBODY, "$a", "(JobSubmitted,0)"));
    assert_eq!(run("", "", steps).divergences, 0);
}

#[test]
fn what_an_isolated_worker_sends_never_arrives() {
    let mut steps = started();
    steps.push(action("create_worker", json!({"worker": "Worker1"})));
    steps.push(Step::new(StepKind::Isolate, "Worker1"));
    let retry = "ScheduleBlock-Worker.scala:registerWithMaster-Worker.scala:preStart-ActorCell.scala:create";
    steps.push(deliver("Worker1", "Master", "(RegisterWorker,Worker1)"));
    steps.push(deliver(NOBODY, "ScheduleFunctionPlaceholder", retry));
    assert_eq!(run("", "", steps.clone()).divergences, 0);
    steps.push(deliver("Worker1", "Master", "(RegisterWorker,Worker1)"));
    assert_eq!(run("", "", steps).first_divergence.unwrap().step, 9);
}

#[test]
fn names_and_values_that_make_no_sense_are_refused() {
    for (text, near) in [
        ("[switches]\nspark2294_one_list = true", "switch 'spark2294_one_list'"),
        ("[settings]\ndisc = true", "'disk'"),
        ("[settings]\nlookup_payload = \"hex\"", "\"identity\""),
        ("[settings]\ncached_data_sets = 1", "true or false"),
        ("invariants = [\"DuplicateFile\"]", "'DuplicateFileCrash'"),
        ("members = 3", "no members"),
    ] {
        let scenario = Scenario::parse(&format!("model = \"spark\"\nnetwork = \"fifo\"\n{text}")).unwrap();
        let empty = Schedule::new(Vec::new());
        let error = with_model(&scenario, Strictly(&empty)).unwrap_err().to_string();
        assert!(error.contains(near), "{error}");
    }
    let bad =
        [json!({"worker": "Worker0"}), json!({"worker": "Worker999999"}), json!({}), json!({"worker": -1})];
    for fields in bad {
        let mut steps = started();
        steps.push(action("create_worker", fields));
        assert_eq!(run("", "", steps).divergences, 1);
    }
}
