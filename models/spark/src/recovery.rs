//! How a new master takes over from disk.

use std::sync::Arc;

use super::actors::Number;
use super::message::Msg;
use super::state::{Mode, Node, Place};
use super::step::Step;

impl Step<'_, '_> {
    /// A new leader reads the disk and asks all that are on it.
    pub fn recover(&mut self) {
        let unset = if self.config.unset_worker { Place::Unset } else { Place::Nowhere };
        let disk = Arc::clone(&self.s.disk);
        let master = self.m();
        master.mode = Mode::Recovering;
        if disk.application {
            master.add_application(false);
        }
        master.drivers.extend(disk.drivers.iter().map(|id| (*id, unset)));
        let mut workers: Vec<Number> = disk.workers.iter().copied().collect();
        workers.sort_by_key(|id| format!("Worker{id}"));
        let node = |id: &Number| Node { id: *id, answers: false, busy: false };
        master.nodes.extend(workers.iter().map(node));
        if disk.application {
            self.ctx.send(self.actors.client, Msg::MasterChanged);
        }
        for id in workers {
            self.ctx.send(self.actors.worker(id), Msg::MasterChanged);
        }
        self.again(&Msg::CompleteRecovery);
    }

    /// The client has heard of the new master.
    pub fn acknowledged(&mut self, known: bool) {
        if let Some(application) = self.m().application().filter(|_| known) {
            application.answers = true;
        }
        self.complete_if_all_answered();
    }

    /// A worker has told the new master what it runs.
    pub fn reported(&mut self, id: Number, executors: &[(Number, bool)], drivers: &[u32]) {
        let master = self.m();
        let mapped = master.mapped.is_some();
        if let Some(node) = master.node(id) {
            node.answers = true;
            node.busy |= mapped && !executors.is_empty();
            if let Some(application) = master.application() {
                application.executors.extend(executors.iter().map(|(k, _)| *k));
            }
            for driver in drivers {
                master.drivers.entry(*driver).and_modify(|place| *place = Place::On(id));
            }
        }
        self.complete_if_all_answered();
    }

    fn complete_if_all_answered(&mut self) {
        let master = &self.s.master;
        if master.nodes.iter().all(|n| n.answers) && master.applications.iter().all(|a| a.answers) {
            self.complete_recovery();
        }
    }

    /// Gives up who has not answered, and looks at every driver.
    pub fn complete_recovery(&mut self) {
        if self.s.master.mode != Mode::Recovering {
            return;
        }
        let actors = self.actors;
        let master = Arc::make_mut(&mut self.s.master);
        let disk = Arc::make_mut(&mut self.s.disk);
        master.mode = Mode::Completing;
        let url = master.url();
        // Nobody has said what runs on a worker that has not answered, so nothing is lost with it.
        master.nodes.retain(|n| n.answers);
        disk.workers.retain(|id| master.nodes.iter().any(|n| n.id == *id));
        for application in master.applications.iter().filter(|a| !a.answers) {
            disk.application = false;
            for executor in &application.executors {
                self.ctx.send(actors.worker(*executor), Msg::KillExecutor(url, *executor));
            }
        }
        master.applications.retain(|a| a.answers);
        let left = |number: &u32| master.applications.iter().any(|a| a.number == *number);
        master.mapped = master.mapped.filter(left);
        if master.drivers.values().any(|place| *place == Place::Unset) {
            self.s.recovery_failure = true;
            return;
        }
        // Drivers are not supervised, so one without a worker is dropped.
        master.drivers.retain(|_, place| *place != Place::Nowhere);
        disk.drivers.retain(|id| master.drivers.contains_key(id));
        master.mode = Mode::Alive;
        self.schedule_all();
    }
}
