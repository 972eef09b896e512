//! The driver program: jobs become stages become task sets. Its job actor waits for the locations of data sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use demi_schemas::event::Via;

use super::actors::Number;
use super::message::Msg;
use super::state::{StartUp, Step};
use super::task_set::TaskSet;

/// A question of the job actor that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub job: u32,
    pub stage: u32,
    pub data_set: u32,
    /// Whether it is about the data set that the job's own is made of.
    pub second: bool,
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
    /// Hosts that have executors. A host has the name of its executor.
    pub hosts: BTreeSet<Number>,
    /// Running tasks by number: their stage and index.
    pub tasks: BTreeMap<u32, (u32, u32)>,
    /// Active task sets by priority.
    pub sets: Vec<Arc<TaskSet>>,
    /// Stage of the first task that was launched though better placed ones were listed.
    pub inversion: Option<u32>,
}

/// Partitions of a job's data sets.
pub fn partitions(job: u32) -> u32 {
    if job == 0 { 4 } else { 1 }
}

impl Step<'_, '_> {
    /// The driver's threads' state, to change it.
    pub fn d(&mut self) -> &mut Driver {
        Arc::make_mut(&mut self.s.driver)
    }

    /// A job is submitted, with two data sets of its own.
    pub fn submit(&mut self, job: u32) {
        let driver = self.d();
        let data_set = driver.next_data_set;
        driver.next_data_set += 2;
        self.ctx.send_unordered(self.actors.jobs, Msg::JobSubmitted(job, data_set), Via::Thread);
    }

    /// A message to the job actor.
    pub fn jobs(&mut self, msg: &Msg) {
        if let Msg::JobSubmitted(job, data_set) = *msg {
            let driver = self.d();
            let stage = driver.next_stage;
            driver.next_stage += 1;
            self.look_up(Question { job, stage, data_set, second: false });
        }
    }

    /// Asks for locations and waits.
    fn look_up(&mut self, question: Question) {
        self.d().question = Some(question);
        let (asking, blocks) = (self.actors.asking, self.actors.blocks);
        let data_set = question.data_set + u32::from(!question.second);
        let msg = Msg::LookUp(data_set, partitions(question.job));
        self.ctx.send_as(asking, asking, blocks, msg, Via::Ask);
    }

    /// The answer for the job actor, which goes on where it stopped.
    pub fn located(&mut self) {
        let Some(question) = self.d().question.take() else { return };
        if !question.second {
            return self.look_up(Question { second: true, ..question });
        }
        let driver = self.d();
        let set = TaskSet::new(question.job, question.stage);
        let at = driver.sets.partition_point(|s| (s.job, s.stage) <= (set.job, set.stage));
        driver.sets.insert(at, Arc::new(set));
        self.schedule(self.actors.scheduler, Msg::ReviveOffers);
    }

    /// A message to the location directory.
    pub fn blocks(&mut self, msg: &Msg) {
        match msg {
            Msg::RegisterBlockManager => self.answered(StartUp::Blocks),
            Msg::LookUp(_, partitions) => {
                self.ctx.send(self.actors.asking, Msg::Locations(*partitions));
            }
            _ => {}
        }
    }
}
