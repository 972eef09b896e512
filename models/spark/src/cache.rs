//! A cached data set: tasks put its blocks into a store that all executors share, and tell the location directory.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::message::{Msg, TaskRun};
use super::state::Cache;
use super::step::Step;

impl Step<'_, '_> {
    fn cache(&mut self) -> &mut Cache {
        Arc::make_mut(&mut self.s.cache)
    }

    fn status(&mut self, (executor, task): TaskRun, finished: bool) {
        let msg = Msg::StatusUpdate(executor, task, finished);
        self.thread_send(self.actors.executor(executor), self.actors.scheduler, msg);
    }

    /// The thread of a task asks the location directory under a temporary name.
    fn ask(&mut self, run: TaskRun, msg: Msg) {
        let name = STANDARD.encode(format!("{}-apply-linearizeAskWithID-askDriverWithReply", run.1));
        let name = self.ctx.names().id(&name);
        self.thread_send(name, self.actors.blocks, msg);
    }

    /// A thread runs a task. What is not in the store is computed by one task at a time.
    pub fn run(&mut self, run: TaskRun) {
        self.status(run, false);
        let driver = &self.s.driver;
        let (stage, partition) = driver.tasks.get(&run.1).copied().unwrap_or_default();
        let cached = driver.sets.iter().any(|set| set.stage == stage && set.cached);
        if !cached || self.s.cache.stored.contains(&partition) {
            return self.status(run, true);
        }
        if let Some(waiting) = self.cache().computed.get_mut(&partition) {
            return waiting.push(run);
        }
        self.cache().computed.insert(partition, Vec::new());
        self.ask(run, Msg::GetLocations(partition, run));
    }

    /// A task has heard that a partition is nowhere: it computes it.
    pub fn computed(&mut self, partition: u32, run: TaskRun) {
        self.cache().stored.insert(partition);
        self.ask(run, Msg::UpdateBlockInfo(partition, run));
    }

    /// A task has told where a partition is.
    pub fn told(&mut self, partition: u32, run: TaskRun) {
        let cache = self.cache();
        cache.known.insert(partition);
        let waiting = cache.computed.remove(&partition).unwrap_or_default();
        std::iter::once(run).chain(waiting).for_each(|run| self.status(run, true));
    }
}
