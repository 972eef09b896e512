//! The state that all actors share: one program's threads, and the code outside actors, reach across them.
//!
//! Parts that change seldom are shared between copies of a world until one changes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::actors::Number;
use super::message::{TaskRun, Url};
use super::task_set::TaskSet;

/// What the driver program's main thread waits for: answers of the location directory, of the master, and of who creates
/// the job actor. Then all is there and the first job submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StartUp {
    #[default]
    Blocks,
    Master,
    Jobs,
    Done,
}

/// How far somebody has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registration {
    /// Whether a master answered.
    pub done: bool,
    /// How often the retry block ran, up to the most attempts there are.
    pub attempts: u8,
}

/// State of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Worker {
    pub registration: Registration,
    /// The master it has heard of last.
    pub url: Option<Url>,
    /// Executors it has started, and whether they still run.
    pub executors: BTreeMap<Number, bool>,
    pub drivers: Vec<u32>,
}

/// What a master is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    #[default]
    Standby,
    Alive,
    Recovering,
    Completing,
}

/// A worker, as the master sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub id: Number,
    /// Whether it registered or answered, and was not only read from disk.
    pub answers: bool,
    /// Whether an executor or a driver has its one core. An executor takes all its memory, too.
    pub busy: bool,
}

/// An application, as the master sees it. All have the same id, so they are told apart by a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    pub number: u32,
    /// As for workers.
    pub answers: bool,
    pub executors: BTreeSet<Number>,
}

/// On which worker a driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The field does not even say that there is none.
    Unset,
    Nowhere,
    On(Number),
}

/// A master: the first, or a later one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Master {
    pub mode: Mode,
    pub later: bool,
    pub nodes: Vec<Node>,
    pub applications: Vec<Application>,
    /// The number of the application that the one id stands for.
    pub mapped: Option<u32>,
    pub next_application: u32,
    /// Drivers by number. One without a worker waits.
    pub drivers: BTreeMap<u32, Place>,
    pub next_driver: u32,
}

/// The keys of what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    pub application: bool,
    pub drivers: BTreeSet<u32>,
    pub workers: BTreeSet<Number>,
}

impl Master {
    pub fn url(&self) -> Url {
        if self.later { Url::Later } else { Url::First }
    }

    /// The application that the one id stands for.
    pub fn application(&mut self) -> Option<&mut Application> {
        let mapped = self.mapped?;
        self.applications.iter_mut().find(|a| a.number == mapped)
    }

    /// Adds an application, to which the one id now points.
    pub fn add_application(&mut self, answers: bool) {
        let number = self.next_application;
        self.next_application += 1;
        self.mapped = Some(number);
        self.applications.push(Application { number, answers, executors: BTreeSet::new() });
    }

    /// The worker of that id.
    pub fn node(&mut self, id: Number) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|n| n.id == id)
    }
}

/// A question of the job actor that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub job: u32,
    pub stage: u32,
    pub data_set: u32,
    /// What the data set is made of: another one, or only itself.
    pub made_of: u32,
}

/// What the driver program's threads share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Driver {
    pub question: Option<Question>,
    pub next_stage: u32,
    pub next_data_set: u32,
    pub next_task: u32,
    /// Executors and their free cores, in the order of their ids as texts.
    pub executors: Vec<(Number, u32)>,
    /// Running tasks by number: their stage and index.
    pub tasks: BTreeMap<u32, (u32, u32)>,
    /// Active task sets by priority.
    pub sets: Vec<Arc<TaskSet>>,
    /// Stage of the first task that was launched though better placed ones were listed.
    pub inversion: Option<u32>,
}

/// The partitions of the data set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cache {
    /// In the store.
    pub stored: BTreeSet<u32>,
    /// Of which the location directory knows where they are.
    pub known: BTreeSet<u32>,
    /// Being computed by a task, and the tasks that wait for that.
    pub computed: BTreeMap<u32, Vec<TaskRun>>,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct System {
    pub start_up: StartUp,
    /// The master that exists, or was the last.
    pub master: Arc<Master>,
    /// What outlives a master.
    pub disk: Arc<Disk>,
    pub client: Registration,
    pub workers: BTreeMap<Number, Arc<Worker>>,
    /// Executors that were created, and whether they are registered.
    pub executors: BTreeMap<Number, bool>,
    pub driver: Arc<Driver>,
    pub cache: Arc<Cache>,
    /// Whether a key was written to disk that was there.
    pub duplicate_file: bool,
    /// Whether a master could not complete its recovery.
    pub recovery_failure: bool,
    /// Whether a master has taken a driver to run.
    pub driver_submitted: bool,
}

impl System {
    /// A worker, to change it.
    pub fn worker(&mut self, number: Number) -> &mut Worker {
        Arc::make_mut(self.workers.entry(number).or_default())
    }
}
