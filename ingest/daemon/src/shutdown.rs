//! Telling every task that the daemon stops, or that it reads its secrets again.

use std::sync::Arc;

use tokio::sync::watch;

/// A switch that is thrown once, and everybody who waits for it.
#[derive(Clone, Debug)]
pub struct Shutdown {
    thrown: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Shutdown::new()
    }
}

impl Shutdown {
    /// A switch not thrown yet.
    #[must_use]
    pub fn new() -> Self {
        Shutdown { thrown: Arc::new(watch::Sender::new(false)) }
    }

    /// Throws the switch.
    pub fn throw(&self) {
        self.thrown.send_replace(true);
    }

    /// Whether it was thrown.
    #[must_use]
    pub fn is_thrown(&self) -> bool {
        *self.thrown.borrow()
    }

    /// Returns when it is thrown. Safe to drop and call again.
    pub async fn wait(&self) {
        let mut seen = self.thrown.subscribe();
        // The sender lives in `self`, so this ends with the switch thrown.
        let _ = seen.wait_for(|thrown| *thrown).await;
    }
}

impl Shutdown {
    /// What the future gives, or nothing when the switch is thrown first.
    pub async fn unless<F: Future>(&self, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            () = self.wait() => None,
            output = future => Some(output),
        }
    }
}

/// Counts the requests (SIGHUP) to read certificates and tokens again.
#[derive(Clone, Debug)]
pub struct Reload {
    asked: Arc<watch::Sender<u64>>,
}

impl Default for Reload {
    fn default() -> Self {
        Reload { asked: Arc::new(watch::Sender::new(0)) }
    }
}

impl Reload {
    /// Asks everybody to read again.
    pub fn ask(&self) {
        self.asked.send_modify(|n| *n += 1);
    }

    /// To be woken at each request.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }
}
