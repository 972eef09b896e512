//! The state that all actors share: one program's threads, and the code outside actors, reach across them.
//!
//! Parts that change seldom are shared between copies of a world until one changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::actors::{Actors, Number};
use super::cache::Cache;
use super::config::Config;
use super::driver::Driver;
use super::master::{Disk, Master};
use super::message::Msg;
use super::registration::Registration;
use super::worker::Worker;
use crate::model::Ctx;
use crate::names::ActorId;
use demi_schemas::event::Via;

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

/// One step: the rules, the state, and what may be done.
pub struct Step<'a, 'c> {
    pub config: &'a Config,
    pub actors: &'a Actors,
    pub s: &'a mut System,
    pub ctx: &'a mut Ctx<'c, Msg>,
}

impl Step<'_, '_> {
    /// Sends in the name of an actor, from a thread that runs beside it.
    pub fn thread_send(&mut self, from: ActorId, to: ActorId, msg: Msg) {
        self.ctx.send_as(from, from, to, msg, Via::Thread);
    }

    /// Puts a message among the pending ones that nobody sends and nothing orders.
    pub fn schedule(&mut self, to: ActorId, msg: Msg) {
        self.ctx.send_unordered(to, msg, Via::Scheduler);
    }

    /// The repeating timer or the retry block that was just delivered becomes pending again.
    pub fn again(&mut self, msg: &Msg) {
        let me = self.ctx.me();
        self.schedule(me, msg.clone());
    }
}
