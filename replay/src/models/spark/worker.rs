//! Workers and their executors.

use std::collections::BTreeMap;

use super::actors::Number;
use super::client::ATTEMPTS;
use super::message::{Msg, Run, Url};
use super::state::Step;

/// State of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Worker {
    /// Whether a master has taken it.
    registered: bool,
    /// The master it has heard of last.
    url: Option<Url>,
    /// How often the retry block ran, up to [`ATTEMPTS`].
    attempts: u8,
    executors: BTreeMap<Number, Run>,
    drivers: Vec<u32>,
}

impl Step<'_, '_> {
    /// A worker is created.
    pub fn worker_created(&mut self, number: Number) {
        self.s.worker(number);
        self.register_worker(number);
        self.schedule(self.actors.retries, Msg::RetryWorker(number));
    }

    fn register_worker(&mut self, number: Number) {
        let (worker, master) = (self.actors.worker(number), self.actors.master);
        self.thread_send(worker, master, Msg::RegisterWorker(number));
    }

    /// The code that repeats a worker's registration.
    pub fn retry_worker(&mut self, number: Number) {
        let worker = self.s.worker(number);
        worker.attempts = (worker.attempts + 1).min(ATTEMPTS);
        if worker.registered {
            return;
        }
        if worker.attempts < ATTEMPTS {
            self.register_worker(number);
        }
        self.again(&Msg::RetryWorker(number));
    }

    /// A message to a worker.
    pub fn worker(&mut self, number: Number, msg: &Msg) {
        let master = self.actors.master;
        match *msg {
            Msg::RegisteredWorker(url) => {
                let worker = self.s.worker(number);
                worker.url = Some(url);
                // A repeating timer is registered once.
                if !std::mem::replace(&mut worker.registered, true) {
                    self.again(&Msg::SendHeartbeat);
                }
            }
            Msg::SendHeartbeat => {
                if self.s.workers.get(&number).is_some_and(|w| w.url.is_some()) {
                    self.ctx.send(master, Msg::Heartbeat(number));
                }
                self.again(msg);
            }
            Msg::LaunchExecutor(url, executor) => {
                let worker = self.s.worker(number);
                if worker.url != Some(url) {
                    return;
                }
                worker.executors.insert(executor, Run::Running);
                self.ctx.send(master, Msg::ExecutorStateChanged(executor, Run::Running));
                // An executor of that name that is there already makes the thread fail unnoticed.
                self.ctx.start_actor(self.actors.executor(executor));
            }
            Msg::MasterChanged => {
                let worker = self.s.worker(number);
                worker.url = Some(Url::Later);
                let executors = worker.executors.iter().map(|(k, run)| (*k, *run)).collect();
                let drivers = worker.drivers.clone();
                self.ctx.send(master, Msg::SchedulerState { worker: number, executors, drivers });
            }
            Msg::KillExecutor(url, executor) => {
                let worker = self.s.worker(number);
                if worker.url == Some(url)
                    && let Some(run) = worker.executors.get_mut(&executor)
                {
                    *run = Run::Killed;
                }
            }
            Msg::LaunchDriver(id) => self.s.worker(number).drivers.push(id),
            _ => {}
        }
    }

    /// An executor is created.
    pub fn executor_created(&mut self, number: Number) {
        self.s.executors.insert(number, false);
        let (executor, scheduler) = (self.actors.executor(number), self.actors.scheduler);
        self.thread_send(executor, scheduler, Msg::RegisterExecutor(number));
    }

    /// A message to an executor.
    pub fn executor(&mut self, number: Number, msg: &Msg) {
        match *msg {
            Msg::RegisteredExecutor => {
                self.s.executors.insert(number, true);
            }
            // Before that a task is lost unnoticed.
            Msg::LaunchTask(task) if self.s.executors.get(&number) == Some(&true) => {
                let (me, scheduler) = (self.actors.executor(number), self.actors.scheduler);
                for finished in [false, true] {
                    let update = Msg::StatusUpdate { executor: number, task, finished };
                    self.thread_send(me, scheduler, update);
                }
            }
            _ => {}
        }
    }
}
