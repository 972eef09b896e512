//! The cluster master: registrations, and who runs what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::actors::Number;
use super::message::{Msg, Run, Url};
use super::state::Step;

/// What a master is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    #[default]
    Standby,
    Alive,
    Recovering,
    Completing,
}

/// What a master knows of a worker's or application's whereabouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contact {
    /// It answers.
    Alive,
    /// It was read from disk and has not answered.
    Unknown,
    /// It is given up.
    Dead,
}

/// A worker, as the master sees it: one core and 512 MB.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub id: Number,
    pub contact: Contact,
    /// Whether its core is taken.
    pub busy: bool,
    /// Memory taken.
    pub megabytes: u32,
    /// Executors on it, and whose they are.
    pub executors: Vec<(Number, u32)>,
    pub drivers: Vec<u32>,
}

impl Node {
    pub fn new(id: Number, contact: Contact) -> Node {
        Node { id, contact, busy: false, megabytes: 0, executors: Vec::new(), drivers: Vec::new() }
    }
}

/// Memory of a worker, all of which an executor takes.
pub const MEMORY: u32 = 512;

/// An application, as the master sees it. All have the same id, so they are told apart by a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    pub number: u32,
    pub contact: Contact,
    pub executors: BTreeMap<Number, Run>,
}

/// On which worker a driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The field does not even say that there is none.
    Unset,
    Nowhere,
    On(Number),
}

/// A master.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Master {
    pub mode: Mode,
    /// Whether it is not the first.
    pub later: bool,
    pub nodes: Vec<Node>,
    pub applications: Vec<Application>,
    /// The number of the application that the one id stands for.
    pub mapped: Option<u32>,
    pub next_application: u32,
    /// Drivers by number.
    pub drivers: BTreeMap<u32, Place>,
    pub waiting_drivers: Vec<u32>,
    pub next_driver: u32,
}

/// The keys of what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    pub application: bool,
    pub drivers: BTreeSet<u32>,
    pub workers: BTreeSet<Number>,
}

impl Disk {
    fn is_empty(&self) -> bool {
        !self.application && self.drivers.is_empty() && self.workers.is_empty()
    }
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
    pub fn add_application(&mut self, contact: Contact) {
        let number = self.next_application;
        self.next_application += 1;
        self.mapped = Some(number);
        self.applications.push(Application { number, contact, executors: BTreeMap::new() });
    }

    /// The worker of that id, unless it is given up.
    pub fn node(&mut self, id: Number) -> Option<&mut Node> {
        self.nodes.iter_mut().find(|n| n.id == id && n.contact != Contact::Dead)
    }
}

impl Step<'_, '_> {
    /// The master, to change it.
    pub fn m(&mut self) -> &mut Master {
        Arc::make_mut(&mut self.s.master)
    }

    /// The disk, to change it.
    pub fn disk(&mut self) -> &mut Disk {
        Arc::make_mut(&mut self.s.disk)
    }

    /// Notes what a write to disk says: whether the key was there.
    pub fn written(&mut self, there: bool) {
        self.s.duplicate_file |= there;
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
            Msg::RequestWebUiPort => self.port_answered(),
            Msg::ElectedLeader if self.s.disk.is_empty() => self.m().mode = Mode::Alive,
            Msg::ElectedLeader => self.recover(),
            Msg::CompleteRecovery => self.complete_recovery(),
            Msg::RegisterWorker(id) if self.s.master.mode != Mode::Standby => self.take_worker(*id),
            Msg::RegisterApplication if self.s.master.mode != Mode::Standby => self.take_application(),
            Msg::RequestSubmitDriver if self.s.master.mode == Mode::Alive => self.take_driver(),
            Msg::ExecutorStateChanged(executor, run) => {
                let known = self.m().application().and_then(|a| a.executors.get_mut(executor));
                if let Some(state) = known {
                    *state = *run;
                    self.ctx.send(self.actors.client, Msg::ExecutorUpdated(*executor, *run));
                }
            }
            Msg::MasterChangeAcknowledged(known) => self.acknowledged(*known),
            Msg::SchedulerState { worker, executors, drivers } => {
                self.reported(*worker, executors, drivers);
            }
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
        // All workers share host and port, so one that is given up makes room for any.
        master.nodes.retain(|n| n.contact != Contact::Dead);
        master.nodes.push(Node::new(id, Contact::Alive));
        let url = master.url();
        if self.config.disk {
            let there = !self.disk().workers.insert(id);
            self.written(there);
        }
        self.ctx.send(worker, Msg::RegisteredWorker(url));
        self.schedule_all();
    }

    fn take_application(&mut self) {
        let (client, url) = (self.actors.client, self.s.master.url());
        // Repaired, a client that is known gets its answer again and nothing else happens. The repair belongs to the
        // programs that keep applications on disk: the recorded ones that do not take every registration for a new one.
        let repaired = self.config.disk && !self.config.duplicate_registration;
        if !repaired || self.s.master.mapped.is_none() {
            self.m().add_application(Contact::Alive);
            if self.config.disk {
                let there = std::mem::replace(&mut self.disk().application, true);
                self.written(there);
            }
        }
        self.ctx.send(client, Msg::RegisteredApplication(url));
        self.schedule_all();
    }

    fn take_driver(&mut self) {
        let master = self.m();
        let id = master.next_driver;
        master.next_driver += 1;
        master.drivers.insert(id, Place::Nowhere);
        master.waiting_drivers.push(id);
        if self.config.disk {
            let there = !self.disk().drivers.insert(id);
            self.written(there);
        }
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
        for node in master.nodes.iter_mut().filter(|n| n.contact == Contact::Alive) {
            if !node.busy && node.megabytes < MEMORY && !master.waiting_drivers.is_empty() {
                let id = master.waiting_drivers.remove(0);
                (node.busy, node.megabytes) = (true, node.megabytes + 1);
                node.drivers.push(id);
                master.drivers.insert(id, Place::On(node.id));
                self.ctx.send(actors.worker(node.id), Msg::LaunchDriver(id));
            }
        }
        for application in &mut master.applications {
            // The original sorts by free cores, ascending, and turns that round.
            for node in master.nodes.iter_mut().rev() {
                let usable = node.contact == Contact::Alive && !node.busy && node.megabytes == 0;
                if !usable || node.executors.iter().any(|(_, owner)| *owner == application.number) {
                    continue;
                }
                (node.busy, node.megabytes) = (true, MEMORY);
                node.executors.push((node.id, application.number));
                application.executors.insert(node.id, Run::Running);
                self.ctx.send(actors.worker(node.id), Msg::LaunchExecutor(url, node.id));
                self.ctx.send(client, Msg::ExecutorAddedToClient(node.id));
            }
        }
    }
}
