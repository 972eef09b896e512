//! Running the daemon as a process: log, signals, the service manager.

use std::io::IsTerminal;
use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::config::{Config, DaemonConfig};
use super::own;
use super::serve::{Daemon, ServeError, Started};
use super::tasks::{GivenUp, MOST_FAILURES};

/// How the daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything that was acknowledged is in the store.
    Drained,
    /// The time to stop was over; what is not in the store is in the spool and goes there at the next start.
    LeftInSpool,
}

/// Sends the log to standard error as configured. A second call has no effect.
///
/// # Errors
/// When the rules cannot be read.
pub fn start_log(config: &DaemonConfig) -> Result<(), String> {
    let filter = log_filter(config)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = match config.log_json {
        true => log.json().flatten_event(true).try_init(),
        false => log.with_ansi(colour).try_init(),
    };
    Ok(())
}

/// The crates whose level is the one of the configuration.
const OWN: [&str; 4] = ["demi_daemon", "demi_store", "demi_formats", "demi_monitor"];

/// What of the log is told.
pub(super) fn log_filter(config: &DaemonConfig) -> Result<EnvFilter, String> {
    // A level alone is that of the daemon; the libraries below it speak up when something is wrong.
    let plain = config.log.chars().all(|c| c.is_ascii_alphanumeric());
    let rules = match plain {
        true => OWN.iter().fold("warn".to_owned(), |rules, own| format!("{rules},{own}={}", config.log)),
        false => config.log.clone(),
    };
    EnvFilter::try_new(rules).map_err(|e| format!("[daemon] log: {e}"))
}

/// Serves until SIGTERM or SIGINT, then stops within the configured time; a second signal stops at once. SIGHUP makes
/// sources read certificates and tokens again; the file of the configuration at `path` is looked at alone. A service manager is told when the daemon is ready and when it stops.
///
/// # Errors
/// When it cannot start, or a part of it failed again and again.
pub fn run(config: &Config, path: &Path, started: impl FnOnce(&Started)) -> Result<Stopped, ServeError> {
    let read = std::fs::read(path).ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stopped: Result<_, ServeError> = runtime.block_on(async {
        if let Some((name, path)) = own::read_by(config, &own::logs()) {
            return Err(ServeError::Itself { name, path });
        }
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let mut hup = signal(SignalKind::hangup())?;
        let daemon = Daemon::start(config).await?;
        started(daemon.started());
        tracing::info!(addresses = ?daemon.started().addresses, "ready");
        notify(&[sd_notify::NotifyState::Ready]);
        let given_up = loop {
            tokio::select! {
                _ = term.recv() => break None,
                _ = int.recv() => break None,
                given_up = daemon.given_up() => break Some(given_up),
                _ = hup.recv() => {
                    tracing::info!("reading certificates, tokens and invariants again");
                    daemon.reload();
                    tell_of_change(path, read.as_deref());
                }
            }
        };
        tracing::info!("stopping");
        notify(&[sd_notify::NotifyState::Stopping]);
        let drained = tokio::select! {
            drained = daemon.stop() => drained,
            _ = term.recv() => false,
            _ = int.recv() => false,
        };
        tracing::info!(drained, "stopped");
        ended(given_up, drained)
    });
    // Threads that still wait for a slow disk do not hold up the end: what they do is safe to break off.
    runtime.shutdown_background();
    stopped
}

/// Says that a configuration file that was changed holds after a restart only, or cannot be read.
fn tell_of_change(path: &Path, read: Option<&[u8]>) {
    let changed = std::fs::read(path).ok().as_deref() != read;
    match Config::read(path) {
        Err(error) => {
            tracing::error!(%error, "the configuration file cannot be read: the daemon goes on with what it read at its start")
        }
        Ok(_) if changed => {
            tracing::warn!(file = %path.display(), "the configuration file was changed: that holds after a restart")
        }
        Ok(_) => {}
    }
}

/// How the process ends: a part that was given up is a failure, whatever was still brought into the store.
fn ended(given_up: Option<GivenUp>, drained: bool) -> Result<Stopped, ServeError> {
    match given_up {
        Some(GivenUp { task, reason }) => Err(ServeError::GivenUp { task, failures: MOST_FAILURES, reason }),
        None if drained => Ok(Stopped::Drained),
        None => Ok(Stopped::LeftInSpool),
    }
}

/// Tells the service manager, if there is one.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot tell the service manager");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_was_given_up_is_a_failure_also_where_all_is_in_the_store() {
        let given_up = || Some(GivenUp { task: "committer".into(), reason: "it panicked".into() });
        for drained in [true, false] {
            let error = ended(given_up(), drained).unwrap_err().to_string();
            assert!(error.contains("committer") && error.contains("it panicked"), "{error}");
        }
        assert_eq!(ended(None, true).unwrap(), Stopped::Drained);
        assert_eq!(ended(None, false).unwrap(), Stopped::LeftInSpool);
    }
}
