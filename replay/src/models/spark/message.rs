//! Messages, and how logs write them.

use super::actors::Number;
use super::config::LookupPayload;

/// Which master a worker or client has heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Url {
    /// The one that was there first.
    First,
    /// One created later.
    Later,
}

impl Url {
    fn text(self) -> &'static str {
        match self {
            Url::First => "spark://localhost:1",
            Url::Later => "spark://localhost:12345",
        }
    }
}

/// State of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Run {
    /// It runs.
    Running,
    /// It was told to end.
    Killed,
    /// Its worker is gone.
    Lost,
}

/// What is sent. Where logs do not show what a message carries, the doc says what is hidden.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    RegisterBlockManager,
    RequestWebUiPort,
    Props,
    ElectedLeader,
    CheckForWorkerTimeOut,
    CompleteRecovery,
    RequestSubmitDriver,
    RegisterApplication,
    /// Hidden: the master.
    RegisteredApplication(Url),
    ExecutorAddedToClient(Number),
    ExecutorUpdated(Number, Run),
    MasterChanged,
    /// Whether the client knows its application's id.
    MasterChangeAcknowledged(bool),
    RegisterWorker(Number),
    /// Hidden: the master.
    RegisteredWorker(Url),
    RegisterWorkerFailed,
    Heartbeat(Number),
    SendHeartbeat,
    LaunchExecutor(Url, Number),
    KillExecutor(Url, Number),
    LaunchDriver(u32),
    ExecutorStateChanged(Number, Run),
    SchedulerState {
        worker: Number,
        executors: Vec<(Number, Run)>,
        drivers: Vec<u32>,
    },
    RegisterExecutor(Number),
    RegisterExecutorFailed(Number),
    RegisteredExecutor,
    /// Hidden: the task.
    LaunchTask(u32),
    StatusUpdate {
        executor: Number,
        task: u32,
        finished: bool,
    },
    ReviveOffers,
    /// Hidden: the job's data set; the one made of it has the next number.
    JobSubmitted {
        job: u32,
        data_set: u32,
    },
    ExecutorAdded(Number),
    BeginEvent {
        stage: u32,
        partition: u32,
    },
    CompletionEvent {
        stage: u32,
        partition: u32,
    },
    LookUp {
        data_set: u32,
        partitions: u32,
    },
    /// Locations of so many partitions, all of them unknown.
    Locations(u32),
    RetryClient,
    /// Hidden: the worker.
    RetryWorker(Number),
}

const PROPS: &str = "Props(Deploy(,Config(SimpleConfigObject({})),NoRouter,NoScopeGiven,,),class \
                     akka.actor.TypedCreatorFunctionConsumer,Vector(class \
                     org.apache.spark.scheduler.DAGSchedulerEventProcessActor, <function0>))";

