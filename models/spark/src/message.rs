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

/// Declares the messages: the type tag that logs give them, the content, and how logs write it if not as the tag.
macro_rules! messages {
    ($lookup:ident $($(#[$doc:meta])* $tag:literal $name:ident $(($($field:ident: $ty:ty),*))? $(=> $text:expr)?,)*) => {
        /// What is sent. Where logs do not show what a message carries, the doc says what is hidden.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Msg { $($(#[$doc])* $name $(($($ty),*))?,)* }

        impl Msg {
            /// Message type tag.
            pub fn type_name(&self) -> &'static str {
                match self { $(Msg::$name { .. } => $tag,)* }
            }

            /// Full content, as logs write it.
            pub fn payload(&self, $lookup: LookupPayload) -> String {
                match self { $(Msg::$name $(($($field),*))? => messages!(@text $tag $(, $text)?),)* }
            }
        }
    };
    (@text $tag:literal) => { $tag.to_owned() };
    (@text $tag:literal, $text:expr) => { $text.into() };
}

messages! { lookup
    "RegisterBlockManager" RegisterBlockManager,
    "RequestWebUIPort" RequestWebUiPort,
    "Props" Props => PROPS,
    "ElectedLeader" ElectedLeader,
    "CheckForWorkerTimeOut" CheckForWorkerTimeOut,
    "CompleteRecovery" CompleteRecovery,
    "RequestSubmitDriver" RequestSubmitDriver => "RequestSubmitDriver(DriverDescription ())",
    "RegisterApplication" RegisterApplication => "RegisterApplication(ApplicationDescription(Spark Pi))",
    /// Hidden: the master.
    "RegisteredApplication" RegisteredApplication(_url: Url),
    "ExecutorAdded" ExecutorAddedToClient(k: Number) => format!("ExecutorAdded({k},Worker{k},localhost:12345,1,512)"),
    "ExecutorUpdated" ExecutorUpdated(k: Number) => format!("ExecutorUpdated({k},RUNNING,None,None)"),
    "MasterChanged" MasterChanged => "MasterChanged(spark://localhost:12345,http://localhost:-1)",
    /// Whether the client knows its application's id.
    "MasterChangeAcknowledged" MasterChangeAcknowledged(known: bool) =>
        format!("MasterChangeAcknowledged({})", if *known { "theOnlyApp" } else { "null" }),
    "RegisterWorker" RegisterWorker(n: Number) => format!("(RegisterWorker,Worker{n})"),
    /// Hidden: the master.
    "RegisteredWorker" RegisteredWorker(_url: Url),
    "RegisterWorkerFailed" RegisterWorkerFailed => "RegisterWorkerFailed(Duplicate worker ID)",
    "Heartbeat" Heartbeat(n: Number) => format!("Heartbeat(Worker{n})"),
    "SendHeartbeat" SendHeartbeat,
    "LaunchExecutor" LaunchExecutor(url: Url, k: Number) =>
        format!("LaunchExecutor({},theOnlyApp,{k},ApplicationDescription(Spark Pi),1,512)", url.text()),
    "KillExecutor" KillExecutor(url: Url, k: Number) => format!("KillExecutor({},theOnlyApp,{k})", url.text()),
    "LaunchDriver" LaunchDriver(id: u32) => format!("LaunchDriver(driver-0-{id:04},DriverDescription ())"),
    "ExecutorStateChanged" ExecutorStateChanged(k: Number) => format!("(ExecutorStateChanged,{k},RUNNING)"),
    /// A worker's executors, each with whether it still runs, and drivers.
    "WorkerSchedulerStateResponse" SchedulerState(worker: Number, executors: Vec<(Number, bool)>, drivers: Vec<u32>) => {
        let executors = joined(executors, |(k, runs)| {
            let state = if *runs { "RUNNING" } else { "KILLED" };
            format!("ExecutorState(appId=theOnlyApp, execId={k}, cores=1, state={state})")
        });
        let drivers = joined(drivers, |id| format!("driver-0-{id:04}"));
        format!("WorkerSchedulerStateResponse(Worker{worker},List({executors}),ArrayBuffer({drivers}))")
    },
    "RegisterExecutor" RegisterExecutor(k: Number) => format!("RegisterExecutor({k},{k},1)"),
    "RegisterExecutorFailed" RegisterExecutorFailed(k: Number) =>
        format!("RegisterExecutorFailed(Duplicate executor ID: {k})"),
    "RegisteredExecutor" RegisteredExecutor,
    /// Hidden: the task.
    "LaunchTask" LaunchTask(_task: u32),
    /// Executor, task, and whether that is finished.
    "StatusUpdate" StatusUpdate(k: Number, task: u32, finished: bool) =>
        format!("(StatusUpdate,{k},{task},{})", if *finished { "FINISHED" } else { "RUNNING" }),
    "ReviveOffers" ReviveOffers,
    /// A job. Hidden: its data set, and the one that this is made of, or the same again.
    "JobSubmitted" JobSubmitted(job: u32, _data_set: u32, _made_of: u32) => format!("(JobSubmitted,{job})"),
    "ExecutorAdded" ExecutorAdded(k: Number) => format!("ExecutorAdded({k},{k})"),
    /// Stage and partition, as in the next.
    "BeginEvent" BeginEvent(stage: u32, partition: u32) => format!("(BeginEvent,ResultTask({stage}, {partition}))"),
    "CompletionEvent" CompletionEvent(stage: u32, partition: u32) =>
        format!("(CompletionEvent,ResultTask({stage}, {partition}),Success)"),
    /// A data set and its number of partitions.
    "GetLocationsMultipleBlockIds" LookUp(data_set: u32, partitions: u32) => match lookup {
        LookupPayload::Constant => "GetLocationsMultipleBlockIds".to_owned(),
        LookupPayload::Names => {
            let mut blocks: Vec<String> = (0..*partitions).map(|p| format!("rdd_{data_set}_{p}")).collect();
            blocks.sort();
            format!("GetLocationsMultipleBlockIds({})", blocks.join("-"))
        }
        LookupPayload::Identity => "GetLocationsMultipleBlockIds([Lorg.apache.spark.storage.BlockId;@0)".to_owned(),
    },
    /// For each partition whether its location is known.
    "ArraySeq" Locations(known: Vec<bool>) => {
        let location = |known: &bool| if *known { "ArrayBuffer(BlockManagerId(<driver>))" } else { "List()" }.to_owned();
        format!("ArraySeq({})", joined(known, location))
    },
    /// The partition of the cached data set that a task asks for. Hidden: its executor; the sender's name has the task.
    "GetLocations" GetLocations(partition: u32, _run: TaskRun) => format!("GetLocations(rdd_0_{partition})"),
    /// The same, to make it known.
    "UpdateBlockInfo" UpdateBlockInfo(partition: u32, _run: TaskRun) =>
        format!("(UpdateBlockInfo,rdd_0_{partition},StorageLevel(false, true, false, true, 1))"),
    /// Hidden: the worker, if it is not the client's.
    "ScheduleBlock" Retry(worker: Option<Number>) => {
        let owner = if worker.is_some() { "Worker" } else { "AppClient" };
        format!("ScheduleBlock-{owner}.scala:registerWithMaster-{owner}.scala:preStart-ActorCell.scala:create")
    },
}

/// An executor, and a task that it runs.
pub type TaskRun = (Number, u32);

const PROPS: &str = "Props(Deploy(,Config(SimpleConfigObject({})),NoRouter,NoScopeGiven,,),class \
                     akka.actor.TypedCreatorFunctionConsumer,Vector(class \
                     org.apache.spark.scheduler.DAGSchedulerEventProcessActor, <function0>))";

fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<String>>().join(", ")
}

impl Msg {
    /// What distinguishes messages that logs write alike.
    pub fn hidden(&self) -> Option<String> {
        match self {
            Msg::RegisteredApplication(url) | Msg::RegisteredWorker(url) => Some(url.text().to_owned()),
            Msg::LaunchTask(task) => Some(task.to_string()),
            Msg::JobSubmitted(_, data_set, _) => Some(data_set.to_string()),
            Msg::Retry(Some(n)) => Some(format!("Worker{n}")),
            _ => None,
        }
    }
}
