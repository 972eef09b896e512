//! Messages, and how logs write them.

use super::actors::Number;
use super::config::LookupPayload;

/// Which master a worker or client has heard of: the one that was there first, or one created later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Url {
    First,
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

/// Declares the messages with the type tags that logs give them.
macro_rules! messages {
    ($($(#[$doc:meta])* $tag:literal $name:ident $(($($field:ty),*))?,)*) => {
        /// What is sent. Where logs do not show what a message carries, the doc says what is hidden.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Msg { $($(#[$doc])* $name $(($($field),*))?,)* }

        impl Msg {
            /// Message type tag.
            pub fn type_name(&self) -> &'static str {
                match self { $(messages!(@pattern $name $(($($field),*))?) => $tag,)* }
            }
        }
    };
    (@pattern $name:ident) => { Msg::$name };
    (@pattern $name:ident $fields:tt) => { Msg::$name(..) };
}

messages! {
    "RegisterBlockManager" RegisterBlockManager,
    "RequestWebUIPort" RequestWebUiPort,
    "Props" Props,
    "ElectedLeader" ElectedLeader,
    "CheckForWorkerTimeOut" CheckForWorkerTimeOut,
    "CompleteRecovery" CompleteRecovery,
    "RequestSubmitDriver" RequestSubmitDriver,
    "RegisterApplication" RegisterApplication,
    /// Hidden: the master.
    "RegisteredApplication" RegisteredApplication(Url),
    "ExecutorAdded" ExecutorAddedToClient(Number),
    "ExecutorUpdated" ExecutorUpdated(Number),
    "MasterChanged" MasterChanged,
    /// Whether the client knows its application's id.
    "MasterChangeAcknowledged" MasterChangeAcknowledged(bool),
    "RegisterWorker" RegisterWorker(Number),
    /// Hidden: the master.
    "RegisteredWorker" RegisteredWorker(Url),
    "RegisterWorkerFailed" RegisterWorkerFailed,
    "Heartbeat" Heartbeat(Number),
    "SendHeartbeat" SendHeartbeat,
    "LaunchExecutor" LaunchExecutor(Url, Number),
    "KillExecutor" KillExecutor(Url, Number),
    "LaunchDriver" LaunchDriver(u32),
    "ExecutorStateChanged" ExecutorStateChanged(Number),
    /// A worker's executors, each with whether it still runs, and drivers.
    "WorkerSchedulerStateResponse" SchedulerState(Number, Vec<(Number, bool)>, Vec<u32>),
    "RegisterExecutor" RegisterExecutor(Number),
    "RegisterExecutorFailed" RegisterExecutorFailed(Number),
    "RegisteredExecutor" RegisteredExecutor,
    /// Hidden: the task.
    "LaunchTask" LaunchTask(u32),
    /// Executor, task, and whether that is finished.
    "StatusUpdate" StatusUpdate(Number, u32, bool),
    "ReviveOffers" ReviveOffers,
    /// A job. Hidden: its data set; the one made of it has the next number.
    "JobSubmitted" JobSubmitted(u32, u32),
    "ExecutorAdded" ExecutorAdded(Number),
    /// Stage and partition, as in the next.
    "BeginEvent" BeginEvent(u32, u32),
    "CompletionEvent" CompletionEvent(u32, u32),
    /// A data set and its number of partitions.
    "GetLocationsMultipleBlockIds" LookUp(u32, u32),
    /// Locations of so many partitions, all of them unknown.
    "ArraySeq" Locations(u32),
    /// Hidden: the worker, if it is not the client's.
    "ScheduleBlock" Retry(Option<Number>),
}

const PROPS: &str = "Props(Deploy(,Config(SimpleConfigObject({})),NoRouter,NoScopeGiven,,),class \
                     akka.actor.TypedCreatorFunctionConsumer,Vector(class \
                     org.apache.spark.scheduler.DAGSchedulerEventProcessActor, <function0>))";

impl Msg {
    /// Full content, as logs write it.
    pub fn payload(&self, lookup: LookupPayload) -> String {
        match self {
            Msg::Props => PROPS.to_owned(),
            Msg::RequestSubmitDriver => "RequestSubmitDriver(DriverDescription ())".to_owned(),
            Msg::RegisterApplication => "RegisterApplication(ApplicationDescription(Spark Pi))".to_owned(),
            Msg::ExecutorAddedToClient(k) => format!("ExecutorAdded({k},Worker{k},localhost:12345,1,512)"),
            Msg::ExecutorUpdated(k) => format!("ExecutorUpdated({k},RUNNING,None,None)"),
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
            Msg::ExecutorStateChanged(k) => format!("(ExecutorStateChanged,{k},RUNNING)"),
            Msg::SchedulerState(worker, executors, drivers) => {
                let executor = |(k, runs): &(Number, bool)| {
                    let run = if *runs { "RUNNING" } else { "KILLED" };
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
            Msg::StatusUpdate(executor, task, finished) => {
                format!("(StatusUpdate,{executor},{task},{})", if *finished { "FINISHED" } else { "RUNNING" })
            }
            Msg::JobSubmitted(job, _) => format!("(JobSubmitted,{job})"),
            Msg::ExecutorAdded(k) => format!("ExecutorAdded({k},{k})"),
            Msg::BeginEvent(stage, partition) => format!("(BeginEvent,ResultTask({stage}, {partition}))"),
            Msg::CompletionEvent(stage, partition) => {
                format!("(CompletionEvent,ResultTask({stage}, {partition}),Success)")
            }
            Msg::LookUp(data_set, partitions) => match lookup {
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
            Msg::Retry(worker) => {
                let owner = if worker.is_some() { "Worker" } else { "AppClient" };
                format!(
                    "ScheduleBlock-{owner}.scala:registerWithMaster-{owner}.scala:preStart-ActorCell.scala:create"
                )
            }
            _ => self.type_name().to_owned(),
        }
    }

    /// What distinguishes messages that logs write alike.
    pub fn hidden(&self) -> Option<String> {
        match self {
            Msg::RegisteredApplication(url) | Msg::RegisteredWorker(url) => Some(url.text().to_owned()),
            Msg::LaunchTask(task) => Some(task.to_string()),
            Msg::JobSubmitted(_, data_set) => Some(data_set.to_string()),
            Msg::Retry(Some(n)) => Some(format!("Worker{n}")),
            _ => None,
        }
    }
}
