//! How the client and the workers register with a master: once, and again until one answers.

use super::actors::Number;
use super::message::Msg;
use super::step::Step;

/// Attempts after which nothing more is sent.
const ATTEMPTS: u8 = 3;

impl Step<'_, '_> {
    fn register(&mut self, worker: Option<Number>) {
        let (from, msg) = match worker {
            Some(number) => (self.actors.worker(number), Msg::RegisterWorker(number)),
            None => (self.actors.client, Msg::RegisterApplication),
        };
        self.thread_send(from, self.actors.master, msg);
    }

    /// The client, or a worker, is created.
    pub fn begin_registration(&mut self, worker: Option<Number>) {
        self.register(worker);
        self.schedule(self.actors.retries, Msg::Retry(worker));
    }

    /// The code that repeats the registration.
    pub fn retry(&mut self, msg: &Msg) {
        let Msg::Retry(worker) = *msg else { return };
        let registration = match worker {
            Some(number) => &mut self.s.worker(number).registration,
            None => &mut self.s.client,
        };
        registration.attempts = (registration.attempts + 1).min(ATTEMPTS);
        if registration.done {
            return;
        }
        if registration.attempts < ATTEMPTS {
            self.register(worker);
        }
        self.again(msg);
    }

    /// A message to the client.
    pub fn client(&mut self, msg: &Msg) {
        match msg {
            Msg::RegisteredApplication(_) => self.s.client.done = true,
            Msg::MasterChanged => {
                let known = self.s.client.done;
                self.ctx.send(self.actors.master, Msg::MasterChangeAcknowledged(known));
            }
            _ => {}
        }
    }
}
