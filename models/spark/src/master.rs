//! The cluster master: registrations, and who runs what.

use std::sync::Arc;

use super::actors::Number;
use super::message::Msg;
use super::state::{Disk, Master, Mode, Node, Place, StartUp};
use super::step::Step;

impl Step<'_, '_> {
    /// The master, to change it.
    pub fn m(&mut self) -> &mut Master {
        Arc::make_mut(&mut self.s.master)
    }

    /// Writes a key to disk, where there is one; `insert` says whether it is new.
    fn store(&mut self, insert: impl FnOnce(&mut Disk) -> bool) {
        if self.config.disk {
            self.s.duplicate_file |= !insert(Arc::make_mut(&mut self.s.disk));
        }
    }

    /// A master is created, the first one by the start-up thread.
    pub fn master_created(&mut self, later: bool) {
        self.s.master = Arc::new(Master { later, ..Master::default() });
        self.again(&Msg::CheckForWorkerTimeOut);
        let agent = self.actors.agent;
        // The agent of a master that was there before went with it.
        self.ctx.stop_actor(agent);
        self.ctx.start_actor(agent);
    }

    /// A message to the master.
    pub fn master(&mut self, msg: &Msg) {
        match msg {
            Msg::CheckForWorkerTimeOut => self.again(msg),
            Msg::RequestWebUiPort => self.answered(StartUp::Master),
            Msg::ElectedLeader if *self.s.disk == Disk::default() => self.m().mode = Mode::Alive,
            Msg::ElectedLeader => self.recover(),
            Msg::CompleteRecovery => self.complete_recovery(),
            Msg::RegisterWorker(id) if self.s.master.mode != Mode::Standby => self.take_worker(*id),
            Msg::RegisterApplication if self.s.master.mode != Mode::Standby => self.take_application(),
            Msg::RequestSubmitDriver if self.s.master.mode == Mode::Alive => self.take_driver(),
            Msg::ExecutorStateChanged(executor)
                if self.m().application().is_some_and(|a| a.executors.contains(executor)) =>
            {
                self.ctx.send(self.actors.client, Msg::ExecutorUpdated(*executor));
            }
            Msg::MasterChangeAcknowledged(known) => self.acknowledged(*known),
            Msg::SchedulerState(worker, executors, drivers) => self.reported(*worker, executors, drivers),
            _ => {}
        }
    }

    fn take_worker(&mut self, id: Number) {
        let worker = self.actors.worker(id);
        let master = self.m();
        if master.node(id).is_some() {
            self.ctx.send(worker, Msg::RegisterWorkerFailed);
            return;
        }
        master.nodes.push(Node { id, answers: true, busy: false });
        let url = master.url();
        self.store(|disk| disk.workers.insert(id));
        self.ctx.send(worker, Msg::RegisteredWorker(url));
        self.schedule_all();
    }

    fn take_application(&mut self) {
        let (client, url) = (self.actors.client, self.s.master.url());
        self.m().add_application(true);
        // Every recorded program takes a client that registers again for a new application. They differ in what they do
        // with its file, which is there already: repaired, the master does not write it again.
        let again = self.config.duplicate_registration;
        self.store(|disk| !std::mem::replace(&mut disk.application, true) || !again);
        self.ctx.send(client, Msg::RegisteredApplication(url));
        self.schedule_all();
    }

    fn take_driver(&mut self) {
        let master = self.m();
        let id = master.next_driver;
        master.next_driver += 1;
        master.drivers.insert(id, Place::Nowhere);
        self.store(|disk| disk.drivers.insert(id));
        self.schedule_all();
        self.s.driver_submitted = true;
    }

    /// Gives free workers to waiting drivers, and what is left to applications, the first of which takes all.
    pub fn schedule_all(&mut self) {
        if self.s.master.mode != Mode::Alive {
            return;
        }
        let (actors, client) = (self.actors, self.actors.client);
        let master = Arc::make_mut(&mut self.s.master);
        let url = master.url();
        let free = |node: &&mut Node| node.answers && !node.busy;
        let waiting = master.drivers.iter_mut().filter(|(_, place)| **place == Place::Nowhere);
        for (node, (id, place)) in master.nodes.iter_mut().filter(free).zip(waiting) {
            (node.busy, *place) = (true, Place::On(node.id));
            self.ctx.send(actors.worker(node.id), Msg::LaunchDriver(*id));
        }
        for application in &mut master.applications {
            // The original sorts by free cores, ascending, and turns that round.
            for node in master.nodes.iter_mut().rev().filter(free) {
                node.busy = true;
                application.executors.insert(node.id);
                self.ctx.send(actors.worker(node.id), Msg::LaunchExecutor(url, node.id));
                self.ctx.send(client, Msg::ExecutorAddedToClient(node.id));
            }
        }
    }
}
