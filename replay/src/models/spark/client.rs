//! The driver program's contact to the master.

use super::message::Msg;
use super::state::Step;

/// Attempts to register after which nothing more is sent.
pub const ATTEMPTS: u8 = 3;

/// State of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// Whether a master answered.
    pub registered: bool,
    /// How often the retry block ran, up to [`ATTEMPTS`].
    pub attempts: u8,
}

impl Step<'_, '_> {
    /// The client is created.
    pub fn client_created(&mut self) {
        let (client, master) = (self.actors.client, self.actors.master);
        self.thread_send(client, master, Msg::RegisterApplication);
        self.schedule(self.actors.retries, Msg::RetryClient);
    }

    /// The code that repeats the client's registration.
    pub fn retry_client(&mut self) {
        let client = &mut self.s.client;
        client.attempts = (client.attempts + 1).min(ATTEMPTS);
        if client.registered {
            return;
        }
        // The original shuts the driver program down when it gives up, which no recording shows.
        if client.attempts < ATTEMPTS {
            let (client, master) = (self.actors.client, self.actors.master);
            self.thread_send(client, master, Msg::RegisterApplication);
        }
        self.again(&Msg::RetryClient);
    }

    /// A message to the client.
    pub fn client(&mut self, msg: &Msg) {
        match msg {
            Msg::RegisteredApplication(_) => self.s.client.registered = true,
            Msg::MasterChanged => {
                let known = self.s.client.registered;
                self.ctx.send(self.actors.master, Msg::MasterChangeAcknowledged(known));
            }
            _ => {}
        }
    }
}