impl Msg {
    /// Message type tag.
    pub fn type_name(&self) -> &'static str {
        match self {
            Msg::RegisterBlockManager => "RegisterBlockManager",
            Msg::RequestWebUiPort => "RequestWebUIPort",
            Msg::Props => "Props",
            Msg::ElectedLeader => "ElectedLeader",
            Msg::CheckForWorkerTimeOut => "CheckForWorkerTimeOut",
            Msg::CompleteRecovery => "CompleteRecovery",
            Msg::RequestSubmitDriver => "RequestSubmitDriver",
            Msg::RegisterApplication => "RegisterApplication",
            Msg::RegisteredApplication(_) => "RegisteredApplication",
            Msg::ExecutorAddedToClient(_) | Msg::ExecutorAdded(_) => "ExecutorAdded",
            Msg::ExecutorUpdated(..) => "ExecutorUpdated",
            Msg::MasterChanged => "MasterChanged",
            Msg::MasterChangeAcknowledged(_) => "MasterChangeAcknowledged",
            Msg::RegisterWorker(_) => "RegisterWorker",
            Msg::RegisteredWorker(_) => "RegisteredWorker",
            Msg::RegisterWorkerFailed => "RegisterWorkerFailed",
            Msg::Heartbeat(_) => "Heartbeat",
            Msg::SendHeartbeat => "SendHeartbeat",
            Msg::LaunchExecutor(..) => "LaunchExecutor",
            Msg::KillExecutor(..) => "KillExecutor",
            Msg::LaunchDriver(_) => "LaunchDriver",
            Msg::ExecutorStateChanged(..) => "ExecutorStateChanged",
            Msg::SchedulerState { .. } => "WorkerSchedulerStateResponse",
            Msg::RegisterExecutor(_) => "RegisterExecutor",
            Msg::RegisterExecutorFailed(_) => "RegisterExecutorFailed",
            Msg::RegisteredExecutor => "RegisteredExecutor",
            Msg::LaunchTask(_) => "LaunchTask",
            Msg::StatusUpdate { .. } => "StatusUpdate",
            Msg::ReviveOffers => "ReviveOffers",
            Msg::JobSubmitted { .. } => "JobSubmitted",
            Msg::BeginEvent { .. } => "BeginEvent",
            Msg::CompletionEvent { .. } => "CompletionEvent",
            Msg::LookUp { .. } => "GetLocationsMultipleBlockIds",
            Msg::Locations(_) => "ArraySeq",
            Msg::RetryClient | Msg::RetryWorker(_) => "ScheduleBlock",
        }
    }

    /// Full content, as logs write it.
    pub fn payload(&self, lookup: LookupPayload) -> String {
        match self {
            Msg::Props => PROPS.to_owned(),
            Msg::RequestSubmitDriver => "RequestSubmitDriver(DriverDescription ())".to_owned(),
            Msg::RegisterApplication => "RegisterApplication(ApplicationDescription(Spark Pi))".to_owned(),
            Msg::ExecutorAddedToClient(k) => format!("ExecutorAdded({k},Worker{k},localhost:12345,1,512)"),
            Msg::ExecutorUpdated(k, Run::Lost) => format!("ExecutorUpdated({k},LOST,Some(worker lost),None)"),
            Msg::ExecutorUpdated(k, run) => format!("ExecutorUpdated({k},{},None,None)", run_text(*run)),
            Msg::MasterChanged => "MasterChanged(spark://localhost:12345,http://localhost:-1)".to_owned(),
            Msg::MasterChangeAcknowledged(known) => {
                format!("MasterChangeAcknowledged({})", if *known { "theOnlyApp" } else { "null" })
            }
            Msg::RegisterWorker(n) => format!("(RegisterWorker,Worker{n})"),
            Msg::RegisterWorkerFailed => "RegisterWorkerFailed(Duplicate worker ID)".to_owned(),
            Msg::Heartbeat(n) => format!("Heartbeat(Worker{n})"),
            Msg::LaunchExecutor(url, k) => format!(
                "LaunchExecutor({},theOnlyApp,{k},ApplicationDescription(Spark Pi),1,512)",
                url.text()
            ),
            Msg::KillExecutor(url, k) => format!("KillExecutor({},theOnlyApp,{k})", url.text()),
            Msg::LaunchDriver(id) => format!("LaunchDriver(driver-0-{id:04},DriverDescription ())"),
            Msg::ExecutorStateChanged(k, run) => format!("(ExecutorStateChanged,{k},{})", run_text(*run)),
            Msg::SchedulerState { worker, executors, drivers } => {
                let executor = |(k, run): &(Number, Run)| {
                    let run = run_text(*run);
                    format!("ExecutorState(appId=theOnlyApp, execId={k}, cores=1, state={run})")
                };
                let executors: Vec<String> = executors.iter().map(executor).collect();
                let drivers: Vec<String> = drivers.iter().map(|id| format!("driver-0-{id:04}")).collect();
                format!(
                    "WorkerSchedulerStateResponse(Worker{worker},List({}),ArrayBuffer({}))",
                    executors.join(", "),
                    drivers.join(", ")
                )
            }
            Msg::RegisterExecutor(k) => format!("RegisterExecutor({k},{k},1)"),
            Msg::RegisterExecutorFailed(k) => format!("RegisterExecutorFailed(Duplicate executor ID: {k})"),
            Msg::StatusUpdate { executor, task, finished } => {
                format!("(StatusUpdate,{executor},{task},{})", if *finished { "FINISHED" } else { "RUNNING" })
            }
            Msg::JobSubmitted { job, .. } => format!("(JobSubmitted,{job})"),
            Msg::ExecutorAdded(k) => format!("ExecutorAdded({k},{k})"),
            Msg::BeginEvent { stage, partition } => format!("(BeginEvent,ResultTask({stage}, {partition}))"),
            Msg::CompletionEvent { stage, partition } => {
                format!("(CompletionEvent,ResultTask({stage}, {partition}),Success)")
            }
            Msg::LookUp { data_set, partitions } => match lookup {
                LookupPayload::Constant => self.type_name().to_owned(),
                LookupPayload::Names => {
                    let mut blocks: Vec<String> =
                        (0..*partitions).map(|p| format!("rdd_{data_set}_{p}")).collect();
                    blocks.sort();
                    format!("{}({})", self.type_name(), blocks.join("-"))
                }
                LookupPayload::Identity => {
                    format!("{}([Lorg.apache.spark.storage.BlockId;@0)", self.type_name())
                }
            },
            Msg::Locations(n) => format!("ArraySeq({})", vec!["List()"; *n as usize].join(", ")),
            Msg::RetryClient => retry("AppClient"),
            Msg::RetryWorker(_) => retry("Worker"),
            _ => self.type_name().to_owned(),
        }
    }

    /// What distinguishes messages that logs write alike.
    pub fn hidden(&self) -> Option<String> {
        match self {
            Msg::RegisteredApplication(url) | Msg::RegisteredWorker(url) => Some(url.text().to_owned()),
            Msg::LaunchTask(task) => Some(task.to_string()),
            Msg::JobSubmitted { data_set, .. } => Some(data_set.to_string()),
            Msg::RetryWorker(n) => Some(format!("Worker{n}")),
            _ => None,
        }
    }
}

fn run_text(run: Run) -> &'static str {
    match run {
        Run::Running => "RUNNING",
        Run::Killed => "KILLED",
        Run::Lost => "LOST",
    }
}

fn retry(owner: &str) -> String {
    format!("ScheduleBlock-{owner}.scala:registerWithMaster-{owner}.scala:preStart-ActorCell.scala:create")
}
