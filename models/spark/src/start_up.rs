//! The driver program's main thread, which starts the system, and what a test driver does from outside. The thread
//! asks under temporary names and goes on inside the step that answers.

use serde_json::Value;

use super::actors::{MAX_NUMBER, Number};
use super::message::Msg;
use super::state::StartUp;
use super::step::Step;

impl Step<'_, '_> {
    /// The thread begins.
    pub fn begin(&mut self) {
        for actor in [self.actors.tracker, self.actors.retries, self.actors.asking] {
            self.ctx.start_actor(actor);
        }
        self.thread_send(self.actors.ask_blocks, self.actors.blocks, Msg::RegisterBlockManager);
    }

    /// A question is answered: the thread goes on to the next, if it was the one that it waits for.
    pub fn answered(&mut self, question: StartUp) {
        if self.s.start_up != question {
            return;
        }
        let a = self.actors;
        match question {
            StartUp::Blocks => {
                self.s.start_up = StartUp::Master;
                self.ctx.start_actor(a.master);
                self.thread_send(a.ask_port, a.master, Msg::RequestWebUiPort);
            }
            StartUp::Master => {
                self.s.start_up = StartUp::Jobs;
                self.ctx.start_actor(a.supervisor);
                self.thread_send(a.ask_props, a.supervisor, Msg::Props);
            }
            // All else follows without waiting.
            StartUp::Jobs | StartUp::Done => {
                self.s.start_up = StartUp::Done;
                [a.jobs, a.scheduler, a.client].into_iter().for_each(|actor| self.ctx.start_actor(actor));
                self.submit(0);
            }
        }
    }

    /// Code that a test driver runs.
    pub fn action(&mut self, name: &str, fields: Option<&Value>) -> Result<(), String> {
        if self.s.start_up != StartUp::Done {
            return Err(format!("{name}: the system has not started yet"));
        }
        match name {
            "create_worker" => {
                let number = worker_of(fields).ok_or_else(|| {
                    format!("create_worker needs 'worker', from \"Worker1\" to \"Worker{MAX_NUMBER}\"")
                })?;
                self.ctx.start_actor(self.actors.worker(number));
            }
            "submit_job" => {
                let job = fields.and_then(|f| f.get("job")?.as_u64()?.try_into().ok());
                self.submit(job.ok_or("submit_job needs 'job', a number")?);
            }
            "create_master" => self.ctx.start_actor(self.actors.master),
            _ => return Err(format!("there is no '{name}', but create_worker, submit_job, create_master")),
        }
        Ok(())
    }
}

/// The worker that an action is about: `"Worker3"` or `3`.
pub fn worker_of(fields: Option<&Value>) -> Option<Number> {
    let number = match fields?.get("worker")? {
        Value::String(name) => name.strip_prefix("Worker")?.parse().ok()?,
        other => Number::try_from(other.as_u64()?).ok()?,
    };
    (1..=MAX_NUMBER).contains(&number).then_some(number)
}
