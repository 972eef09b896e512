//! The driver program: jobs become stages become task sets. Its job actor waits for the locations of data sets.

use std::sync::Arc;

use demi_schemas::event::Via;

use super::message::Msg;
use super::state::{Driver, Question, StartUp};
use super::step::Step;
use super::task_set::TaskSet;

/// Partitions of a job's data sets.
pub fn partitions(job: u32) -> u32 {
    if job == 0 { 4 } else { 1 }
}

impl Step<'_, '_> {
    /// The driver's threads' state, to change it.
    pub fn d(&mut self) -> &mut Driver {
        Arc::make_mut(&mut self.s.driver)
    }

    /// A job is submitted, with two data sets of its own, one made of the other. The first may be cached, and is then
    /// that of a job, too.
    pub fn submit(&mut self, job: u32) {
        let driver = self.d();
        let first = driver.next_data_set;
        driver.next_data_set += 2;
        let alone = u32::from(!(self.config.cached && first == 0));
        for data_set in first + alone..first + 2 {
            let msg = Msg::JobSubmitted(job, data_set, first);
            self.ctx.send_unordered(self.actors.jobs, msg, Via::Thread);
        }
    }

    /// A message to the job actor.
    pub fn jobs(&mut self, msg: &Msg) {
        if let Msg::JobSubmitted(job, data_set, made_of) = *msg {
            let driver = self.d();
            let stage = driver.next_stage;
            driver.next_stage += 1;
            self.look_up(Question { job, stage, data_set, made_of });
        }
    }

    /// Asks for locations and waits.
    fn look_up(&mut self, question: Question) {
        self.d().question = Some(question);
        let (asking, blocks) = (self.actors.asking, self.actors.blocks);
        let msg = Msg::LookUp(question.data_set, partitions(question.job));
        self.ctx.send_as(asking, asking, blocks, msg, Via::Ask);
    }

    /// The answer for the job actor, which goes on where it stopped.
    pub fn located(&mut self, msg: &Msg) {
        let (Msg::Locations(known), Some(question)) = (msg, self.d().question.take()) else { return };
        if question.data_set != question.made_of {
            return self.look_up(Question { data_set: question.made_of, ..question });
        }
        let cached = self.config.cached && question.data_set == 0;
        let driver = self.d();
        let set = TaskSet::new((question.job, question.stage), known, cached);
        let at = driver.sets.partition_point(|s| (s.job, s.stage) <= (set.job, set.stage));
        driver.sets.insert(at, Arc::new(set));
        self.schedule(self.actors.scheduler, Msg::ReviveOffers);
    }

    /// A message to the location directory.
    pub fn blocks(&mut self, msg: &Msg) {
        match msg {
            Msg::RegisterBlockManager => self.answered(StartUp::Blocks),
            Msg::LookUp(data_set, partitions) => {
                let known = |p| *data_set == 0 && self.s.cache.known.contains(&p);
                let known = (0..*partitions).map(known).collect();
                self.ctx.send(self.actors.asking, Msg::Locations(known));
            }
            Msg::GetLocations(partition, run) => self.computed(*partition, *run),
            Msg::UpdateBlockInfo(partition, run) => self.told(*partition, *run),
            _ => {}
        }
    }
}
