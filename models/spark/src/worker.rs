//! Workers and their executors.

use super::actors::Number;
use super::message::{Msg, Url};
use super::step::Step;

impl Step<'_, '_> {
    /// A message to a worker.
    pub fn worker(&mut self, number: Number, msg: &Msg) {
        let master = self.actors.master;
        match *msg {
            Msg::RegisteredWorker(url) => {
                let worker = self.s.worker(number);
                worker.url = Some(url);
                // A repeating timer is registered once.
                if !std::mem::replace(&mut worker.registration.done, true) {
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
                worker.executors.insert(executor, true);
                self.ctx.send(master, Msg::ExecutorStateChanged(executor));
                // An executor of that name that is there already makes the thread fail unnoticed.
                self.ctx.start_actor(self.actors.executor(executor));
            }
            Msg::MasterChanged => {
                let worker = self.s.worker(number);
                worker.url = Some(Url::Later);
                let executors = worker.executors.iter().map(|(k, runs)| (*k, *runs)).collect();
                let drivers = worker.drivers.clone();
                self.ctx.send(master, Msg::SchedulerState(number, executors, drivers));
            }
            Msg::KillExecutor(url, executor) => {
                let worker = self.s.worker(number);
                if worker.url == Some(url) {
                    worker.executors.entry(executor).and_modify(|runs| *runs = false);
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
            Msg::LaunchTask(task) if self.s.executors.get(&number) == Some(&true) => self.run((number, task)),
            _ => {}
        }
    }
}
