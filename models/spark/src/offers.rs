//! The driver program's scheduler: which executor gets which task.

use std::sync::Arc;

use demi_schemas::event::Via;

use super::actors::Number;
use super::message::Msg;
use super::step::Step;

impl Step<'_, '_> {
    /// A message to the scheduler.
    pub fn scheduler(&mut self, msg: &Msg) {
        match *msg {
            Msg::ReviveOffers => {
                self.offer_all();
                self.again(msg);
            }
            Msg::RegisterExecutor(number) => {
                let executor = self.actors.executor(number);
                let driver = self.d();
                if driver.executors.iter().any(|(k, _)| *k == number) {
                    return self.ctx.send(executor, Msg::RegisterExecutorFailed(number));
                }
                let name = number.to_string();
                let at = driver.executors.partition_point(|(k, _)| k.to_string() < name);
                driver.executors.insert(at, (number, 1));
                self.ctx.send(executor, Msg::RegisteredExecutor);
                // Its host, which is new, has the name of the executor.
                self.schedule(self.actors.jobs, Msg::ExecutorAdded(number));
                self.offer_all();
            }
            Msg::StatusUpdate(executor, task, true) => self.finished(executor, task),
            _ => {}
        }
    }

    fn finished(&mut self, executor: Number, task: u32) {
        let driver = self.d();
        let known = driver.tasks.remove(&task);
        if let Some((stage, index)) = known
            && let Some(at) = driver.sets.iter().position(|s| s.stage == stage)
            && Arc::make_mut(&mut driver.sets[at]).succeeded(index)
            && !driver.tasks.values().any(|(s, _)| *s == stage)
        {
            driver.sets.remove(at);
        }
        if let Some((_, free)) = driver.executors.iter_mut().find(|(k, _)| *k == executor) {
            *free += 1;
        }
        self.offer(&[executor]);
        // The thread that fetches results comes after the scheduler's own handler.
        if let Some((stage, partition)) = known {
            let msg = Msg::CompletionEvent(stage, partition);
            self.ctx.send_unordered(self.actors.jobs, msg, Via::Thread);
        }
    }

    fn offer_all(&mut self) {
        let free = |(_, free): &(Number, u32)| *free > 0;
        let driver = &self.s.driver;
        if driver.sets.is_empty() || !driver.executors.iter().any(free) {
            return;
        }
        let executors: Vec<Number> = driver.executors.iter().map(|(k, _)| *k).collect();
        self.offer(&executors);
    }

    /// Offers executors to the active task sets, always in the order of their ids as texts.
    fn offer(&mut self, executors: &[Number]) {
        let one_list = self.config.one_list_removal;
        let driver = Arc::make_mut(&mut self.s.driver);
        let (mut begun, mut launched) = (Vec::new(), Vec::new());
        for set in &mut driver.sets {
            // Passes in which each executor with a free core gets one task, until one launches nothing.
            let mut before = usize::MAX;
            while before != launched.len() {
                before = launched.len();
                let offered = |(k, free): &&mut (Number, u32)| *free > 0 && executors.contains(k);
                for (executor, free) in driver.executors.iter_mut().filter(offered) {
                    let Some((index, inverted)) = Arc::make_mut(set).take(*executor, one_list) else { break };
                    driver.inversion = driver.inversion.or(inverted.then_some(set.stage));
                    *free -= 1;
                    driver.tasks.insert(driver.next_task, (set.stage, index));
                    launched.push((*executor, driver.next_task));
                    begun.push(Msg::BeginEvent(set.stage, index));
                    driver.next_task += 1;
                }
            }
        }
        begun.into_iter().for_each(|msg| self.schedule(self.actors.jobs, msg));
        // Tasks of one executor are sent together.
        for k in executors {
            for (_, task) in launched.iter().filter(|(executor, _)| executor == k) {
                self.ctx.send(self.actors.executor(*k), Msg::LaunchTask(*task));
            }
        }
    }
}
